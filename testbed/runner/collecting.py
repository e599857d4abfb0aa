"""The last phase: ends the nodes, probes the network again, ends the captures and reads the counters."""

import asyncio
import dataclasses

from testbed.captures import FLUSH_S, CaptureResult
from testbed.errors import TestbedError
from testbed.runner.barrier import Barrier
from testbed.runner.building import probe
from testbed.runner.phases import Phase
from testbed.runner.run_context import RunContext

OTHERS_TIMEOUT_S = 30.0
"""For other machines to end their nodes too."""


async def collect(context: RunContext) -> None:
    """End everything in order and record the results. Parts that died are recorded, and the rest is
    collected.
    """
    for problem in await context.processes.finish():
        context.record.problem(problem)
    context.note_processes()
    work = [asyncio.sleep(FLUSH_S)]  # captures must not end before: see there
    if not context.termination.requested:
        work.append(_probe_again(context))
    await asyncio.gather(*work)
    for result in await context.captures.stop():
        context.record.append("captures", _capture_json(context, result))
    try:
        _note_counters(context)
    except TestbedError as error:
        context.record.problem(str(error))
    context.record.time("ended_ns")
    context.record.content["outcome"] = context.termination.outcome
    context.record.phase(Phase.COLLECTED)


async def _probe_again(context: RunContext) -> None:
    await context.barriers.wait(Barrier.FINISHED, OTHERS_TIMEOUT_S)
    await probe(context, "after")
    await context.barriers.wait(Barrier.MEASURED, OTHERS_TIMEOUT_S)


def _capture_json(context: RunContext, result: CaptureResult) -> dict[str, object]:
    capture = result.capture
    return {
        "file": str(
            context.record.directory.capture(capture.file).relative_to(context.record.directory.path)
        ),
        "host": capture.host,
        "link": capture.link,
        "side": capture.side,
        "interface": capture.interface,
        "packets": result.packets,
        "kernel_drops": result.kernel_drops,
    }


def _note_counters(context: RunContext) -> None:
    for (link, direction), counters in context.emulator.counters().items():
        entry = {"link": link, "direction": str(direction), **dataclasses.asdict(counters)}
        context.record.append("counters", entry)
        if counters.dropped_kernel:
            context.record.problem(
                f"link {link} {direction}: the kernel dropped {counters.dropped_kernel} frames"
            )
