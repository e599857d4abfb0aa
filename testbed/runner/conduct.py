"""Conducts a run inside the sandbox, also if it has to end early or breaks."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager

from experiments.records.run_record import Outcome, RunPhase
from experiments.records.rundir import RunDirectory
from testbed.errors import MachineError, TestbedError
from testbed.execution.phases import execute
from testbed.execution.record import RunRecordWriter
from testbed.runner.barrier import Barriers
from testbed.runner.local_world import LocalWorld
from testbed.runner.prompt_process import PromptProcess
from testbed.runner.run_context import EndedEarlyError, Termination
from testbed.runner.running import Until, until_duration_is_over
from testbed.sandbox.channel import SandboxChannel


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
            async with AsyncExitStack() as stack:
                await execute(LocalWorld(record, termination, barriers, until, stack))
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
