"""The second phase: faults are applied at their times, while publishers publish.

It lasts for the plan's duration, or until the user leaves the prompt (`testbed.runner.prompt_session`).

Processes may start during the run: again after their end, or for the first time. A start is complete once the
process exists. The process gets "go" when it is ready. That may take a while (a replica first requests
missing events) and is not awaited: later faults are on time, and a process that ends before it is ready
delays nothing.
"""

import asyncio
import shutil
import signal
import time
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import asdict
from types import TracebackType
from typing import Any, Self

from experiments.planned.changes import LinkChange, ProcessAction, ProcessChange
from testbed.errors import TestbedError
from testbed.execution.specs import spec_for_restart
from testbed.faults.application import Change, apply_changes
from testbed.links.emulator import Applied
from testbed.processes import NodeProcess
from testbed.runner.run_context import RunContext
from testbed.runner.triggered import apply_triggered, waits
from testbed.steady_clock import steady_clock

SAVE_PERIOD_S = 5.0
END_TIMEOUT_S = 20.0
"""How long to wait until a process that was just killed is gone."""
START_TIMEOUT_S = 20.0
READY_TIMEOUT_S = 20.0


class ProcessStarter:
    """Starts processes during the run: a context manager.

    On exit it abandons processes that are not ready yet, so that none begins afterwards.
    """

    def __init__(self, context: RunContext) -> None:
        self._context = context
        self._waiting: set[asyncio.Task[None]] = set()  # held only to keep the tasks alive

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        waiting = tuple(self._waiting)
        for task in waiting:
            task.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)

    async def start(self, name: str, *, on_empty_disk: bool = False) -> None:
        """Start a process that does not run. Raises TestbedError if it still runs, or does not start.

        on_empty_disk: remove its storage first.
        """
        processes = self._context.processes
        before = processes.nodes.get(name)
        if before is not None and not await processes.wait_progress(
            lambda: not before.running, END_TIMEOUT_S
        ):
            raise TestbedError(f"{name} still runs")
        if on_empty_disk:
            shutil.rmtree(self._context.specs[name]["storage"], ignore_errors=True)  # it may not exist
            self._context.disks.free_all(name)
            self._context.slow_disks.restore_all(name)
        spec = spec_for_restart(self._context.specs[name], self._context.contacts, processes.starts(name))
        if spec["clock"] is not None:
            spec = {**spec, "clock": asdict(self._context.clocks.current(name, time.time_ns() // 1000))}
        node = processes.start(spec)
        if not await processes.wait_progress(lambda: node.pid is not None, START_TIMEOUT_S):
            raise TestbedError(f"{name} did not start")
        task = asyncio.create_task(self._go_when_ready(node))
        self._waiting.add(task)
        task.add_done_callback(self._waiting.discard)

    async def _go_when_ready(self, node: NodeProcess) -> None:
        processes = self._context.processes
        ready_or_ended = await processes.wait_progress(
            lambda: node.ready or node.exit is not None, READY_TIMEOUT_S
        )
        if node.running and node.ready:
            now_ns = time.time_ns()
            processes.go_late(node.name, now_ns, self._context.record.content.times.zero_ns or now_ns)
        elif not ready_or_ended:
            self._context.record.problem(
                f"{node.name} was not ready {READY_TIMEOUT_S:.0f} s after it was started"
            )


Until = Callable[[RunContext, ProcessStarter, int], Coroutine[Any, Any, None]]
"""Runs from time 0 (CLOCK_REALTIME ns) until the drivers have to stop."""


async def until_duration_is_over(context: RunContext, starter: ProcessStarter, zero_ns: int) -> None:
    """Apply the plan's faults, for the plan's duration."""
    now_ns = steady_clock()
    apply = applier(context, starter)
    changes = apply_changes(
        [numbered for numbered in context.changes if not waits(numbered[1])],
        zero_ns=zero_ns,
        apply=apply,
        record=context.record.change,
        now_ns=now_ns,
    )
    faults = asyncio.create_task(changes)
    waiting = [numbered for numbered in context.changes if waits(numbered[1])]
    until_ns = {index: zero_ns + context.plan.waits_until_us(index) * 1000 for index, _ in waiting}
    triggered = [
        asyncio.create_task(apply_triggered(some, until_ns, context.processes, apply, context.record.change))
        for some in ([waiting] if waiting else [])
    ]
    try:
        end_ns = zero_ns + context.plan.duration_us * 1000
        while (left_ns := end_ns - now_ns()) > 0:
            await asyncio.sleep(min(left_ns / 1e9, SAVE_PERIOD_S))
            await context.record.save_aside()
        await faults  # all are due by now: on a busy machine some may be late
    finally:
        faults.cancel()
        for task in triggered:
            task.cancel()
        await asyncio.gather(*triggered, return_exceptions=True)  # stopped processes continue


def applier(context: RunContext, starter: ProcessStarter) -> Callable[[Change], Awaitable[Applied]]:
    """Return the function that applies a change. It raises TestbedError if that fails."""

    async def apply(change: Change) -> Applied:
        if isinstance(change, LinkChange):
            return context.network.change(change)  # not in a thread: on a busy machine a switch is slow
        return await _change_process(context, starter, change)

    return apply


async def _change_process(context: RunContext, starter: ProcessStarter, change: ProcessChange) -> Applied:
    requested_ns = time.time_ns()
    if change.action in STARTING:
        await starter.start(change.process, on_empty_disk=change.action is ProcessAction.REPLACE)
        return Applied(requested_ns, time.time_ns())
    return ACTIONS[change.action](context, change) or Applied(requested_ns, time.time_ns())


def _separate(context: RunContext, change: ProcessChange) -> Applied:
    apart = change.action is ProcessAction.SEPARATE
    return context.network.separate(change.process, change.peers, apart=apart)


def _reset(context: RunContext, change: ProcessChange) -> Applied:
    return context.network.reset(change.process, change.peers, change.port)


def _block(context: RunContext, change: ProcessChange) -> Applied:
    return context.network.block(change)


def _slow_disk(context: RunContext, change: ProcessChange) -> None:
    assert change.slower_us is not None  # always set for this action
    context.slow_disks.slow(change.process, change.fault, change.slower_us)


def _set_clock(context: RunContext, change: ProcessChange) -> None:
    spec = context.specs[change.process]
    clock = context.clocks.change(change, time.time_ns() // 1000)
    if spec["clock"] is None and spec["program"] is not None:
        raise TestbedError(f"a program's clock is prepared at its start: name {change.process} in `faults:`")
    spec["clock"] = asdict(clock)
    context.processes.set_clock(change.process, clock)


STARTING = {ProcessAction.RESTART, ProcessAction.REPLACE, ProcessAction.JOIN}

ACTIONS: Mapping[ProcessAction, Callable[[RunContext, ProcessChange], Applied | None]] = {
    ProcessAction.KILL: lambda run, it: run.processes.signal(it.process, signal.SIGKILL, ends=True),
    ProcessAction.STOP: lambda run, it: run.processes.signal(it.process, signal.SIGSTOP, ends=False),
    ProcessAction.CONTINUE: lambda run, it: run.processes.signal(it.process, signal.SIGCONT, ends=False),
    ProcessAction.GIVE_UP: lambda run, it: run.processes.give_up(it.process),
    ProcessAction.LEAVE: lambda run, it: run.processes.leave(it.process),
    ProcessAction.SEPARATE: _separate,
    ProcessAction.REJOIN: _separate,
    ProcessAction.RESET: _reset,
    ProcessAction.BLOCK: _block,
    ProcessAction.UNBLOCK: _block,
    ProcessAction.FILL: lambda run, it: run.disks.fill(it.process, it.fault),
    ProcessAction.UNFILL: lambda run, it: run.disks.free(it.process, it.rule),
    ProcessAction.SLOW_DISK: _slow_disk,
    ProcessAction.UNSLOW_DISK: lambda run, it: run.slow_disks.restore(it.process, it.rule),
    ProcessAction.CLOCK: _set_clock,
    ProcessAction.UNCLOCK: _set_clock,
    ProcessAction.THROTTLE: lambda run, it: run.throttles.change(it),
    ProcessAction.UNTHROTTLE: lambda run, it: run.throttles.change(it),
}
"""The meaning of each action for a real process, except to start one. Each raises TestbedError."""
