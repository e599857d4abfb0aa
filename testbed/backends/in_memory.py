"""Execution of a plan in virtual time, in memory and without files, for thousands of runs.

The simulation equals that of `testbed.backends.simulator` to the message; only the destination of the nodes'
records differs. An error of a state machine ends the run and is its result.
"""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.planned.plan import Plan
from experiments.records.run_record import Outcome, RunRecord, Times
from experiments.records.rundir import RunDirectory
from node.core import machine as m
from node.core.errors import NodeFailureError
from node.sim.process import Node
from node.sim.sim_network import Build, Sent
from node.systems import build_machine
from testbed.backends.message_watcher import MessageWatcher
from testbed.backends.simulated_files import Files, time_ns
from testbed.backends.simulator import infrequent_collections
from testbed.backends.virtual_world import VirtualWorld
from testbed.execution.record import RunRecordWriter
from testbed.interrupts import noted_interrupts

NOWHERE = Path("/nonexistent")  # path of a run without files; nothing is read or written there


@dataclass(frozen=True, slots=True)
class LogLine:
    """A log line of a process, with its virtual time in microseconds."""

    time_us: int
    process: str
    event: str
    level: str
    fields: dict[str, Any]


@dataclass(slots=True)
class HostOutput:
    """The records of one host's process over all generations: its files without headers."""

    records: bytearray = field(default_factory=bytearray)
    marks: bytearray = field(default_factory=bytearray)
    measures: bytearray = field(default_factory=bytearray)


@dataclass(frozen=True, slots=True)
class RunInMemory:
    """A run that was executed.

    failure: the error of the machine that ended it, or why it did not begin. overload: the link that got more
    traffic than it carries.
    """

    record: RunRecord
    hosts: dict[str, HostOutput]
    logs: list[LogLine]
    failure: str | None = None
    overload: str | None = None

    def time_us(self, t_ns: int) -> int:
        """Return a time of the record as microseconds of virtual time."""
        return (t_ns - time_ns(0)) // 1000


def simulate_in_memory(
    plan: Plan,
    described: dict[str, Any],
    *,
    build: Build = build_machine,
    watcher: MessageWatcher | None = None,
) -> RunInMemory:
    """Execute a plan. described: the `experiment` and `topology` as in run.json.

    Raises KeyboardInterrupt if the user interrupts it, TestbedError if the nodes do not become ready.
    """
    record, files = _Record(plan, described), _Files()
    sent: Sent | None = None if watcher is None else watcher.sent
    failure = None
    with infrequent_collections(), noted_interrupts() as interrupts:
        simulation = VirtualWorld(plan, record, files, build, interrupts, sent=sent)
        if watcher is not None:
            watcher.begin(simulation)
        try:
            simulation.execute()
        except NodeFailureError as error:
            failure = str(error)
            record.note(outcome=Outcome.CRASHED)
    return RunInMemory(record.content, files.outputs(plan), files.lines, failure, simulation.overload)


class _Record(RunRecordWriter):
    """A run's record that is not written to a file."""

    def __init__(self, plan: Plan, described: dict[str, Any]) -> None:
        self.directory = RunDirectory(NOWHERE)
        self.content = RunRecord(
            plan,
            run=plan.experiment,
            **described,
            seed=plan.seed,
            links=plan.links_kind,
            times=Times(started_ns=time_ns(0)),
        )

    def notify(self, did: str, **fields: Any) -> None:
        """Discard the message, because no CLI follows the run."""

    def save(self) -> None:
        """Write nothing."""


class _Files(Files):
    """The records of the nodes, by host."""

    def __init__(self) -> None:
        super().__init__(RunDirectory(NOWHERE))
        self.lines: list[LogLine] = []

    def log(self, node: Node, time_us: int, line: m.Log) -> None:
        """Keep a log line."""
        self.lines.append(LogLine(time_us, node.spec.name, line.event, line.level, dict(line.fields)))

    def write(self) -> None:
        """Write nothing: all records stay in memory."""

    def begin(self, host: str) -> None:
        """Create no file."""

    def outputs(self, plan: Plan) -> dict[str, HostOutput]:
        """Return the records of each host's processes, generation by generation."""
        found = {process.host: HostOutput() for process in plan.processes}
        for node, files in self._files.items():
            output = found[node.spec.host]
            output.records += files.records
            output.marks += files.marks
            output.measures += files.measures
        return found
