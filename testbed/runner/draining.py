"""The third phase: stops the publishers, then waits until every client has all acknowledged events.

The plan bounds the wait.
"""

import asyncio
import time

from experiments.declared import Trait
from experiments.planned.draining import highest, lowest, reached, settles_by_time
from experiments.records.run_record import RunPhase
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
    context.record.notify("drained")


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
        published = highest(node.published for node in context.processes.history)
        delivered = [client.delivered for client in context.having(Trait.SUBSCRIBER)]
        return reached(published, delivered, context.plan.declared.contract)

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
            context.record.notify("counts", published=published, delivered=delivered)
        await asyncio.sleep(TELL_PERIOD_S)
