"""The processes and the network of a run in virtual time; see `testbed.execution.phases.World`.

Time passes by computing, so nothing here waits for an event loop.
"""

import time
from collections.abc import Callable, Coroutine
from typing import Any

from experiments.planned.plan import Plan
from experiments.records.run_record import SIMULATOR, Outcome, SimulationCost
from node.core import machine as m
from node.sim.process import Node, Observer
from node.sim.sim_network import Build, Sent
from testbed.backends.simulated_files import Files, time_ns
from testbed.backends.simulated_network import SimulatedFaults, make_network
from testbed.backends.simulated_processes import SimulatedProcesses
from testbed.backends.triggers import Triggers
from testbed.errors import TestbedError
from testbed.execution.phases import completed, execute
from testbed.execution.record import RunRecordWriter
from testbed.interrupts import Interrupts

READY_US = 30_000_000  # until all processes are ready
LEAD_US = 2_000_000  # from "go" to time 0, so that gossip has mixed the views of thousands of newcomers
STEP_US = 50_000  # pause between checks whether a phase is over
CHECK_US = 1_000_000  # pause between checks of the machines' invariants
WAIT_US = 1_000_000  # longest wait for a link at the end of the workload without a problem
REPORT_PERIOD_S = 0.5  # of this machine's time, between two reports of progress


class VirtualWorld:
    """One run. files: receives the nodes' records. sent: see `sim_network.SimulatedNetwork`."""

    def __init__(
        self,
        plan: Plan,
        record: RunRecordWriter,
        files: Files,
        build: Build,
        interrupts: Interrupts,
        *,
        sent: Sent | None = None,
    ) -> None:
        self.plan, self.record = plan, record
        self._interrupts = interrupts
        self._files = files
        observer = Observer(files.record, files.log, files.measure, self._ready, self._finished)
        self._triggers = Triggers(plan, self._triggered, sent)
        shown = self._triggers.sent if self._triggers.any else sent
        self._network = make_network(plan, record.directory, observer, build, shown)
        self._processes = SimulatedProcesses(self._network, plan.declared)
        self._faults = SimulatedFaults(plan, self._network, self._processes)
        record.now_ns = lambda: time_ns(self.now_us)
        self.zero_us = self._checked_us = 0
        self.overload: str | None = None  # the link that got more traffic than it carries
        self._runs = False  # whether nodes that become ready may start publishing
        self._reported_s = 0.0
        self._reported: tuple[int, float] = (0, 0.0)  # last report: time, and delivered events per client
        self._began_s = time.monotonic()
        for process in plan.processes:
            self._files.begin(process.host)

    def execute(self) -> None:
        """Execute the run. Raises TestbedError if the nodes do not become ready."""
        try:
            completed(execute(self))
        except BaseException:
            self._note_results()
            raise

    # --- What the phases need

    async def build(self) -> bool:
        """Start the processes; see `World`."""
        self.record.note(links=SIMULATOR)
        self.record.time("started_ns")
        self.record.time("network_ns")
        for process in self.plan.processes:
            if process.name not in self.plan.joining:
                self._processes.start(process.name)
        nodes = list(self._network.nodes.values())
        if not self._until(READY_US, lambda: all(node.ready for node in nodes)):
            late = [node.spec.name for node in nodes if not node.ready]
            raise TestbedError(
                f"not ready after {READY_US // 1_000_000} s of virtual time: {', '.join(late[:10])}"
                + (f" and {len(late) - 10} more" if len(late) > 10 else "")
            )
        return True

    async def time_0(self) -> int:
        """Return time 0; see `World`."""
        self.zero_us = self.now_us + LEAD_US
        return time_ns(self.zero_us)

    def begin(self, zero_ns: int) -> None:
        """Let links follow their traces, and nodes publish; see `World`."""
        self._faults.begin_traces(self.zero_us)
        for name in list(self._network.nodes):
            self._network.go(name, self.zero_us)
        self._runs = True

    async def work(self, zero_ns: int) -> None:
        """Apply the plan's changes; see `World`."""
        for index, change in enumerate(self.plan.changes):
            self._advance(self.zero_us + change.at_us)
            if change.when is not None:
                self._triggers.arm(index, change.when)
            else:
                self._change(index)
        self._advance(self.zero_us + self.plan.duration_us)
        self._note_waits()

    def stop_publishers(self) -> None:
        """Let publishers stop; no waiting change is applied any more; see `World`."""
        self._triggers.disarm()
        self._runs = False
        self._network.broadcast(m.StopDrivers())

    async def drain(self, drained: Callable[[float], Coroutine[Any, Any, None]]) -> None:
        """Drain as long as planned; see `World`."""
        await drained(self.plan.drain_us / 1e6)

    async def sleep(self, seconds: float) -> None:
        """Advance virtual time; see `World`."""
        self._advance(self.now_us + round(seconds * 1e6))

    def elapsed_s(self) -> float:
        """Return virtual time; see `World`."""
        return self.now_us / 1e6

    async def all_silent(self, within_s: float) -> bool:
        """Wait for the last acknowledgement; see `World`."""
        return self._until(round(within_s * 1e6), self._processes.all_silent)

    async def all_delivered(self, within_s: float) -> bool:
        """Wait for the last delivery; see `World`."""
        return self._until(round(within_s * 1e6), self._processes.all_delivered)

    async def end(self) -> Outcome:
        """End the processes, and write what they leave; see `World`."""
        self._processes.finish()
        self._advance(self.now_us + STEP_US)
        self._note_results()
        self.record.note(processes=self._processes.records(self.plan))
        return Outcome.COMPLETED

    # --- Changes

    def _change(self, index: int) -> None:
        self.record.change(self._faults.execute(index, self.plan.changes[index], self.record.now_ns()))

    def _triggered(self, index: int) -> None:
        """Schedule a triggered change after the current instant, unless it is too late for it."""
        if self.now_us < self.zero_us + self.plan.waits_until_us(index):
            self._network.clock.at(self.now_us, self._change, index)

    def _ready(self, node: Node) -> None:
        """Let a node start that becomes ready during the run."""
        if self._runs:
            self._network.clock.at(self.now_us, self._go, node)

    def _go(self, node: Node) -> None:
        if self._network.nodes.get(node.spec.name) is node:
            self._network.go(node.spec.name, self.now_us, self.now_us - self.zero_us)

    def _finished(self, node: Node) -> None:
        self._processes.ended(node.spec.name, code=0, signal=None)

    # --- Time

    @property
    def now_us(self) -> int:
        """Virtual time."""
        return self._network.clock.now_us

    def _advance(self, until_us: int) -> None:
        """Advance virtual time, and report progress."""
        while self.now_us < until_us:
            self._network.run(min(until_us, self.now_us + STEP_US))
            if self.now_us >= self._checked_us + CHECK_US:
                self._checked_us = self.now_us
                self._network.check()
            self._report_progress()
            self._interrupts.check()

    def _until(self, within_us: int, condition: Callable[[], bool]) -> bool:
        ends_us = self.now_us + within_us
        while not condition():
            if self.now_us >= ends_us:
                return False
            self._advance(min(ends_us, self.now_us + STEP_US))
        return True

    # --- Results

    def _report_progress(self) -> None:
        now_s = time.monotonic()
        if now_s - self._reported_s < REPORT_PERIOD_S:
            return
        self._reported_s = now_s
        before_us, before = self._reported
        delivered = self._processes.delivered_per_client()
        rate = (delivered - before) * 1e6 / max(1, self.now_us - before_us)
        self._reported = (self.now_us, delivered)
        self.record.notify(
            "progress",
            events_per_s=max(0, round(rate)),
            delivered=round(delivered),
            now_ns=self.record.now_ns(),
        )

    def _note_waits(self) -> None:
        """Record a problem if more is sent than a link carries, so that packets still wait for it."""
        longest = self._network.longest_wait()
        if longest is not None and longest[1] > WAIT_US:
            (a, b), wait_us = longest
            self.overload = (
                f"more was sent from {a} to {b} than their link carries: at the end of the workload, "
                f"packets had to wait {wait_us / 1e6:.3g} s for it"
            )
            self.record.problem(self.overload)

    def _note_results(self) -> None:
        """Write the nodes' records, and record the cost of the simulation."""
        self._files.write()
        wall_s = round(time.monotonic() - self._began_s, 3)
        self.record.note(simulation=SimulationCost(wall_s, self.now_us / 1e6, self._network.clock.actions))
