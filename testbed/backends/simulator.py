"""Execution of a plan in virtual time, which leaves a run directory like that of a real run.

The nodes' own state machines run in `node.sim`, over the plan's links and with its faults. There are no
captures and no probes. The result does not depend on this machine: the same plan gives the same deliveries,
logs and times. Times begin at a fixed epoch (`simulated_files`). The phases and the messages to the follower
are those of `testbed.runner`.

Not modelled: what `node.sim` does not model (processors, congestion control, queues that overflow), and
jitter and losses within a region.
"""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from experiments.faults.kinds import kind_named
from experiments.planned.draining import settles_by_time
from experiments.planned.plan import Plan
from experiments.records.run_record import SIMULATOR, Outcome, RunPhase, RunRecord
from experiments.records.run_record import SimulationCost as SimulationRecord
from experiments.records.rundir import RunDirectory
from node.core import machine as m
from node.core.errors import NodeFailureError
from node.sim.process import Node, Observer
from node.sim.sim_network import Build, Sent
from node.systems import build_machine
from testbed.backends.simulated_files import Files, time_ns
from testbed.backends.simulated_network import SimulatedFaults, make_network
from testbed.backends.simulated_processes import SimulatedProcesses
from testbed.backends.triggers import Triggers
from testbed.errors import TestbedError
from testbed.interrupts import Interrupts, noted_interrupts
from testbed.links.abilities import check_virtual
from testbed.runner.record import RunRecordWriter
from testbed.runner.run_control import Follow, RunResult
from topologies.errors import InputError

READY_US = 30_000_000  # until all processes are ready
LEAD_US = 2_000_000  # from "go" to time 0, so that gossip has mixed the views of thousands of newcomers
STEP_US = 50_000  # pause between checks whether a phase is over
CHECK_US = 1_000_000  # pause between checks of the machines' invariants
WAIT_US = 1_000_000  # longest wait for a link at the end of the workload without a problem
TELL_PERIOD_S = 0.5  # of this machine's time, between two reports of progress
YOUNG_OBJECTS = 500_000  # allocations before Python looks for cycles: messages are many, cycles few


def simulate(run: RunDirectory, follow: Follow, *, build: Build = build_machine) -> RunRecord:
    """Execute the run whose plan is in run.json, report its progress to the follower, and return its record.

    build: creates the nodes' machines; tests pass broken ones to check that a run reveals them. Raises
    TestbedError if the run cannot start or a machine raises, KeyboardInterrupt when the user interrupts it.
    The run's directory then has the results so far, with that outcome.
    """
    record = RunRecordWriter(run, follow)
    try:
        with infrequent_collections(), noted_interrupts() as interrupts:
            PhasedSimulation(record.content.plan, record, Files(run), build, interrupts).execute()
    except NodeFailureError as error:
        record.note(outcome=Outcome.CRASHED)
        record.problem(str(error))
        record.save()
        raise TestbedError(f"{error} (the run: {run.path})") from error
    except BaseException as error:
        by_user = isinstance(error, KeyboardInterrupt)
        record.note(outcome=Outcome.INTERRUPTED if by_user else Outcome.CRASHED)
        record.problem(
            "stopped by the user before its time" if by_user else f"{type(error).__name__}: {error}"
        )
        record.save()
        raise
    else:
        return record.content
    finally:
        record.close()


class Simulator:
    """The backend for virtual time."""

    def adapted(self, plan: Plan) -> Plan:
        """Return any plan of state machines, unchanged; see `Backend`."""
        for field, is_used, problem in (
            ("traffic", plan.traffic, "needs real packets, which virtual time does not have"),
            ("system", plan.programs, f"{plan.system} is a system of programs, which run on real processes"),
            ("topology.routing", plan.routing, "routes in virtual time are fixed"),
            *(
                (f"faults.{each.name}", reason, reason)
                for each in plan.faults
                if (reason := kind_named(each.kind).only_real)
            ),
        ):
            if is_used:
                raise InputError(plan.experiment, None, field, f"{problem}: use --on local")
        check_virtual(plan)
        return plan

    def check(self, out: Path, plan: Plan) -> None:
        """Check nothing: there are no captures and no programs; see `Backend`."""

    def execute(self, run: RunDirectory, follow: Follow) -> RunResult:
        """Execute a run; see `Backend`."""
        return RunResult(simulate(run, follow), by_user=False)


class PhasedSimulation:
    """One run, phase by phase. files: receives the nodes' records. sent: see
    `sim_network.SimulatedNetwork`.
    """

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
        self._plan = plan
        self._interrupts = interrupts
        self._record = record
        self._files = files
        observer = Observer(files.record, files.log, files.measure, self._ready, self._finished)
        self._triggers = Triggers(plan, self._triggered, sent)
        shown = self._triggers.sent if self._triggers.any else sent
        self._network = make_network(plan, record.directory, observer, build, shown)
        self._processes = SimulatedProcesses(self._network, plan.declared)
        self._faults = SimulatedFaults(plan, self._network, self._processes)
        self.zero_us = self._checked_us = 0
        self.overload: str | None = None  # the link that got more traffic than it carries
        self._runs = False  # whether nodes that become ready may start publishing
        self._reported_s = 0.0
        self._reported: tuple[int, float] = (0, 0.0)  # last report: time, and delivered events per client
        self._began_s = time.monotonic()
        for process in plan.processes:
            self._files.begin(process.host)

    def execute(self) -> None:
        """Run all phases. Raises TestbedError if the nodes do not become ready."""
        self._record.note(links=SIMULATOR)
        self._record.time("started_ns", time_ns(0))
        self._record.time("network_ns", time_ns(0))
        self._record.phase(RunPhase.BUILDING)
        try:
            self._start_all()
            self._run_workload()
            self._drain()
        finally:
            self._files.write()
            self._note_work()
        self._end()

    # --- Phases

    def _start_all(self) -> None:
        for process in self._plan.processes:
            if process.name not in self._plan.joining:
                self._processes.start(process.name)
        nodes = list(self._network.nodes.values())
        if not self._until(READY_US, lambda: all(node.ready for node in nodes)):
            late = [node.spec.name for node in nodes if not node.ready]
            raise TestbedError(
                f"not ready after {READY_US // 1_000_000} s of virtual time: {', '.join(late[:10])}"
                + (f" and {len(late) - 10} more" if len(late) > 10 else "")
            )
        self._record.time("ready_ns", self._now_ns)

    def _run_workload(self) -> None:
        zero_us = self.zero_us = self.now_us + LEAD_US
        self._record.time("zero_ns", time_ns(zero_us))
        self._faults.begin_traces(zero_us)
        for name in list(self._network.nodes):
            self._network.go(name, zero_us)
        self._runs = True
        self._record.phase(RunPhase.RUNNING)
        duration_us = self._plan.duration_us
        self._record.notify("running", zero_ns=time_ns(zero_us), duration_us=duration_us)
        for index, change in enumerate(self._plan.changes):
            self._advance(zero_us + change.at_us)
            if change.when is not None:
                self._triggers.arm(index, change.when)
            else:
                self._change(index)
        self._advance(zero_us + duration_us)
        self._triggers.disarm()
        self._runs = False
        self._note_waits()
        self._network.broadcast(m.StopDrivers())
        self._record.time("stopped_ns", self._now_ns)

    def _drain(self) -> None:
        self._record.phase(RunPhase.DRAINING)
        contract = self._plan.declared.contract
        if settles_by_time(contract):
            self._advance(self.now_us + min(contract.settle_us, self._plan.drain_us))
        if self._until(self._plan.drain_us, self._processes.everything_delivered):
            self._record.time("drained_ns", self._now_ns)
        self._record.notify("drained")

    def _end(self) -> None:
        self._processes.finish()
        self._advance(self.now_us + STEP_US)
        self._files.write()
        self._record.note(processes=self._processes.records(self._plan))
        self._record.time("ended_ns", self._now_ns)
        self._record.note(outcome=Outcome.COMPLETED)
        self._record.phase(RunPhase.COLLECTED)

    def _change(self, index: int) -> None:
        self._record.change(self._faults.execute(index, self._plan.changes[index], self._now_ns))

    def _note_waits(self) -> None:
        """Record a problem if more is sent than a link carries, so that packets still wait for it."""
        longest = self._network.longest_wait()
        if longest is not None and longest[1] > WAIT_US:
            (a, b), wait_us = longest
            self.overload = (
                f"more was sent from {a} to {b} than their link carries: at the end of the workload, "
                f"packets had to wait {wait_us / 1e6:.3g} s for it"
            )
            self._record.problem(self.overload)

    def _triggered(self, index: int) -> None:
        """Schedule a triggered change after the current instant, unless it is too late for it."""
        if self.now_us < self.zero_us + self._plan.waits_until_us(index):
            self._network.clock.at(self.now_us, self._change, index)

    # --- Time

    @property
    def now_us(self) -> int:
        """Virtual time."""
        return self._network.clock.now_us

    @property
    def _now_ns(self) -> int:
        return time_ns(self.now_us)

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

    # --- Reports

    def _report_progress(self) -> None:
        now_s = time.monotonic()
        if now_s - self._reported_s < TELL_PERIOD_S:
            return
        self._reported_s = now_s
        before_us, before = self._reported
        delivered = self._processes.delivered_per_client()
        rate = (delivered - before) * 1e6 / max(1, self.now_us - before_us)
        self._reported = (self.now_us, delivered)
        self._record.notify(
            "progress",
            events_per_s=max(0, round(rate)),
            delivered=round(delivered),
            now_ns=self._now_ns,
        )

    def _note_work(self) -> None:
        """Record the cost of the simulation."""
        wall_s = round(time.monotonic() - self._began_s, 3)
        work = SimulationRecord(wall_s, self.now_us / 1e6, self._network.clock.actions)
        self._record.note(simulation=work)

    def _ready(self, node: Node) -> None:
        """Let a node start that becomes ready during the run."""
        if self._runs:
            self._network.clock.at(self.now_us, self._go, node)

    def _go(self, node: Node) -> None:
        if self._network.nodes.get(node.spec.name) is node:
            self._network.go(node.spec.name, self.now_us, self.now_us - self.zero_us)

    def _finished(self, node: Node) -> None:
        self._processes.ended(node.spec.name, code=0, signal=None)


@contextmanager
def infrequent_collections() -> Iterator[None]:
    """Make garbage collection rare: millions of messages are created without forming a cycle.

    Objects that a process with many runs has frozen itself stay frozen: scanning them for every run would
    cost a short run a fifth of its time.
    """
    before = gc.get_threshold()
    freezes = not gc.get_freeze_count()
    gc.collect()
    if freezes:
        gc.freeze()
    gc.set_threshold(YOUNG_OBJECTS, 20, 1000)
    try:
        yield
    finally:
        gc.set_threshold(*before)
        if freezes:
            gc.unfreeze()
