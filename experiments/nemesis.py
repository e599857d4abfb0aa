"""Faults by chance, that every correct system survives: `nemesis:` in an experiment.

What may go wrong, how often and for how long. The schedule that follows from a seed is made by
`experiments.planned.nemesis_schedule`.

Links are taken only as long as the network stays connected. A link counts only if it is up in both
directions.
"""

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal, Self

from pydantic import BeforeValidator, Discriminator, Field, Tag, model_validator

from experiments.faults import Cut, Fault, Isolate, Outage, Partition
from topologies.model import Topology
from topologies.routes import connected
from topologies.strict import DurationUs, Fraction, StrictModel, WholeNumber, problem

Kind = Literal["cut", "one-way-cut", "flap", "delay", "loss", "crash", "pause", "power", "power-and-disks"]

ON_LINKS: tuple[Kind, ...] = ("cut", "one-way-cut", "flap", "delay", "loss")
ON_REGIONS: tuple[Kind, ...] = ("power", "power-and-disks")
LOSING_LINKS: tuple[Kind, ...] = ("cut", "one-way-cut")
"""What `stays: connected` draws for good."""
USUAL: tuple[Kind, ...] = ("cut", "one-way-cut", "delay", "loss", "crash", "pause")
FAULTS_MAX = 200
STEP_US = 1_000  # times are whole milliseconds
Ends = tuple[str, str]


class CountRange(StrictModel):
    """A number that is drawn, too."""

    least: WholeNumber = Field(alias="from", ge=1, le=FAULTS_MAX)
    """At least so many."""
    most: WholeNumber = Field(alias="to", ge=1, le=FAULTS_MAX)
    """At most so many."""

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
    """What may go wrong, how often and for how long."""

    kinds: tuple[Kind, ...] = Field(USUAL, min_length=1)
    """cut, one-way-cut, flap (cut again and again), delay and loss of links; crash (SIGKILL, started again
    later) and pause (SIGSTOP) of processes; power (a whole region falls silent, its processes are killed, and
    all are started again later) and power-and-disks (on empty disks) of regions."""
    vary: dict[str, list[Any]] = Field(default_factory=dict, max_length=20)
    """Settings that are drawn, too: values of parameters, roles and workload by dotted path, such as
    {parameters.durable: [false, true]}. Every run has one value of each."""
    stays: Literal["connected"] | None = None
    """connected: cuts and one-way cuts are drawn for good, and only where links that are up in both
    directions still connect all regions in the end. Unless given, all is as configured in the end."""
    roles: tuple[str, ...] = ()
    """Whose processes crash and pause; those of all roles unless given."""
    faults: Count = 10
    """How many disturbances, or a range to draw from; fewer where so many do not fit."""
    start_us: DurationUs = 1_000_000
    """Nothing is disturbed before."""
    shortest_us: DurationUs = Field(200_000, ge=STEP_US)
    """A disturbance lasts so long at least."""
    longest_us: DurationUs = Field(3_000_000, ge=STEP_US)
    """A disturbance lasts so long at most."""
    settle_us: DurationUs = 3_000_000
    """How long a process is left alone after it was disturbed, to catch up."""
    quiet_us: DurationUs = 5_000_000
    """Nothing is disturbed in this time before the drivers stop."""
    delay_us: DurationUs = Field(200_000, gt=0)
    """The largest delay that a link is given."""
    loss: Fraction = Field(0.05, gt=0, le=0.5)
    """The largest loss that a link is given."""

    def time_problem(self, duration_us: int) -> str | None:
        """Why there is no time for any disturbance in a run of this duration, or None."""
        if self.start_us + self.shortest_us + self.quiet_us > duration_us:
            return "start, shortest and quiet together are longer than the run"
        return None

    @property
    def count_range(self) -> tuple[int, int]:
        """How many disturbances at least and at most."""
        given = self.faults
        return (given.least, given.most) if isinstance(given, CountRange) else (given, given)

    def topology_problem(self, topology: Topology, others: Sequence[Fault]) -> str | None:
        """Why nothing can be drawn that keeps this topology connected, or None. others: the other faults."""
        links = LosableLinks(topology, others)
        if self.stays is None:
            return None
        if not links.connected:
            return f"{topology.name} is not connected even without faults by chance"
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
    """The links that are left, and which of them may go, too."""

    def __init__(self, topology: Topology, others: Sequence[Fault] = ()) -> None:
        """others: faults that are there anyway; what they cut for good is lost already."""
        lost = _lost_for_good(others, topology)
        self._regions = tuple(topology.regions)
        self.left: list[Ends] = [link.between for link in topology.links if link.name not in lost]

    @property
    def connected(self) -> bool:
        """Whether the links that are left connect all regions."""
        return connected(self._regions, self.left)

    @property
    def losable(self) -> list[Ends]:
        """The links of which any one may be lost."""
        return [link for link in self.left if connected(self._regions, self._without(link))]

    @property
    def count_max(self) -> int:
        """How many can be lost together: what a spanning tree does not need."""
        return len(self.left) - (len(self._regions) - 1)

    def lose(self, link: Ends) -> None:
        """Count a link as lost."""
        self.left.remove(link)

    def _without(self, link: Ends) -> Iterable[Ends]:
        return (other for other in self.left if other != link)


def _lost_for_good(faults: Sequence[Fault], topology: Topology) -> set[str]:
    """The links that these keep down until the end, restores left out of account."""
    lost = set()
    for fault in faults:
        if not isinstance(fault, Outage) or fault.for_us is not None:
            continue
        if isinstance(fault, Cut) and (link := topology.link_between(fault.link)):
            lost.add(link.name)
        elif isinstance(fault, Isolate):
            others = [region for region in topology.regions if region != fault.region]
            lost.update(link.name for link, _ in topology.cut_set([[fault.region], others]))
        elif isinstance(fault, Partition):
            lost.update(link.name for link, _ in topology.cut_set(fault.groups))
    return lost
