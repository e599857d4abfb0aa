"""Conducts a run inside the sandbox: build, run, drain and collect, also after errors.

The last phase (`collect`) ends the nodes, probes the network again, ends the captures and reads the counters.
"""

import asyncio
import dataclasses
import signal
import time
from collections import deque
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from typing import Any

from experiments.declared import Trait
from experiments.records.observations import CaptureRecord, CpuSample, LinkCounts
from experiments.records.run_record import Outcome, RunPhase
from experiments.records.rundir import RunDirectory
from testbed.assignment import assignment_from_json, whole_plan
from testbed.capturing.captures import FLUSH_S, CaptureResult
from testbed.capturing.key_logs import collect_key_logs
from testbed.errors import MachineError, TestbedError
from testbed.runner import monitor
from testbed.runner.barrier import Barrier, Barriers
from testbed.runner.building import build, probe
from testbed.runner.draining import drain
from testbed.runner.prompt_process import PromptProcess
from testbed.runner.record import RunRecordWriter
from testbed.runner.run_context import EndedEarlyError, RunContext, Termination
from testbed.runner.running import Until, run_workload, until_duration_is_over
from testbed.sandbox.channel import SandboxChannel

PROGRESS_PERIOD_S = 0.5
RATE_WINDOW_S = 2.0  # two reports of a node that publishes: it reports once a second
OTHERS_TIMEOUT_S = 30.0
"""How long to wait for other machines to end their nodes too."""


async def conduct(
    directory: RunDirectory,
    channel: SandboxChannel,
    prompt: PromptProcess | None = None,
    until: Until = until_duration_is_over,
) -> bool:
    """Execute the run whose plan is in its run.json, interactively if there is a prompt.

    Returns false if the run broke before there was anything to collect.
    """
    record = RunRecordWriter(directory, channel.post)
    termination = Termination()
    barriers = Barriers(channel.post, alone=record.content.assignment is None)
    try:
        with _listening(channel, termination, barriers, prompt):
            await _run_phases(record, termination, barriers, until)
    except EndedEarlyError as error:
        record.problem(str(error))
        record.note(outcome=termination.outcome)
        record.time("ended_ns")
        record.phase(RunPhase.COLLECTED)
    except TestbedError as error:
        record.problem(str(error))
        record.notify(
            "failed", kind="machine" if isinstance(error, MachineError) else "testbed", text=str(error)
        )
        record.note(outcome=Outcome.CRASHED)
        record.time("ended_ns")
        record.save()
        return False
    finally:
        record.close()
    return True


async def _run_phases(
    record: RunRecordWriter, termination: Termination, barriers: Barriers, until: Until
) -> None:
    plan, given = record.content.plan, record.content.assignment
    assignment = whole_plan(plan) if given is None else assignment_from_json(given)
    async with AsyncExitStack() as stack:
        context = await build(plan, assignment, record, termination, barriers=barriers, stack=stack)
        async with _background(_watch(context), _report_progress(context), _watch_launcher(context)):
            await run_workload(context, until)
            await drain(context)
        if termination.reason:
            record.problem(termination.reason)
        await collect(context)


@contextmanager
def _listening(
    channel: SandboxChannel, termination: Termination, barriers: Barriers, prompt: PromptProcess | None
) -> Iterator[None]:
    """End the run in order on the CLI's "stop" or a SIGTERM.

    Other messages of the CLI go to the barriers or the prompt.
    """
    loop = asyncio.get_running_loop()

    def receive() -> None:
        message = channel.receive(0)
        if channel.ended:  # the CLI has ended, and PID 1 will end
            loop.remove_reader(channel.fileno())
        elif message is not None and message["do"] == "stop":
            termination.interrupt(message.get("why", "stopped by the user before its time"))
        elif message is not None and message["do"] == "go on":
            barriers.release(message)
        elif message == {"do": "interrupt"} and prompt is not None:
            prompt.interrupt()
        elif message == {"do": "open"} and prompt is not None:
            prompt.agree()

    loop.add_reader(channel.fileno(), receive)
    termination.listen = receive
    loop.add_signal_handler(signal.SIGTERM, termination.interrupt, "stopped by SIGTERM before its time")
    try:
        yield
    finally:
        termination.listen = lambda: None
        loop.remove_reader(channel.fileno())
        loop.remove_signal_handler(signal.SIGTERM)


@asynccontextmanager
async def _background(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run these coroutines in the background; cancel them at the end and raise their errors."""
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


async def _watch(context: RunContext) -> None:
    termination, record = context.termination, context.record
    await monitor.watch(
        record.directory.path,
        failure=context.emulator.failure,
        on_busy=lambda t_ns, busy: record.note(cpu=(*record.content.cpu, CpuSample(t_ns, busy))),
        on_disk_low=lambda free: termination.interrupt(
            f"stopped before its time: only {free >> 20} MiB of disk are left at {record.directory.path}"
        ),
        on_failure=termination.crash,
        on_clock_set=lambda step_ns: record.problem(_clock_set(step_ns, record.content.times.zero_ns)),
    )


def _clock_set(step_ns: int, zero_ns: int | None) -> str:
    """Return the problem text for a step of the clock that stamps captures, records and run.json."""
    since_s = None if zero_ns is None else (time.time_ns() - step_ns - zero_ns) / 1e9
    when = "before time 0" if since_s is None or since_s < 0 else f"{since_s:.1f} s after time 0"
    return f"the wall clock was set by {step_ns / 1e9:+.3f} s, {when}: times before and after do not compare"


async def _watch_launcher(context: RunContext) -> None:
    await context.processes.launcher_ended.wait()
    context.termination.crash("the launcher of the nodes died, and all nodes with it")


async def _report_progress(context: RunContext) -> None:
    """Report events per second to the CLI, averaged over clients and the last `RATE_WINDOW_S`."""
    samples: deque[tuple[float, float]] = deque(maxlen=1 + round(RATE_WINDOW_S / PROGRESS_PERIOD_S))
    samples.append((time.monotonic(), _delivered_per_client(context)))
    while True:
        await asyncio.sleep(PROGRESS_PERIOD_S)
        samples.append((time.monotonic(), _delivered_per_client(context)))
        (first_s, first), (last_s, last) = samples[0], samples[-1]
        rate = max(0.0, (last - first) / (last_s - first_s))
        context.record.notify("progress", events_per_s=round(rate), delivered=round(last))


def _delivered_per_client(context: RunContext) -> float:
    clients = context.having(Trait.SUBSCRIBER)
    return sum(sum(client.delivered.values()) for client in clients) / max(1, len(clients))


async def collect(context: RunContext) -> None:
    """End everything in order and record the results. If parts died, the rest is still collected."""
    context.measure_processors()
    context.throttles.end()
    for problem in await context.processes.finish():
        context.record.problem(problem)
    context.note_processes()
    for problem in await context.traffic.finish(at_once=context.termination.requested):
        context.record.problem(problem)
    for problem in context.routing.problems():
        context.record.problem(problem)
    for problem in collect_key_logs(context.plan, context.record.directory):
        context.record.problem(problem)
    work = [asyncio.sleep(FLUSH_S)]  # captures must not end earlier; see FLUSH_S
    if not context.termination.requested:
        work.append(_probe_again(context))
    await asyncio.gather(*work)
    captures = [_capture_record(context, result) for result in await context.captures.stop()]
    context.record.note(captures=(*context.record.content.captures, *captures))
    context.record.note(routes=context.routing.changes())
    try:
        _note_counters(context)
    except TestbedError as error:  # the relay has ended, or hangs
        context.record.problem(str(error))
        context.termination.crash(str(error))
    context.record.time("ended_ns")
    context.record.note(outcome=context.termination.outcome)
    context.record.phase(RunPhase.COLLECTED)


async def _probe_again(context: RunContext) -> None:
    await context.barriers.wait(Barrier.FINISHED, OTHERS_TIMEOUT_S)
    await probe(context, "after")
    await context.barriers.wait(Barrier.MEASURED, OTHERS_TIMEOUT_S)


def _capture_record(context: RunContext, result: CaptureResult) -> CaptureRecord:
    capture, directory = result.capture, context.record.directory
    return CaptureRecord(
        str(directory.capture(capture.file).relative_to(directory.path)),
        capture.host,
        capture.link,
        capture.side,
        capture.interface,
        result.packets,
        result.kernel_drops,
    )


def _note_counters(context: RunContext) -> None:
    for (link, direction), counters in context.emulator.counters().items():
        counts = LinkCounts(link=link, direction=direction, **dataclasses.asdict(counters))
        context.record.note(counters=(*context.record.content.counters, counts))
        if counters.dropped_kernel:
            context.record.problem(
                f"link {link} {direction}: the kernel dropped {counters.dropped_kernel} frames"
            )
