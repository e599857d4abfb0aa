"""The last phase: ends the nodes, probes the network again, ends the captures and reads the counters."""

import asyncio
import dataclasses

from experiments.records.observations import CaptureRecord, LinkCounts
from testbed.capturing.captures import FLUSH_S, CaptureResult
from testbed.capturing.key_logs import collect_key_logs
from testbed.errors import TestbedError
from testbed.runner.barrier import Barrier
from testbed.runner.building import probe
from testbed.runner.run_context import RunContext

OTHERS_TIMEOUT_S = 30.0
"""How long to wait for other machines to end their nodes too."""


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
