"""The second phase: drivers publish, faults happen at their times, and the CLI hears of both.

It lasts for the plan's duration, or as long as whoever is at the prompt likes (`testbed.runner.by_hand`).
"""

import asyncio
import contextlib
import os
import signal
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import Any

from experiments.plan import LinkChange, ProcessAction, ProcessChange
from testbed.faults.application import LATE_NS, Carried, Change, carry_out
from testbed.links.emulator import Applied
from testbed.runner.meeting import MeetingPlace
from testbed.runner.phases import Phase
from testbed.runner.stage import Stage
from testbed.runner.starting import Starts

LEAD_NS = 200_000_000
"""From "go" to time 0, so that every driver has heard it before."""
SAVE_PERIOD_S = 5.0
FIFO_PRIORITY = 1

_SIGNALS = {
    ProcessAction.KILL: signal.SIGKILL,
    ProcessAction.STOP: signal.SIGSTOP,
    ProcessAction.CONTINUE: signal.SIGCONT,
}


Until = Callable[[Stage, Starts, int], Coroutine[Any, Any, None]]
"""What goes on from time 0 (CLOCK_REALTIME ns) until the drivers are to stop."""


async def until_duration_is_over(stage: Stage, starts: Starts, zero_ns: int) -> None:
    """The plan's faults, for the plan's duration."""
    changes = carry_out(
        stage.plan.changes,
        zero_ns=zero_ns,
        apply=applier(stage, starts),
        record=lambda carried: record_change(stage, carried),
    )
    faults = asyncio.create_task(changes)
    try:
        end_ns = zero_ns + stage.plan.duration_us * 1000
        while (left_ns := end_ns - time.time_ns()) > 0:
            await asyncio.sleep(min(left_ns / 1e9, SAVE_PERIOD_S))
            await stage.record.save_aside()
        await faults  # all are due by now: on a busy machine some may be late
    finally:
        faults.cancel()


async def run_workload(stage: Stage, until: Until = until_duration_is_over) -> None:
    """From time 0 until `until` is done, or the run is to end before."""
    told: Mapping[str, Any] = {}

    async def meet() -> None:
        nonlocal told
        told = await stage.meeting.at(MeetingPlace.READY)

    if stage.ending.asked or not await stage.ending.or_done(meet()):
        return
    _be_prompt(stage)
    zero_ns = time.time_ns() + LEAD_NS if stage.meeting.alone else told["zero_ns"]
    stage.record.time("zero_ns", zero_ns)
    late_ns = time.time_ns() - zero_ns
    if late_ns > LATE_NS:
        stage.record.problem(
            f"time 0 was {late_ns / 1e9:.1f} s ago when it was told: all that was due by then happens late"
        )
    stage.processes.go(zero_ns)
    stage.record.phase(Phase.RUNNING)
    stage.record.tell("running", zero_ns=zero_ns, duration_us=stage.plan.duration_us)
    async with Starts(stage) as starts:
        await stage.ending.or_done(until(stage, starts, zero_ns))
    stage.processes.stop_drivers()
    stage.record.time("stopped_ns")


def _be_prompt(stage: Stage) -> None:
    """Let faults be on time though all processors are busy: this process, which carries them out, and the
    launcher, which starts nodes again, need few of their time.

    Real-time scheduling is for those who may (sched(7)); what is started from now on does not inherit it.
    """
    with contextlib.suppress(PermissionError):
        for process in (0, stage.processes.launcher_pid):
            os.sched_setscheduler(
                process, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(FIFO_PRIORITY)
            )


def applier(stage: Stage, starts: Starts) -> Callable[[Change], Awaitable[Applied]]:
    """What makes a change real. Raises TestbedError if it cannot be done."""

    async def apply(change: Change) -> Applied:
        if isinstance(change, LinkChange):
            return stage.network.change(change)  # not in a thread: on a busy machine each handing over costs
        return await _change_process(stage, starts, change)

    return apply


async def _change_process(stage: Stage, starts: Starts, change: ProcessChange) -> Applied:
    requested_ns = time.time_ns()
    name, processes = change.process, stage.processes
    match change.action:
        case ProcessAction.RESTART | ProcessAction.JOIN:
            await starts.start(name)
        case ProcessAction.REPLACE:
            await starts.start(name, on_empty_disk=True)
        case ProcessAction.GIVE_UP:
            processes.give_up(name)
        case ProcessAction.LEAVE:
            processes.leave(name)
        case ProcessAction.SEPARATE | ProcessAction.REJOIN:
            apart = change.action is ProcessAction.SEPARATE
            return stage.network.keep_apart(name, change.peers, apart=apart)
        case action:
            processes.signal(name, _SIGNALS[action], ends=action is ProcessAction.KILL)
    return Applied(requested_ns, time.time_ns())


def record_change(stage: Stage, carried: Carried) -> None:
    """Write down a change, and tell the CLI."""
    entry = carried.as_json()
    stage.record.append("changes", entry)
    stage.record.tell("change", **entry)
    if carried.problem is not None:
        stage.record.problem(carried.problem)
