"""The third phase: the drivers are told to stop; wait until all that they published is acknowledged and every
client has it, or the plan's bound is over.
"""

import asyncio
import time
from collections.abc import Iterable, Mapping, Sequence

from experiments.declared import Contract, Trait
from experiments.draining import reached, settles_by_time
from testbed.processes import NodeProcess
from testbed.runner.meeting import MeetingPlace
from testbed.runner.phases import Phase
from testbed.runner.stage import Stage

TELL_PERIOD_S = 0.1
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
    ends_s = time.monotonic() + bound_s
    if not await stage.processes.wait_progress(lambda: all_silent(stage.having(Trait.PUBLISHER)), bound_s):
        return
    contract = stage.plan.declared.contract
    if settles_by_time(contract):
        await asyncio.sleep(min(contract.settle_us / 1e6, max(0.0, ends_s - time.monotonic())))
    left_s = ends_s - time.monotonic()
    if await (_all_here(stage, left_s) if stage.meeting.alone else _all_everywhere(stage, left_s)):
        stage.record.time("drained_ns")


async def _all_here(stage: Stage, bound_s: float) -> bool:
    def done() -> bool:
        clients = stage.having(Trait.SUBSCRIBER)
        return everything_delivered(stage.processes.nodes.values(), clients, stage.plan.declared.contract)

    return await stage.processes.wait_progress(done, bound_s)


async def _all_everywhere(stage: Stage, bound_s: float) -> bool:
    """Who hears all machines decides; here we only say how far we are."""
    telling = asyncio.create_task(_tell_counts(stage))
    try:
        return bool((await stage.meeting.at(MeetingPlace.DRAINED, bound_s)).get("drained"))
    finally:
        telling.cancel()


async def _tell_counts(stage: Stage) -> None:
    """What was published and delivered here, whenever it changes."""
    told = None
    while True:
        published = highest(node.published for node in stage.processes.nodes.values())
        clients = [client.delivered for client in stage.having(Trait.SUBSCRIBER)]
        delivered = [lowest(clients, stage.plan.declared.contract)] if clients else []
        if (published, delivered) != told:
            told = (published, delivered)
            stage.record.tell("counts", published=published, delivered=delivered)
        await asyncio.sleep(TELL_PERIOD_S)


def all_silent(drivers: Iterable[NodeProcess]) -> bool:
    """Whether no acknowledgement is on its way any more, so that what was published is known."""
    return all(driver.silent for driver in drivers)


def everything_delivered(
    nodes: Iterable[NodeProcess], clients: Iterable[NodeProcess], contract: Contract
) -> bool:
    """Whether each client has got all that it is to get of what was published."""
    published = highest(node.published for node in nodes)
    return reached(published, [client.delivered for client in clients], contract)


def highest(published: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """The highest sequence number of each stream."""
    found: dict[int, int] = {}
    for each in published:
        for stream, sequence in each.items():
            found[stream] = max(sequence, found.get(stream, 0))
    return found


def lowest(delivered: Sequence[Mapping[int, int]], contract: Contract) -> dict[int, int]:
    """How far all clients are with each stream; who has nothing of it yet is at 0, if it is to get it."""
    streams = sorted({stream for client in delivered for stream in client})
    if contract.audience != "all":
        return {s: min(client[s] for client in delivered if s in client) for s in streams}
    return {stream: min(client.get(stream, 0) for client in delivered) for stream in streams}
