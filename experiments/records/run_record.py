"""The record of a run: run.json as one typed, validated model. All readers and writers use it.

Reading checks types, ranges, names and references; an error is one line with the field. An applied change
names its planned change by index; only `changes_applied` joins the two.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, ConfigDict, Field

from experiments.expectations import Expectation
from experiments.files.whole_files import write_whole
from experiments.planned.changes import Change
from experiments.planned.plan import Plan, check_plan
from experiments.records.json_files import parse_json, read_text
from experiments.records.observations import (
    CaptureRecord,
    ChangeRecord,
    CpuSample,
    LinkCounts,
    MachineShare,
    ProcessRecord,
    RoundTripProbe,
    RouteChange,
    Shipment,
    ThrottleRecord,
)
from experiments.records.validated_json import (
    STRICT,
    Count,
    Free,
    Name,
    Seed,
    Text,
    TimeNs,
    from_json,
    from_text,
    to_json,
)
from topologies.errors import InputError

SCHEMA = 2
SIMULATOR = "simulator"
"""The kind of links in virtual time."""
_OPTIONAL = ("simulation", "inventory", "shaping", "shell", "assignment")


class RunPhase(StrEnum):
    """The progress of a run."""

    PLANNED = "planned"
    BUILDING = "building"
    RUNNING = "running"
    DRAINING = "draining"
    COLLECTED = "collected"


class Outcome(StrEnum):
    """The end of a run. A crash is the testbed's; a node's crash is a problem of a completed run."""

    COMPLETED = "completed"
    INTERRUPTED = "interrupted"
    CRASHED = "crashed"


@dataclass(frozen=True, slots=True)
class Times:
    """Times of the phases; None: not reached."""

    started_ns: TimeNs | None = None
    network_ns: TimeNs | None = None
    ready_ns: TimeNs | None = None
    zero_ns: TimeNs | None = None
    stopped_ns: TimeNs | None = None
    drained_ns: TimeNs | None = None
    ended_ns: TimeNs | None = None


@dataclass(frozen=True, slots=True)
class MachineRecord:
    """The machine that started the run, as far as known."""

    hostname: Text | None = None
    cpus: Count | None = None
    memory_bytes: Count | None = None


@dataclass(frozen=True, slots=True)
class TcpRecord:
    """TCP settings of the hosts."""

    congestion_control: Text | None = None


@dataclass(frozen=True, slots=True)
class SimulationCost:
    """The cost of a run in virtual time."""

    wall_s: Annotated[float, Field(ge=0)] = 0.0
    virtual_s: Annotated[float, Field(ge=0)] = 0.0
    actions: Count = 0


@dataclass(frozen=True, slots=True)
class ShellRecord:
    """The record of a run at the prompt."""

    with_faults: bool  # whether the experiment's faults were also scheduled


@dataclass(frozen=True, slots=True)
class InventoryRecord:
    """The machines of a run: their inventory, and the digest of the code on them."""

    file: str
    code: str


@dataclass(frozen=True, slots=True)
class PaperReference:
    """The source of an experiment in the literature."""

    document: Text = ""
    section: Text = ""
    figures: tuple[int | Text, ...] = ()


def _comparison(text: str) -> str:
    Expectation.parse(text)
    return text


@dataclass(frozen=True, slots=True)
class ExperimentRequest:
    """The fields of an experiment's file that readers of a run need."""

    name: Text = ""
    description: str = ""
    paper: PaperReference = PaperReference()
    expect: tuple[Annotated[Text, AfterValidator(_comparison)], ...] = ()
    contract: dict[Text, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The record of a run.

    experiment, topology: resolved, in the form of their files. left_out: parts that the directory no longer
    has, with the reason. assignment: on one of several machines, its part of the plan (`testbed.assignment`).
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    plan: Plan
    schema: Annotated[int, Field(ge=SCHEMA, le=SCHEMA)] = SCHEMA
    run: Text = ""
    experiment: Free = field(default_factory=dict)
    topology: Free = field(default_factory=dict)
    seed: Seed = 0
    links: Text = ""  # the kind in use; until it is known, the requested one
    commit: Text | None = None
    versions: dict[Text, Text | None] = field(default_factory=dict)
    machine: MachineRecord = MachineRecord()
    tcp: TcpRecord = TcpRecord()
    phase: RunPhase = RunPhase.PLANNED
    outcome: Outcome | None = None
    times: Times = Times()
    problems: tuple[str, ...] = ()
    changes: tuple[ChangeRecord, ...] = ()
    processes: tuple[ProcessRecord, ...] = ()
    throttles: tuple[ThrottleRecord, ...] = ()
    captures: tuple[CaptureRecord, ...] = ()
    probes: tuple[RoundTripProbe, ...] = ()
    counters: tuple[LinkCounts, ...] = ()
    routes: tuple[RouteChange, ...] = ()  # of gateways with a routing protocol
    cpu: tuple[CpuSample, ...] = ()
    links_without_emulator: tuple[Name, ...] = ()
    machines: tuple[MachineShare, ...] = ()
    shipped: tuple[Shipment, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)
    simulation: SimulationCost | None = None
    inventory: InventoryRecord | None = None
    shaping: Text | None = None
    shell: ShellRecord | None = None
    assignment: Free | None = None

    @property
    def changes_applied(self) -> tuple[tuple[Change, ChangeRecord], ...]:
        """Each applied change with its planned one, in the order in which they were recorded."""
        return tuple((self.plan.changes[applied.index], applied) for applied in self.changes)

    @property
    def listed_captures(self) -> tuple[CaptureRecord, ...]:
        """The expected captures; if the run crashed early, those of its plan."""
        return self.captures or tuple(
            CaptureRecord(each.file, each.host, each.link, each.side, each.interface)
            for each in self.plan.captures
        )

    @property
    def wires(self) -> frozenset[str]:
        """Names of captures that serve only to compare clocks: their packets are in other captures too."""
        return frozenset(each.file for each in self.plan.captures if each.wire)

    @property
    def machine_of(self) -> dict[str, str]:
        """The machine of each host, for a run on several machines."""
        return {host: machine.name for machine in self.machines for host in machine.hosts}

    @property
    def simulated(self) -> bool:
        """Whether it ran in virtual time."""
        return self.simulation is not None or self.links == SIMULATOR

    @property
    def request(self) -> ExperimentRequest:
        """The fields of the experiment's file that readers need."""
        return read_request(self.experiment, "run.json")


def record_from_json(content: Any, file: object = "run.json") -> RunRecord:
    """Read a record. Raises InputError with file and field."""
    return _consistent(from_json(RunRecord, content, file), file)


def record_from_text(text: bytes, file: object = "run.json") -> RunRecord:
    """Read a record from text; text of this version is parsed without intermediate JSON objects."""
    record = from_text(RunRecord, text)
    return record_from_json(parse_json(text, file), file) if record is None else _consistent(record, file)


def _consistent(record: RunRecord, file: object) -> RunRecord:
    """Check a record for contradictions. Raises InputError."""
    read_request(record.experiment, file)
    check_plan(record.plan, file, "plan.")
    for place, problem in _contradictions(record):
        raise InputError(str(file), None, place, problem)
    return record


def read_request(experiment: Mapping[str, Any], file: object) -> ExperimentRequest:
    """Read the fields of an experiment that readers need. file: named in errors. Raises InputError."""
    known = {each.name for each in fields(ExperimentRequest)}
    asked = {key: value for key, value in experiment.items() if key in known and value is not None}
    return from_json(ExperimentRequest, asked, file)


def _contradictions(record: RunRecord) -> Iterator[tuple[str, str]]:
    """Yield field and problem of each contradiction."""
    planned = len(record.plan.changes)
    for number, change in enumerate(record.changes):
        if change.index >= planned:
            yield f"changes.{number}.index", f"the plan has {planned} changes, no change {change.index}"
    links = {link.name for link in record.plan.links}
    for number, counts in enumerate(record.counters):
        if counts.link not in links:
            yield f"counters.{number}.link", f"the plan has no {counts.link}"
    regions = {region.name for region in record.plan.regions}
    ends = {(end, link.name) for link in record.plan.links for end in (link.a, link.b) if link.kind == "wan"}
    for number, route in enumerate(record.routes):
        if unknown := {route.region, route.target} - regions:
            yield f"routes.{number}", f"the plan has no region {min(unknown)}"
        elif route.link and (route.region, route.link) not in ends:
            yield f"routes.{number}.link", f"no WAN link {route.link} ends at {route.region}"


def read_record(path: Path) -> RunRecord:
    """Read run.json. Raises InputError if it is missing, unreadable or malformed.

    A command reads it several times; it is parsed once while its content is unchanged.
    """
    text = read_text(path)
    key = (path, sha256(text).digest())
    if key not in _read:
        found = record_from_text(text, path)
        _read.clear()
        _read[key] = found
    return _read[key]


_read: dict[tuple[Path, bytes], RunRecord] = {}
"""The record read last, by its file and the digest of its text."""


def record_to_json(record: RunRecord) -> dict[str, Any]:
    """Convert the record to plain JSON."""
    content = to_json(record)
    return {key: value for key, value in content.items() if value is not None or key not in _OPTIONAL}


def record_text(record: RunRecord, *, indent: int | None = 1) -> str:
    """Return the content of run.json."""
    return json.dumps(record_to_json(record), indent=indent, allow_nan=False) + "\n"


def write_record(path: Path, record: RunRecord) -> None:
    """Write run.json atomically. Raises OSError."""
    write_whole(path, record_text(record))
