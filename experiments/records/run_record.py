"""The record of a run: run.json as one typed, validated model. All who read or write it do so here.

Types, ranges, names and references are checked when it is read, and what is wrong is one line with the field.
Applied changes name their planned change by its index; `carried_out` joins the two, nowhere else. Records of
schema 1 described the change instead: they are joined once, when they are read.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields, replace
from enum import StrEnum
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, ClassVar

from pydantic import AfterValidator, ConfigDict, Field

from experiments.expectations import Expectation
from experiments.files.whole_files import write_whole
from experiments.planned.changes import Change
from experiments.planned.plan import Plan, as_now, check_plan
from experiments.records.json_files import parse_json, read_text
from experiments.records.observations import (
    CaptureRecord,
    ChangeRecord,
    CpuSample,
    LinkCounts,
    MachineShare,
    Probe,
    ProcessRecord,
    Shipment,
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
"""The kind of links of a run in virtual time."""
_OF_APPLIED = ("index", "requested_ns", "applied_ns", "machine")
_OPTIONAL = ("simulation", "inventory", "shaping", "shell", "assignment")


class Phase(StrEnum):
    """How far a run got."""

    PLANNED = "planned"
    BUILDING = "building"
    RUNNING = "running"
    DRAINING = "draining"
    COLLECTED = "collected"


class Outcome(StrEnum):
    """How a run ended. A crash is the testbed's, not a node's: that is a problem of a completed run."""

    COMPLETED = "completed"
    INTERRUPTED = "interrupted"
    CRASHED = "crashed"


@dataclass(frozen=True, slots=True)
class Times:
    """When something happened; None: not yet, or never."""

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
    """What TCP was on the hosts."""

    congestion_control: Text | None = None


@dataclass(frozen=True, slots=True)
class Simulation:
    """What a run in virtual time cost."""

    wall_s: Annotated[float, Field(ge=0)] = 0.0
    virtual_s: Annotated[float, Field(ge=0)] = 0.0
    actions: Count = 0


@dataclass(frozen=True, slots=True)
class ShellRecord:
    """Of a run at the prompt."""

    with_faults: bool  # whether those of the experiment's file were to happen, too


@dataclass(frozen=True, slots=True)
class InventoryRecord:
    """Which machines a run was on: their inventory, and the digest of the code that they had."""

    file: str
    code: str


@dataclass(frozen=True, slots=True)
class PaperReference:
    """Where in the literature an experiment comes from."""

    document: Text = ""
    section: Text = ""
    figures: tuple[int | Text, ...] = ()


def _comparison(text: str) -> str:
    Expectation.parse(text)
    return text


@dataclass(frozen=True, slots=True)
class Request:
    """The fields of an experiment's file that readers of a run ask for by name."""

    name: Text = ""
    description: str = ""
    paper: PaperReference = PaperReference()
    expect: tuple[Annotated[Text, AfterValidator(_comparison)], ...] = ()
    contract: dict[Text, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """What ran, and how far it got.

    experiment, topology: resolved, as their files would have them. left_out: by part, why the directory no
    longer has it. assignment: on one of several machines, its part of the plan (`testbed.assignment`).
    """

    __pydantic_config__: ClassVar[ConfigDict] = STRICT

    plan: Plan
    schema: Annotated[int, Field(ge=1, le=SCHEMA)] = SCHEMA
    run: Text = ""
    experiment: Free = field(default_factory=dict)
    topology: Free = field(default_factory=dict)
    seed: Seed = 0
    links: Text = ""  # what carried them; before that is known, as asked
    commit: Text | None = None
    versions: dict[Text, Text | None] = field(default_factory=dict)
    machine: MachineRecord = MachineRecord()
    tcp: TcpRecord = TcpRecord()
    phase: Phase = Phase.PLANNED
    outcome: Outcome | None = None
    times: Times = Times()
    problems: tuple[str, ...] = ()
    changes: tuple[ChangeRecord, ...] = ()
    processes: tuple[ProcessRecord, ...] = ()
    captures: tuple[CaptureRecord, ...] = ()
    probes: tuple[Probe, ...] = ()
    counters: tuple[LinkCounts, ...] = ()
    cpu: tuple[CpuSample, ...] = ()
    links_without_emulator: tuple[Name, ...] = ()
    machines: tuple[MachineShare, ...] = ()
    shipped: tuple[Shipment, ...] = ()
    left_out: dict[str, str] = field(default_factory=dict)
    simulation: Simulation | None = None
    inventory: InventoryRecord | None = None
    shaping: Text | None = None
    shell: ShellRecord | None = None
    assignment: Free | None = None

    @property
    def carried_out(self) -> tuple[tuple[Change, ChangeRecord], ...]:
        """Each planned change with what came of it, in the order in which they were recorded."""
        return tuple((self.plan.changes[applied.index], applied) for applied in self.changes)

    @property
    def listed_captures(self) -> tuple[CaptureRecord, ...]:
        """The captures that there should be: a run that crashed early has only those of its plan."""
        return self.captures or tuple(
            CaptureRecord(each.file, each.host, each.link, each.side, each.interface)
            for each in self.plan.captures
        )

    @property
    def wires(self) -> frozenset[str]:
        """Names of captures that are there to compare clocks by: what they show is in others too."""
        return frozenset(each.file for each in self.plan.captures if each.wire)

    @property
    def machine_of(self) -> dict[str, str]:
        """The machine of each host, of a run on several machines."""
        return {host: machine.name for machine in self.machines for host in machine.hosts}

    @property
    def simulated(self) -> bool:
        """Whether it was carried out in virtual time."""
        return self.simulation is not None or self.links == SIMULATOR

    @property
    def request(self) -> Request:
        """What the experiment's file says, as far as readers ask for it by name."""
        return read_request(self.experiment, "run.json")


def record_from_json(content: Any, file: object = "run.json") -> RunRecord:
    """The record that `record_to_json` wrote, or an older version. Raises InputError with file and field."""
    if isinstance(content, dict):
        content = {**content, "plan": as_now(content["plan"])} if "plan" in content else content
        content = _indexed(content) if content.get("schema", 1) == 1 else content
    return _consistent(from_json(RunRecord, content, file), file)


def record_from_text(text: bytes, file: object = "run.json") -> RunRecord:
    """The same from the text: what this version wrote makes no JSON objects on the way."""
    record = from_text(RunRecord, text)
    return record_from_json(parse_json(text, file), file) if record is None else _consistent(record, file)


def _consistent(record: RunRecord, file: object) -> RunRecord:
    """Raises InputError if parts of a record contradict each other."""
    read_request(record.experiment, file)
    check_plan(record.plan, file, "plan.")
    for place, problem in _contradictions(record):
        raise InputError(str(file), None, place, problem)
    return replace(record, schema=SCHEMA)


def read_request(experiment: Mapping[str, Any], file: object) -> Request:
    """What of an experiment readers ask for by name. file: where it stood. Raises InputError."""
    known = {each.name for each in fields(Request)}
    asked = {key: value for key, value in experiment.items() if key in known and value is not None}
    return from_json(Request, asked, file)


def _contradictions(record: RunRecord) -> Iterator[tuple[str, str]]:
    """Field and problem."""
    planned = len(record.plan.changes)
    for number, change in enumerate(record.changes):
        if change.index >= planned:
            yield f"changes.{number}.index", f"the plan has {planned} changes, no change {change.index}"
    links = {link.name for link in record.plan.links}
    for number, counts in enumerate(record.counters):
        if counts.link not in links:
            yield f"counters.{number}.link", f"the plan has no {counts.link}"


def _indexed(content: dict[str, Any]) -> dict[str, Any]:
    """A record of schema 1, whose changes said what they changed: the k-th of a kind is the k-th planned."""
    if "links_without_middle" in content:
        content = {**content, "links_without_emulator": content["links_without_middle"]}
        del content["links_without_middle"]
    changes, plan = content.get("changes"), content.get("plan")
    planned = plan.get("changes") if isinstance(plan, dict) else None
    if not isinstance(changes, list) or not isinstance(planned, list):
        return content
    if not all(isinstance(change, dict) for change in (*changes, *planned)):
        return content
    places: dict[str, list[int]] = defaultdict(list)
    for index, change in enumerate(planned):
        places[_described(change)].append(index)
    seen: Counter[tuple[str, str]] = Counter()
    found = []
    for change in changes:
        described = _described(change)
        turn = (described, str(change.get("machine")))  # a change may be carried out on each machine
        left = places[described][seen[turn] :]
        seen[turn] += 1
        times = {key: change[key] for key in _OF_APPLIED if key in change}
        found.append({"index": left[0] if left else len(planned), **times})
    return {**content, "changes": found}


def _described(change: dict[str, Any]) -> str:
    keys = ("process", "action") if "process" in change else ("link", "direction")
    return str([change.get(key) for key in ("fault", *keys)])


def read_record(path: Path) -> RunRecord:
    """The content of run.json. Raises InputError if it is missing, unreadable or malformed.

    A command reads it several times; it is parsed once for as long as it stays as it is.
    """
    text = read_text(path)
    key = (path, sha256(text).digest())
    if key not in _read:
        found = record_from_text(text, path)
        _read.clear()
        _read[key] = found
    return _read[key]


_read: dict[tuple[Path, bytes], RunRecord] = {}
"""What was read last, by its file and the digest of its text."""


def record_to_json(record: RunRecord) -> dict[str, Any]:
    """The record as plain JSON."""
    content = to_json(record)
    return {key: value for key, value in content.items() if value is not None or key not in _OPTIONAL}


def record_text(record: RunRecord, *, indent: int | None = 1) -> str:
    """The content of run.json."""
    return json.dumps(record_to_json(record), indent=indent, allow_nan=False) + "\n"


def write_record(path: Path, record: RunRecord) -> None:
    """Write run.json so that a crash at any moment leaves the old content or the new. Raises OSError."""
    write_whole(path, record_text(record))
