"""Random faults that every correct system survives: `nemesis:` in an experiment.

This module holds the settings: which faults, how many and how long. `experiments.planned.nemesis_schedule`
makes the schedule of a seed.

Links are lost only while the network stays connected. A link counts only if it is up in both directions.
"""

from collections.abc import Sequence, Set
from random import Random
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from experiments.faults.fault import ExperimentFault
from experiments.faults.links import Outage
from experiments.planned.changes import OFFSET_US_MAX
from topologies.model import Link, Topology
from topologies.round_trips import carriers
from topologies.routes import connected, joined
from topologies.strict import DurationUs, Fraction, SizeBytes, StrictModel, WholeNumber, problem

Kind = Literal[
    "cut", "one-way-cut", "flap", "delay", "loss", "duplicate", "corrupt", "crash", "pause", "clock",
    "throttle", "memory", "power", "power-and-disks",
]  # fmt: skip

MEMORY_BYTES_MIN = 1_000_000  # of a limit
SHARES: tuple[Kind, ...] = ("loss", "duplicate", "corrupt")
ON_LINKS: tuple[Kind, ...] = ("cut", "one-way-cut", "flap", "delay", *SHARES)
ON_REGIONS: tuple[Kind, ...] = ("power", "power-and-disks")
LOSING_LINKS: tuple[Kind, ...] = ("cut", "one-way-cut")
"""The kinds that are permanent with `stays: connected`."""
USUAL: tuple[Kind, ...] = ("cut", "one-way-cut", "delay", "loss", "crash", "pause")
FAULTS_MAX = 200
STEP_US = 1_000  # drawn times are whole milliseconds; times after a trigger are in microseconds


def whole_ms(us: int) -> int:
    """Round a time in microseconds down to a whole millisecond."""
    return us // STEP_US * STEP_US


def ms_text(us: int) -> str:
    """Return a time as in a file: in milliseconds if they are whole, else in microseconds."""
    return f"{us}us" if us % STEP_US else f"{us // STEP_US}ms"


class CountRange(StrictModel):
    """A range from which a number is drawn."""

    least: WholeNumber = Field(alias="from", ge=1, le=FAULTS_MAX)
    """The least number."""
    most: WholeNumber = Field(alias="to", ge=1, le=FAULTS_MAX)
    """The largest number."""

    @model_validator(mode="after")
    def _in_order(self) -> Self:
        if self.least > self.most:
            raise problem("is more than `to`", "from")
        return self


def _number_or_range(given: Any) -> Any:
    if isinstance(given, (int, dict, CountRange)):
        return given
    raise problem(f"should be a number or a range, such as {{from: 1, to: 3}}, not {given!r:.40}")


def _count_tag(given: Any) -> str:
    return "<number>" if isinstance(given, int) else "<range>"


Count = Annotated[
    Annotated[WholeNumber, Field(ge=1, le=FAULTS_MAX), Tag("<number>")]
    | Annotated[CountRange, Tag("<range>")],
    Discriminator(_count_tag),
    BeforeValidator(_number_or_range),
]


class Nemesis(StrictModel):
    """The settings of random faults."""

    kinds: tuple[Kind, ...] = Field(USUAL, min_length=1)
    """cut, one-way-cut, flap (cut repeatedly), delay, loss, duplicate and corrupt of links; crash (SIGKILL,
    restarted later), pause (SIGSTOP), clock (set forward or back), throttle (little processor time) and
    memory (little of it; then killed, unless the kernel has done so, and restarted) of processes; power (a
    whole region falls silent, its processes are killed, and all are restarted later) and power-and-disks (on
    empty disks) of regions."""
    vary: dict[str, list[Any]] = Field(default_factory=dict, max_length=20)
    """Settings that are also drawn: values of parameters, roles and workload by dotted path, such as
    {parameters.durable: [false, true]}. Every run has one value of each."""
    stays: Literal["connected"] | None = None
    """connected: cuts and one-way cuts are permanent, and drawn only while links that are up in both
    directions still connect all regions. Default: at the end all links are as configured."""
    roles: tuple[str, ...] = ()
    """The roles whose processes crash and pause; default: all."""
    faults: Count = 10
    """The number of disturbances, or a range to draw from; fewer if they do not all fit."""
    start_us: DurationUs = 1_000_000
    """The start of the first disturbance, at the earliest."""
    shortest_us: DurationUs = Field(200_000, ge=STEP_US)
    """The shortest disturbance."""
    longest_us: DurationUs = Field(3_000_000, ge=STEP_US)
    """The longest disturbance."""
    settle_us: DurationUs = 3_000_000
    """The pause after a disturbance of a process, in which it catches up."""
    quiet_us: DurationUs = 5_000_000
    """The time without disturbances before the drivers stop."""
    delay_us: DurationUs = Field(200_000, gt=0)
    """The largest delay of a link."""
    loss: Fraction = Field(0.05, gt=0, le=0.5)
    """The largest share of a link's packets that are lost, duplicated or damaged."""

    offset_us: DurationUs = Field(3_000_000, ge=STEP_US, le=OFFSET_US_MAX)
    """The largest step of a clock, forward or back."""

    processor: Fraction = Field(0.1, alias="cpu", ge=0.01, le=0.5)
    """The smallest share of a processor for a throttled process; the largest is 50%."""

    memory_bytes: SizeBytes = Field(20_000_000, ge=MEMORY_BYTES_MIN)
    """The largest memory limit of a process; the smallest is 1MB."""

    selects: Fraction = 0.0
    """The share of delays, losses, duplicates and corruption that only some packets of the link have: those
    from or to one process of the link's regions, or one of `ports`."""

    ports: tuple[Annotated[WholeNumber, Field(ge=1, le=65_535)], ...] = Field((), max_length=20)
    """TCP or UDP ports from which `selects` also draws; not in virtual time."""

    @property
    def processor_per_mille(self) -> tuple[int, int]:
        """The smallest and the largest share of a processor for a throttled process, in thousandths."""
        return round(self.processor * 1_000), 500

    def time_problem(self, duration_us: int) -> str | None:
        """Return why a run of this duration has no time for any disturbance, or None."""
        if self.start_us + self.shortest_us + self.quiet_us > duration_us:
            return "start, shortest and quiet together are longer than the run"
        return None

    def selection(self, rng: Random, processes: Sequence[str]) -> tuple[str, int]:
        """Draw the packets of a link that a disturbance affects: a process or "", and a port or 0.

        processes: those of the link's regions.
        """
        if not self.selects or not (processes or self.ports) or rng.random() >= self.selects:
            return "", 0
        port = rng.choice((0, *self.ports)) if processes else rng.choice(self.ports)
        return rng.choice(processes) if processes and (not port or rng.random() < 0.5) else "", port

    @property
    def count_range(self) -> tuple[int, int]:
        """The least and the largest number of disturbances."""
        given = self.faults
        return (given.least, given.most) if isinstance(given, CountRange) else (given, given)

    def topology_problem(self, topology: Topology, others: Sequence[ExperimentFault]) -> str | None:
        """Return why no drawn cut can keep this topology connected, or None. others: the other faults."""
        links = LosableLinks(topology, others)
        if self.stays is None:
            return None
        if not links.connected:
            return f"{topology.name} is not connected even without random faults"
        least, _ = self.count_range
        if least > links.count_max and all(kind in LOSING_LINKS for kind in self.kinds):
            can = f"can lose {links.count_max} of its links" if links.count_max else "cannot lose any link"
            return f"{topology.name} {can} and stay connected, but at least {least} are to be cut"
        return None

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.shortest_us > self.longest_us:
            raise problem("is longer than the longest", "shortest")
        return self


class LosableLinks:
    """The links that are left, and those of them that may be lost."""

    def __init__(self, topology: Topology, others: Sequence[ExperimentFault] = ()) -> None:
        """others: the experiment's own faults; links that they cut permanently count as lost."""
        self._lost = _lost_for_good(others, topology)
        self._regions = tuple(topology.regions)
        self._carriers = {hop: link.name for hop, link in carriers(topology).items()}
        self.left = [link for link in topology.links if link.name not in self._lost]

    @property
    def connected(self) -> bool:
        """Whether the links that are left connect all regions."""
        return self._connected_without(self._lost)

    @property
    def losable(self) -> list[Link]:
        """The links that may each be lost without a partition."""
        return [link for link in self.left if self._connected_without({*self._lost, link.name})]

    @property
    def count_max(self) -> int:
        """The number of links that may be lost together: all but a spanning tree."""
        return len(self.left) - (len(self._regions) - 1)

    def lose(self, link: Link) -> None:
        """Mark a link as lost."""
        self.left.remove(link)
        self._lost.add(link.name)

    def _connected_without(self, lost: Set[str]) -> bool:
        return connected(self._regions, joined(self._carriers, lost))


def _lost_for_good(faults: Sequence[ExperimentFault], topology: Topology) -> set[str]:
    """Return the links that these faults keep down until the end, ignoring restores."""
    outages = (fault for fault in faults if isinstance(fault, Outage) and fault.for_us is None)
    return {link.name for fault in outages for link, _ in fault.links(topology)}
