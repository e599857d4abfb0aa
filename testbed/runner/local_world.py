"""The processes and the network of this machine; see `testbed.execution.phases.World`.

Several machines may execute one plan, each a part; they wait for each other at barriers.
"""

import asyncio
import contextlib
import os
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from experiments.declared import Trait
from experiments.planned.draining import highest, lowest, reached
from experiments.records.observations import CpuSample
from experiments.records.run_record import Outcome
from testbed.assignment import assignment_from_json, whole_plan
from testbed.execution.record import RunRecordWriter
from testbed.faults.application import LATE_NS
from testbed.runner import monitor
from testbed.runner.barrier import Barrier, Barriers
from testbed.runner.building import build, start_all
from testbed.runner.ending import collect
from testbed.runner.run_context import RunContext, Termination
from testbed.runner.running import ProcessStarter, Until

LEAD_NS = 200_000_000
"""From "go" to time 0, so that every driver receives it before."""
FIFO_PRIORITY = 1
PROGRESS_PERIOD_S = 0.5
RATE_WINDOW_S = 2.0  # two reports of a node that publishes: it reports once a second
COUNTS_PERIOD_S = 0.1
INTERRUPTED_DRAIN_S = 2.0
"""A user who interrupts a run does not want to wait long."""


class LocalWorld:
    """One run on this machine. until: lasts as long as the workload. stack: releases what was built."""

    def __init__(
        self,
        record: RunRecordWriter,
        termination: Termination,
        barriers: Barriers,
        until: Until,
        stack: AsyncExitStack,
    ) -> None:
        self.record, self.plan = record, record.content.plan
        self._termination = termination
        self._barriers = barriers
        self._until = until
        self._stack = stack
        self._watching = AsyncExitStack()
        self._context: RunContext

    async def build(self) -> bool:
        """Build the part of the plan that is assigned to this machine; see `World`."""
        plan, given = self.plan, self.record.content.assignment
        assignment = whole_plan(plan) if given is None else assignment_from_json(given)
        self._context = context = await build(
            plan, assignment, self.record, self._termination, barriers=self._barriers, stack=self._stack
        )
        self.plan = context.plan
        is_ready = await self._termination.or_done(start_all(context))
        await self._stack.enter_async_context(self._watching)
        await self._watching.enter_async_context(
            _background(_watch(context), _report_progress(context), _watch_launcher(context))
        )
        return is_ready and not self._termination.requested

    async def time_0(self) -> int | None:
        """Agree on time 0 with the other machines, if there are any; see `World`."""
        release: Mapping[str, Any] = {}

        async def meet() -> None:
            nonlocal release
            release = await self._barriers.wait(Barrier.READY)

        if not await self._termination.or_done(meet()):
            return None
        zero_ns = time.time_ns() + LEAD_NS if self._barriers.alone else int(release["zero_ns"])
        late_ns = time.time_ns() - zero_ns
        if late_ns > LATE_NS:
            self.record.problem(
                f"time 0 was received {late_ns / 1e9:.1f} s late: all changes due by then are late"
            )
        return zero_ns

    def begin(self, zero_ns: int) -> None:
        """Send "go" to the processes; see `World`."""
        raise_priority(self._context.processes.launcher_pid)
        self._context.measure_processors(at_zero=True)
        self._context.network.begin_traces(zero_ns)
        self._context.processes.go(zero_ns)
        self._context.traffic.begin(zero_ns)

    async def work(self, zero_ns: int) -> None:
        """Apply the plan's changes, or those that the user asks for at the prompt; see `World`."""
        async with ProcessStarter(self._context) as starter:
            await self._termination.or_done(self._until(self._context, starter, zero_ns))

    def stop_publishers(self) -> None:
        """Let publishers stop; see `World`."""
        self._context.processes.stop_drivers()

    async def drain(self, drained: Callable[[float], Coroutine[Any, Any, None]]) -> None:
        """Drain as long as planned, or shortly if the user has interrupted the run; see `World`."""
        bound_s = self.plan.drain_us / 1e6
        if self._termination.crashed:
            return
        if self._termination.requested:
            await drained(min(bound_s, INTERRUPTED_DRAIN_S))
        else:
            await self._termination.or_done(drained(bound_s))

    async def sleep(self, seconds: float) -> None:
        """Sleep; see `World`."""
        await asyncio.sleep(seconds)

    def elapsed_s(self) -> float:
        """Return CLOCK_MONOTONIC; see `World`."""
        return time.monotonic()

    async def all_silent(self, within_s: float) -> bool:
        """Wait for the last acknowledgement; see `World`."""
        return await self._context.processes.wait_progress(
            lambda: all(driver.silent for driver in self._context.having(Trait.PUBLISHER)), within_s
        )

    async def all_delivered(self, within_s: float) -> bool:
        """Wait for the last delivery, on all machines; see `World`."""
        if self._barriers.alone:
            return await self._context.processes.wait_progress(self._all_here, within_s)
        reporting = asyncio.create_task(_report_counts(self._context))
        try:
            return bool((await self._barriers.wait(Barrier.DRAINED, within_s)).get("drained"))
        finally:
            reporting.cancel()

    async def end(self) -> Outcome:
        """End the processes, probe the network again, and end the captures; see `World`."""
        await self._watching.aclose()
        if self._termination.reason:
            self.record.problem(self._termination.reason)
        await collect(self._context)
        return self._termination.outcome

    def _all_here(self) -> bool:
        published = highest(node.published for node in self._context.processes.history)
        delivered = [client.delivered for client in self._context.having(Trait.SUBSCRIBER)]
        return reached(published, delivered, self.plan.declared.contract)


def raise_priority(launcher_pid: int) -> None:
    """Raise the priority of this process, which applies faults, and of the launcher, which restarts nodes.

    So faults are on time even if all processors are busy. Both need little processor time. Real-time
    scheduling needs privileges (sched(7)); processes started later do not inherit it.
    """
    with contextlib.suppress(PermissionError):
        for process in (0, launcher_pid):
            os.sched_setscheduler(
                process, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(FIFO_PRIORITY)
            )


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
        await asyncio.sleep(COUNTS_PERIOD_S)


@asynccontextmanager
async def _background(*work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run these coroutines in the background; cancel them at the end and raise their errors."""
    tasks = [asyncio.create_task(each) for each in work]
    try:
        yield
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception):
            raise result


async def _watch(context: RunContext) -> None:
    termination, record = context.termination, context.record
    await monitor.watch(
        record.directory.path,
        failure=context.emulator.failure,
        on_busy=lambda t_ns, busy: record.note(cpu=(*record.content.cpu, CpuSample(t_ns, busy))),
        on_disk_low=lambda free: termination.interrupt(
            f"stopped before its time: only {free >> 20} MiB of disk are left at {record.directory.path}"
        ),
        on_failure=termination.crash,
        on_clock_set=lambda step_ns: record.problem(_clock_set(step_ns, record.content.times.zero_ns)),
    )


def _clock_set(step_ns: int, zero_ns: int | None) -> str:
    """Return the problem text for a step of the clock that stamps captures, records and run.json."""
    since_s = None if zero_ns is None else (time.time_ns() - step_ns - zero_ns) / 1e9
    when = "before time 0" if since_s is None or since_s < 0 else f"{since_s:.1f} s after time 0"
    return f"the wall clock was set by {step_ns / 1e9:+.3f} s, {when}: times before and after do not compare"


async def _watch_launcher(context: RunContext) -> None:
    await context.processes.launcher_ended.wait()
    context.termination.crash("the launcher of the nodes died, and all nodes with it")


async def _report_progress(context: RunContext) -> None:
    """Report events per second to the CLI, averaged over clients and the last `RATE_WINDOW_S`."""
    samples: deque[tuple[float, float]] = deque(maxlen=1 + round(RATE_WINDOW_S / PROGRESS_PERIOD_S))
    samples.append((time.monotonic(), _delivered_per_client(context)))
    while True:
        await asyncio.sleep(PROGRESS_PERIOD_S)
        samples.append((time.monotonic(), _delivered_per_client(context)))
        (first_s, first), (last_s, last) = samples[0], samples[-1]
        rate = max(0.0, (last - first) / (last_s - first_s))
        context.record.notify("progress", events_per_s=round(rate), delivered=round(last))


def _delivered_per_client(context: RunContext) -> float:
    clients = context.having(Trait.SUBSCRIBER)
    return sum(sum(client.delivered.values()) for client in clients) / max(1, len(clients))
