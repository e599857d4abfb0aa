"""An experiment file: the topology, the processes on it, the faults with their times, and the expectations.

Validation covers what the file alone determines; `experiments.checks` checks it against the topology.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, ValidationError, WithJsonSchema, model_validator

from experiments.campaigns.sweep import (
    VARIANTS_MAX,
    axes,
    refuse_unusable,
    refuse_unusable_variants,
    too_many,
    value_text,
)
from experiments.campaigns.sweep_expectations import SweepExpectationField
from experiments.churn import Arrivals, Departures, with_names
from experiments.contract import loosened
from experiments.declared import Declared, declared_by, declared_with, is_known_system, programs_of
from experiments.expectations import ExpectationField
from experiments.faults.fault import ExperimentFault
from experiments.faults.kinds import Faults, path_to
from experiments.faults.links import Restore
from experiments.faults.processes import ProcessFault
from experiments.nemesis import Nemesis
from experiments.overrides import with_value
from experiments.parameters import complete_parameters, known_systems, roles_of
from experiments.planned.churn_schedule import ChurnSchedule, churn_schedule
from experiments.planned.nemesis_schedule import expand
from experiments.records.summary import path_problem
from experiments.roles import DEFAULT, Roles, as_in_file
from experiments.traffic import TrafficField, check_times
from experiments.workloads.kinds import AnyWorkload
from experiments.workloads.stream import StreamWorkload
from topologies.document import Document
from topologies.errors import InputError
from topologies.model import Topology
from topologies.quantities import DURATION
from topologies.strict import (
    DurationUs,
    Name,
    SizeBytes,
    StrictModel,
    WholeNumber,
    problem,
    problems_under,
    spelled,
    suggestion,
)

FULL = "full"
NONE = "none"
PATH_MAX = 4096
SNAPLEN_BYTES_MIN = 96  # room for the headers of Ethernet, IPv6 and TCP with options


def _name_or_content(given: Any) -> Any:
    if isinstance(given, dict) or (isinstance(given, str) and len(given) <= PATH_MAX):
        return given
    raise problem(f"should be a name, a path, or a topology's fields, not {given!r:.40}")


NamedOrWritten = Annotated[str | dict[str, Any], BeforeValidator(_name_or_content)]


def _unless_full(given: Any) -> Any:
    return None if given == FULL else given


Snaplen = Annotated[
    SizeBytes | None,
    Field(ge=SNAPLEN_BYTES_MIN, le=262_144),
    BeforeValidator(_unless_full),
    WithJsonSchema({"type": "string", "default": FULL, "examples": [FULL, "128B"]}),
]


VariantName = Annotated[
    str, *spelled("[a-z][a-z0-9_.-]*", "a letter of a-z, then any of a-z, 0-9, _, . and -", 60)
]


class CaptureSettings(StrictModel):
    """Capture settings. `captures: none` captures nothing: the analysis then has only the delivery logs."""

    snaplen_bytes: Snaplen = None
    """The part of each packet that is kept: full, or a size. Truncated packets cannot be decoded."""
    where: tuple[Literal["hosts", "gateways"], ...] = ("hosts", "gateways")
    """hosts: every node's interface. gateways: both sides of every wide-area link."""

    @model_validator(mode="before")
    @classmethod
    def _none(cls, given: Any) -> Any:
        return {"where": []} if given == NONE else given


DURATION_US_MIN = 1_000_000
DURATION_US_MAX = 24 * 3600 * 1_000_000
EXPECTATIONS_MAX = 200
REPEAT_MAX = 1_000
CHURN_MAX = 20  # groups of arrivals, and of departures
VARIED = ("parameters", "roles", "workload")  # sections that a nemesis may draw
CongestionControl = Annotated[str, *spelled("[a-z][a-z0-9_]{0,14}", "the name of one, as cubic", 15)]


ArrivalGroups = Annotated[tuple[Arrivals, ...], Field(max_length=CHURN_MAX), AfterValidator(with_names)]
DepartureGroups = Annotated[tuple[Departures, ...], Field(max_length=CHURN_MAX), AfterValidator(with_names)]


class Paper(StrictModel):
    """The source of an experiment in the literature."""

    document: str = Field(max_length=100)
    """The paper."""
    section: str = Field("", max_length=100)
    """The section that describes it."""
    figures: tuple[int | str, ...] = Field((), max_length=20)
    """The figures that show its results."""


class Experiment(StrictModel):
    """One experiment. Quantities carry units, as in `15ms`, `10gbit`, `20000/s`, `10B`."""

    name: Name
    """Its name in lists, run directories and reports."""
    description: str = Field("", max_length=500)
    """One line for lists."""
    paper: Paper | None = None
    """The paper that it reproduces."""
    topology: NamedOrWritten
    """The network: a name, a path to a file relative to this one, or the content of such a file."""
    system: str
    """The system under test: its name, or a path to its file, relative to this one."""
    parameters: dict[str, Any] = Field(default_factory=dict)
    """The system's own parameters that differ from its defaults."""
    images: dict[str, str] = Field(default_factory=dict)
    """Container images in which programs of roles run, in place of those in the system's file; paths are
    relative to this one.
    """
    contract: dict[str, Any] = Field(default_factory=dict)
    """A weaker contract than the system promises: order, delivery, survives, settle."""
    roles: Roles
    """Processes of each role in each region: counts, or counts by region and `default`."""
    workload: AnyWorkload
    """The load of each driver."""
    duration_us: DurationUs = Field(ge=DURATION_US_MIN, le=DURATION_US_MAX)
    """The time for which drivers publish."""
    drain_us: DurationUs = Field(10_000_000, le=DURATION_US_MAX)
    """The longest wait after that until every client has everything."""
    seed: WholeNumber = Field(1, ge=0)
    """The seed of all randomness; `--seed` overrides it. Each further repetition has the next seed."""
    congestion_control: CongestionControl | None = None
    """TCP's congestion control on all hosts, such as `reno` or `cubic`; default: the machine's."""
    captures: CaptureSettings = Field(default_factory=CaptureSettings)
    """The capture settings, or `none`."""
    faults: Faults = ()
    """The faults and their times."""
    arrivals: ArrivalGroups = ()
    """Processes that arrive during the run: how many, when."""
    departures: DepartureGroups = ()
    """Processes that leave: how many, when, how, and when they come back."""
    nemesis: Nemesis | None = None
    """Random faults that the seed determines, in addition to `faults`."""
    expect: tuple[ExpectationField, ...] = Field((), max_length=EXPECTATIONS_MAX)
    """Conditions on summary.json for the run to pass."""
    expect_sweep: tuple[SweepExpectationField, ...] = Field((), max_length=EXPECTATIONS_MAX)
    """Conditions on the results of all runs of a sweep, or of all repetitions."""
    on: Literal["local", "simulator"] = "local"
    """The default for `--on`: real processes on this machine, or virtual time."""
    sweep: dict[str, list[Any]] = Field(default_factory=dict)
    """Values to try for fields, by dotted path, such as {roles.driver: [1, 2, 4]}; every combination runs."""
    variants: dict[VariantName, dict[str, Any]] = Field(default_factory=dict, max_length=VARIANTS_MAX)
    """Settings to try, each with a name: values of fields by dotted path, as for `--set`. Swept as `variant`;
    a variant whose programs are not installed is left out.
    """
    repeat: WholeNumber = Field(1, ge=1, le=REPEAT_MAX)
    """The number of runs of each combination."""
    traffic: TrafficField = ()
    """Background traffic: flows between regions, counted separately."""

    @property
    def axes(self) -> dict[str, list[Any]]:
        """The swept axes: the variants by name, then values of fields."""
        return axes(self.sweep, self.variants)

    def all_parameters(self) -> dict[str, Any]:
        """Return all parameters of the system, defaults included, by names with units."""
        return complete_parameters(self.system, self.parameters)

    def declared(self) -> Declared:
        """Return the system's declaration, with the contract as this experiment loosens it."""
        declared = declared_with(self.system, self.all_parameters(), self.workload.kind)
        return replace(declared, contract=loosened(declared.contract, self.contract))

    def all_faults(self, topology: Topology, seed: int) -> tuple[ExperimentFault, ...]:
        """Return the faults of a run with this seed, the random ones last."""
        if self.nemesis is None:
            return self.faults
        by_chance = expand(
            self.nemesis,
            self.roles,
            topology,
            self.duration_us,
            declared=declared_by(self.system),
            others=self.faults,
            spared=self.churn(topology, seed).processes,
            seed=seed,
        )
        return (*self.faults, *by_chance)

    def churn(self, topology: Topology, seed: int) -> ChurnSchedule:
        """Return the arrivals and departures in a run with this seed."""
        return churn_schedule(
            self.arrivals,
            self.departures,
            self.roles,
            tuple(topology.regions),
            self.duration_us,
            spared=frozenset(fault.process for fault in self.faults if isinstance(fault, ProcessFault)),
            seed=seed,
        )

    def drawn(self, seed: int) -> Self:
        """Return this experiment with the settings that its nemesis draws for this seed."""
        vary = self.nemesis.vary if self.nemesis is not None else {}
        if not vary:
            return self
        rng = Random(f"vary {seed}")  # noqa: S311  reproducible, not secret
        return self._with({path: rng.choice(values) for path, values in vary.items()})

    def _with(self, values: Mapping[str, Any]) -> Self:
        """Set these values by dotted path and remove `nemesis.vary`."""
        data = self.to_json()
        del data["nemesis"]["vary"]
        data["roles"] = as_in_file(data["roles"])
        document = Document("", data, {})
        for path, value in values.items():
            document = with_value(document, path, value, "nemesis.vary")
        return type(self).model_validate(document.data)

    def to_json(self) -> dict[str, Any]:
        """Convert to plain JSON in the form of the file; `Experiment.model_validate` reads it back."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        self._check_system()
        self._check_faults()
        self._check_churn()
        with problems_under("traffic"):
            check_times(self.traffic, self.duration_us)
        traffic = [entry.name for entry in self.traffic]
        for number, expectation in enumerate(self.expect):
            found = path_problem(expectation.path, (fault.name for fault in self.faults), traffic)
            if found:
                raise problem(found, "expect", number)
        return self

    @model_validator(mode="after")
    def _sweep_is_usable(self) -> Self:
        with problems_under("sweep"):
            refuse_unusable(self.sweep)
        with problems_under("variants"):
            refuse_unusable_variants(self.variants)
        if found := too_many(self.axes, self.repeat):
            raise problem(found, "sweep")
        for number, expectation in enumerate(self.expect_sweep if self.axes else ()):
            if found := expectation.problem(self.axes, (fault.name for fault in self.faults)):
                raise problem(found, "expect_sweep", number)
        return self

    def _check_system(self) -> None:
        if not is_known_system(self.system):
            raise problem(
                f"there is no system {self.system}{suggestion(self.system, known_systems())}"
                " (`cutset --system-module FILE` adds one)",
                "system",
            )
        with problems_under("parameters"):
            self.all_parameters()
        with problems_under("contract"):
            self.declared()
        known = roles_of(self.system)
        for role in self.images:
            if programs_of(self.system) is None:
                raise problem(f"the nodes of {self.system} are not programs", "images")
            if role not in known:
                raise problem(f"{self.system} has no such role{suggestion(role, known)}", "images", role)
        for region, counts in self.roles.items():
            for role, count in counts.items():
                if role not in known and region in known:
                    first = f"regions come first: write {role}: {{{region}: {count}}}"
                    raise problem(f"is a role, and {first}", "roles", region)
                if role not in known:
                    path = (role,) if region == DEFAULT else (region, role)
                    raise problem(f"{self.system} has no such role{suggestion(role, known)}", "roles", *path)
        declared = declared_by(self.system)
        if self.workload.kind not in declared.workloads:
            takes = " and ".join(declared.workloads)
            raise problem(f"{self.system} takes {takes}, not {self.workload.kind}", "workload", "kind")
        most, workload = declared.streams_max, self.workload
        if most is not None and isinstance(workload, StreamWorkload) and workload.most_streams > most:
            raise problem(f"{self.system} has at most {most} of each region", "workload", "streams")
        if not any(sum(counts.values()) for counts in self.roles.values()):
            raise problem("there are no processes", "roles")

    def _check_faults(self) -> None:
        for number, fault in enumerate(self.faults):
            if fault.at_us >= self.duration_us:
                how = f"fault {fault.name}: --set {path_to(number, self.faults)}.at=\u2026 moves it"
                late = _too_late(fault.at_us, self.duration_us)
                raise problem(f"{late} ({how})", "faults", number, "at")
            if isinstance(fault, Restore) and isinstance(fault.what, str):
                self._check_restored(number, fault, fault.what)
        if self.nemesis is not None:
            if found := self.nemesis.time_problem(self.duration_us):
                raise problem(found, "nemesis")
            known = roles_of(self.system)
            for number, role in enumerate(self.nemesis.roles):
                if role not in known:
                    raise problem(
                        f"{self.system} has no such role{suggestion(role, known)}", "nemesis", "roles", number
                    )
            self._check_varied(self.nemesis.vary)

    def _check_churn(self) -> None:
        taken = {fault.name for fault in self.faults}
        declared = declared_by(self.system)
        for field, groups in (("arrivals", self.arrivals), ("departures", self.departures)):
            for number, group in enumerate(groups):
                if found := group.problem(declared, self.duration_us):
                    raise problem(found[1], field, number, found[0])
                if group.name in taken:
                    raise problem(f"the name {group.name} is taken", field, number, "name")
                taken.add(group.name)

    def _check_varied(self, vary: Mapping[str, Sequence[Any]]) -> None:
        """Check that each value by itself gives a valid experiment."""
        for path, values in vary.items():
            with problems_under("nemesis", "vary"):
                if path.split(".")[0] not in VARIED:
                    raise problem(f"does not begin with {', '.join(VARIED)}", path)
                if not values:
                    raise problem("has no values to draw from", path)
                for value in values:
                    try:
                        self._with({path: value})
                    except (InputError, ValidationError) as error:
                        message = (
                            error.errors()[0]["msg"] if isinstance(error, ValidationError) else error.problem
                        )
                        raise problem(f"with {value_text(value)}: {message}", path) from None

    def _check_restored(self, number: int, restore: ExperimentFault, name: str) -> None:
        start = next((fault.at_us for fault in self.faults if fault.name == name), 0)
        if start > restore.at_us:
            begins = DURATION.format(start)
            message = f"{restore.name} ends {name}, which begins only at {begins}: move it after that"
            raise problem(message, "faults", number, "at")


def _too_late(at_us: int, end_us: int) -> str:
    at, end = (f"{time_us / 1e6:.12g} s" for time_us in (at_us, end_us))
    if at_us == end_us:
        return f"{at} is already the end of the run"
    return f"{at} is after the end of the run, {end}"
