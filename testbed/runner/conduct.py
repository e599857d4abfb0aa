"""The way of a run inside the sandbox: build, run, drain, collect, and what happens when something breaks."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

from experiments.declared import Trait
from experiments.plan import plan_from_json
from experiments.rundir import RunDirectory
from testbed.errors import MachineError, TestbedError
from testbed.runner import monitor
from testbed.runner.building import build
from testbed.runner.collecting import collect
from testbed.runner.draining import drain
from testbed.runner.meeting import Meeting
from testbed.runner.phases import Outcome
from testbed.runner.prompt import Prompt
from testbed.runner.record import RunRecord
from testbed.runner.running import Until, run_workload, until_duration_is_over
from testbed.runner.stage import Ending, Stage
from testbed.sandbox.channel import Channel
from testbed.share import everything, share_from_json

PROGRESS_PERIOD_S = 0.5


async def conduct(
    directory: RunDirectory,
    channel: Channel,
    prompt: Prompt | None = None,
    until: Until = until_duration_is_over,
) -> bool:
    """Carry out the run whose plan stands in its run.json, at a prompt if there is one; false if it broke
    before there was anything to collect.
    """
    record = RunRecord(directory, channel)
    ending = Ending()
    meeting = Meeting(channel, alone="share" not in record.content)
    try:
        with _listening(channel, ending, meeting, prompt):
            await _go_through(record, ending, meeting, until)
    except TestbedError as error:
        record.problem(str(error))
        record.tell(
            "failed", kind="machine" if isinstance(error, MachineError) else "testbed", text=str(error)
        )
        record.content["outcome"] = Outcome.CRASHED
        record.time("ended_ns")
        record.save()
        return False
    finally:
        record.close()
    return True


async def _go_through(record: RunRecord, ending: Ending, meeting: Meeting, until: Until) -> None:
    plan = plan_from_json(record.content["plan"])
    given = record.content.get("share")
    share = everything(plan) if given is None else share_from_json(given)
    async with AsyncExitStack() as stack:
        stage = await build(plan, share, record, ending, meeting=meeting, stack=stack)
        async with _background(_watch(stage), _report_progress(stage), _watch_launcher(stage)):
            await run_workload(stage, until)
            await drain(stage)
        if ending.reason:
            record.problem(ending.reason)
        await collect(stage)


@contextmanager
def _listening(channel: Channel, ending: Ending, meeting: Meeting, prompt: Prompt | None) -> Iterator[None]:
    """The CLI's "stop", or a SIGTERM, ends the run tidily. What else it says is for the meeting or the
    prompt.
    """
    loop = asyncio.get_running_loop()

    def hear() -> None:
        message = channel.receive(0)
        if channel.ended:  # the CLI is gone, and PID 1 about to follow
            loop.remove_reader(channel.fileno())
        elif message is not None and message["do"] == "stop":
            ending.interrupt(message.get("why", "stopped by the user before its time"))
        elif message is not None and message["do"] == "go on":
            meeting.go_on(message)
        elif message == {"do": "interrupt"} and prompt is not None:
            prompt.interrupt()
        elif message == {"do": "open"} and prompt is not None:
            prompt.agree()

    loop.add_reader(channel.fileno(), hear)
    loop.add_signal_handler(signal.SIGTERM, ending.interrupt, "stopped by SIGTERM before its time")
    try:
        yield
    finally:
        loop.remove_reader(channel.fileno())
        loop.remove_signal_handler(signal.SIGTERM)


@asynccontextmanager
async def _background(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Do this meanwhile; cancelled at the end. What broke in it is raised then."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result


async def _watch(stage: Stage) -> None:
    ending, record = stage.ending, stage.record
    await monitor.watch(
        record.directory.path,
        failure=stage.emulator.failure,
        on_busy=lambda t_ns, busy: record.append("cpu", {"t_ns": t_ns, "busy": busy}),
        on_disk_low=lambda free: ending.interrupt(
            f"stopped before its time: only {free >> 20} MiB of disk are left at {record.directory.path}"
        ),
        on_failure=ending.crash,
    )


async def _watch_launcher(stage: Stage) -> None:
    await stage.processes.launcher_ended.wait()
    stage.ending.crash("the launcher of the nodes died, and all nodes with it")


async def _report_progress(stage: Stage) -> None:
    """Tell the CLI how many events a second reach a client, on average over clients."""
    before, before_s = _delivered_per_client(stage), time.monotonic()
    while True:
        await asyncio.sleep(PROGRESS_PERIOD_S)
        after, after_s = _delivered_per_client(stage), time.monotonic()
        rate = max(0.0, (after - before) / (after_s - before_s))
        stage.record.tell("progress", events_per_s=round(rate), delivered=round(after))
        before, before_s = after, after_s


def _delivered_per_client(stage: Stage) -> float:
    clients = stage.having(Trait.SUBSCRIBER)
    return sum(sum(client.delivered.values()) for client in clients) / max(1, len(clients))
