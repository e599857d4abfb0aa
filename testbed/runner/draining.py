"""The third phase: stops the publishers, then waits until every client has all acknowledged events.

The plan bounds the wait.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from experiments.declared import Contract, Trait
from experiments.planned.draining import reached, settles_by_time
from experiments.records.run_record import RunPhase
from testbed.processes import NodeProcess
from testbed.runner.barrier import Barrier
from testbed.runner.run_context import RunContext

TELL_PERIOD_S = 0.1
INTERRUPTED_DRAIN_S = 2.0
"""A user who interrupts a run does not want to wait long."""


async def drain(context: RunContext) -> None:
    """Drain and record when everything was delivered; the analysis judges a drain that does not finish."""
    if context.record.content.times.stopped_ns is None or context.termination.crashed:
        return
    context.record.phase(RunPhase.DRAINING)
    bound_s = context.plan.drain_us / 1e6
    if context.termination.requested:
        await _wait(context, min(bound_s, INTERRUPTED_DRAIN_S))
    else:
        await context.termination.or_done(_wait(context, bound_s))
    context.record.tell("drained")


async def _wait(context: RunContext, bound_s: float) -> None:
    """Wait until no acknowledgement is pending, so that all published events are known, then for delivery."""
    ends_s = time.monotonic() + bound_s
    if not await context.processes.wait_progress(
        lambda: all(driver.silent for driver in context.having(Trait.PUBLISHER)), bound_s
    ):
        return
    contract = context.plan.declared.contract
    if settles_by_time(contract):
        await asyncio.sleep(min(contract.settle_us / 1e6, max(0.0, ends_s - time.monotonic())))
    left_s = ends_s - time.monotonic()
    if await (_all_here(context, left_s) if context.barriers.alone else _all_everywhere(context, left_s)):
        context.record.time("drained_ns")


async def _all_here(context: RunContext, bound_s: float) -> bool:
    def done() -> bool:
        clients = context.having(Trait.SUBSCRIBER)
        return everything_delivered(context.processes.history, clients, context.plan.declared.contract)

    return await context.processes.wait_progress(done, bound_s)


async def _all_everywhere(context: RunContext, bound_s: float) -> bool:
    """Report this machine's progress and wait for the coordinator, which decides for all machines."""
    reporting = asyncio.create_task(_report_counts(context))
    try:
        return bool((await context.barriers.wait(Barrier.DRAINED, bound_s)).get("drained"))
    finally:
        reporting.cancel()


async def _report_counts(context: RunContext) -> None:
    """Report what was published and delivered on this machine, whenever it changes."""
    reported = None
    while True:
        published = highest(node.published for node in context.processes.history)
        clients = [client.delivered for client in context.having(Trait.SUBSCRIBER)]
        delivered = [lowest(clients, context.plan.declared.contract)] if clients else []
        if (published, delivered) != reported:
            reported = (published, delivered)
            context.record.tell("counts", published=published, delivered=delivered)
        await asyncio.sleep(TELL_PERIOD_S)


def everything_delivered(
    nodes: Iterable[NodeProcess], clients: Iterable[NodeProcess], contract: Contract
) -> bool:
    """Return whether each client has all events that it must get, published by any process generation."""
    published = highest(node.published for node in nodes)
    return reached(published, [client.delivered for client in clients], contract)


def highest(published: Iterable[Mapping[int, int]]) -> dict[int, int]:
    """Return the highest sequence number of each stream."""
    found: dict[int, int] = {}
    for each in published:
        for stream, sequence in each.items():
            found[stream] = max(sequence, found.get(stream, 0))
    return found


def lowest(delivered: Sequence[Mapping[int, int]], contract: Contract) -> dict[int, int]:
    """Return the lowest sequence number of each stream that all clients have.

    A client that must get the stream and has nothing of it counts as 0.
    """
    found: dict[int, int] = {}
    having: Counter[int] = Counter()
    for client in delivered:
        having.update(client.keys())
        for stream, sequence in client.items():
            found[stream] = min(sequence, found.get(stream, sequence))
    all_must = contract.audience == "all"
    return {s: 0 if all_must and having[s] < len(delivered) else found[s] for s in sorted(found)}
