"""The second phase: publishers publish and faults are applied at their times; the CLI is notified of both.

It lasts for the plan's duration, or until the user leaves the prompt (`testbed.runner.prompt_session`).
"""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

from experiments.plan import LinkChange, ProcessAction, ProcessChange
from testbed.faults.application import LATE_NS, AppliedChange, Change, apply_changes
from testbed.links.emulator import Applied
from testbed.runner.barrier import Barrier
from testbed.runner.phases import Phase
from testbed.runner.process_starter import ProcessStarter
from testbed.runner.run_context import RunContext

LEAD_NS = 200_000_000
"""From "go" to time 0, so that every driver has heard it before."""
SAVE_PERIOD_S = 5.0
FIFO_PRIORITY = 1

_SIGNALS = {
    ProcessAction.KILL: signal.SIGKILL,
    ProcessAction.STOP: signal.SIGSTOP,
    ProcessAction.CONTINUE: signal.SIGCONT,
}


Until = Callable[[RunContext, ProcessStarter, int], Coroutine[Any, Any, None]]
"""What goes on from time 0 (CLOCK_REALTIME ns) until the drivers are to stop."""


async def until_duration_is_over(context: RunContext, starter: ProcessStarter, zero_ns: int) -> None:
    """Apply the plan's faults, for the plan's duration."""
    changes = apply_changes(
        context.plan.changes,
        zero_ns=zero_ns,
        apply=applier(context, starter),
        record=lambda applied: record_change(context, applied),
    )
    faults = asyncio.create_task(changes)
    try:
        end_ns = zero_ns + context.plan.duration_us * 1000
        while (left_ns := end_ns - time.time_ns()) > 0:
            await asyncio.sleep(min(left_ns / 1e9, SAVE_PERIOD_S))
            await context.record.save_aside()
        await faults  # all are due by now: on a busy machine some may be late
    finally:
        faults.cancel()


async def run_workload(context: RunContext, until: Until = until_duration_is_over) -> None:
    """Run from time 0 until `until` is done, or the run has to end early."""
    told: Mapping[str, Any] = {}

    async def meet() -> None:
        nonlocal told
        told = await context.barriers.wait(Barrier.READY)

    if context.termination.requested or not await context.termination.or_done(meet()):
        return
    _raise_priority(context)
    zero_ns = time.time_ns() + LEAD_NS if context.barriers.alone else told["zero_ns"]
    context.record.time("zero_ns", zero_ns)
    late_ns = time.time_ns() - zero_ns
    if late_ns > LATE_NS:
        context.record.problem(
            f"time 0 was {late_ns / 1e9:.1f} s ago when it was told: all that was due by then happens late"
        )
    context.processes.go(zero_ns)
    context.record.phase(Phase.RUNNING)
    context.record.tell("running", zero_ns=zero_ns, duration_us=context.plan.duration_us)
    async with ProcessStarter(context) as starter:
        await context.termination.or_done(until(context, starter, zero_ns))
    context.processes.stop_drivers()
    context.record.time("stopped_ns")


def _raise_priority(context: RunContext) -> None:
    """Keep faults on time even if all processors are busy: raise the priority of this process, which applies
    them, and of the launcher, which restarts nodes. Both need little processor time.

    Real-time scheduling needs privileges (sched(7)); processes that are started from now on do not inherit
    it.
    """
    with contextlib.suppress(PermissionError):
        for process in (0, context.processes.launcher_pid):
            os.sched_setscheduler(
                process, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(FIFO_PRIORITY)
            )


def applier(context: RunContext, starter: ProcessStarter) -> Callable[[Change], Awaitable[Applied]]:
    """The function that applies a change. It raises TestbedError if that fails."""

    async def apply(change: Change) -> Applied:
        if isinstance(change, LinkChange):
            return context.network.change(
                change
            )  # not in a thread: on a busy machine each handing over costs
        return await _change_process(context, starter, change)

    return apply


async def _change_process(context: RunContext, starter: ProcessStarter, change: ProcessChange) -> Applied:
    requested_ns = time.time_ns()
    name, processes = change.process, context.processes
    match change.action:
        case ProcessAction.RESTART | ProcessAction.JOIN:
            await starter.start(name)
        case ProcessAction.REPLACE:
            await starter.start(name, on_empty_disk=True)
        case ProcessAction.GIVE_UP:
            processes.give_up(name)
        case ProcessAction.LEAVE:
            processes.leave(name)
        case ProcessAction.SEPARATE | ProcessAction.REJOIN:
            apart = change.action is ProcessAction.SEPARATE
            return context.network.separate(name, change.peers, apart=apart)
        case action:
            processes.signal(name, _SIGNALS[action], ends=action is ProcessAction.KILL)
    return Applied(requested_ns, time.time_ns())


def record_change(context: RunContext, applied: AppliedChange) -> None:
    """Record a change, and notify the CLI."""
    entry = applied.as_json()
    context.record.append("changes", entry)
    context.record.tell("change", **entry)
    if applied.problem is not None:
        context.record.problem(applied.problem)
