"""The third phase: the drivers are silent; wait until every client has every event, or the plan's bound is
over.
"""

import asyncio
from collections.abc import Iterable

from testbed.processes import NodeProcess
from testbed.runner.record import Phase
from testbed.runner.stage import Stage

SETTLE_S = 0.6
"""Until the drivers' last acknowledgements are in and reported (reports come every 250 ms)."""
INTERRUPTED_DRAIN_S = 2.0
"""Who interrupts a run does not want to wait long."""


async def drain(stage: Stage) -> None:
    """Note when everything was delivered; a drain that does not finish is for the analysis to judge."""
    if "stopped_ns" not in stage.record.content["times"] or stage.ending.crashed:
        return
    stage.record.phase(Phase.DRAINING)
    bound_s = stage.plan.drain_us / 1e6
    if stage.ending.asked:
        await _wait(stage, min(bound_s, INTERRUPTED_DRAIN_S))
    else:
        await stage.ending.or_done(_wait(stage, bound_s))
    stage.record.tell("drained")


async def _wait(stage: Stage, bound_s: float) -> None:
    await asyncio.sleep(min(SETTLE_S, bound_s))
    if await stage.processes.wait_progress(lambda: _everything_delivered(stage), bound_s):
        stage.record.time("drained_ns")


def _everything_delivered(stage: Stage) -> bool:
    return everything_delivered(stage.processes.nodes.values(), stage.of_role("client"))


def everything_delivered(nodes: Iterable[NodeProcess], clients: Iterable[NodeProcess]) -> bool:
    """Whether each client has got, in order, all that was acknowledged to any driver of any stream."""
    published: dict[int, int] = {}
    for node in nodes:
        for stream, sequence in node.published.items():
            published[stream] = max(sequence, published.get(stream, 0))
    return all(
        client.delivered.get(stream, 0) >= sequence
        for client in clients
        for stream, sequence in published.items()
    )
