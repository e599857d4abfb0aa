"""Faults on links: outages, changed parameters, and the restore that ends a fault."""

from collections import Counter
from collections.abc import Iterator
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import BeforeValidator, Field, model_validator

from experiments.faults.fault import ExperimentFault, LastingFault, TriggeredFault, link_text
from experiments.planned.changes import LinkState, Selection
from topologies.jitter import NAMES
from topologies.model import Link, LinkOverrides, LinkReference, Topology
from topologies.strict import DurationUs, SizeBytes, WholeNumber, problem

FOREVER_US = 1 << 62
FLAPS_MAX = 10_000  # of one fault

Mode = Literal["blackhole", "down"]
WhichWay = Literal["both", "forward", "backward"]


class LinkFault(LastingFault):
    """A fault that acts on links for a while."""

    direction: WhichWay = "both"
    """The affected direction: forward is from the first region to the second, or out of an isolated region.
    """

    def links(self, topology: Topology) -> list[tuple[Link, bool]]:
        """Return the links that it acts on, and whether its forward direction is the link's."""
        raise NotImplementedError

    def periods(self) -> Iterator[tuple[int, int]]:
        """Yield the start and the end of each period in which it acts, if no restore ends it."""
        yield self.at_us, FOREVER_US if self.for_us is None else self.at_us + self.for_us

    @property
    def state(self) -> LinkState:
        """The state of the links meanwhile."""
        return LinkState.UP

    def values(self) -> dict[str, Any]:
        """Return the link parameters that it changes."""
        return {}

    @property
    def selects(self) -> Selection | None:
        """The affected packets; None: all."""
        return None

    def problems(self, topology: Topology) -> Iterator[str]:
        """Yield also values that a link cannot have."""
        yield from super().problems(topology)
        for link, _ in self.links(topology):
            sides = [
                each.with_values(self.values())
                for each in (link.forward_parameters, link.backward_parameters)
            ]
            for name, why in {each.impossible for each in sides if each.impossible}:
                yield f"makes the {name} {why}"


class OneLinkFault(LinkFault):
    """A fault on one link."""

    link: LinkReference

    @property
    def target(self) -> str:
        """`r2-r3`, or the link's name."""
        return link_text(self.link)

    @property
    def reference(self) -> LinkReference:
        """The link."""
        return self.link

    def links(self, topology: Topology) -> list[tuple[Link, bool]]:
        """Return the link, if the topology has it."""
        link = topology.link(self.link)
        return [] if link is None else [(link, self.link in (link.name, link.between))]


class Outage(LinkFault):
    """A fault that stops packets on links."""

    mode: Mode = "blackhole"
    """blackhole: packets are dropped silently. down: the gateways' interfaces go down."""

    @property
    def state(self) -> LinkState:
        """The state of the links meanwhile."""
        return LinkState(self.mode)


class CutFault(TriggeredFault, OneLinkFault, Outage):
    """Cuts a link."""

    kind: ClassVar[str] = "cut"
    link: LinkReference = Field(alias="cut")
    """The two regions that the link joins, or its name."""


class Isolate(TriggeredFault, Outage):
    """Cuts all links of a region."""

    kind: ClassVar[str] = "isolate"
    region: str = Field(alias="isolate")
    """The region."""

    @property
    def target(self) -> str:
        """`r2`."""
        return self.region

    @property
    def regions(self) -> tuple[str, ...]:
        """The region."""
        return (self.region,)

    def links(self, topology: Topology) -> list[tuple[Link, bool]]:
        """Return all links of the region."""
        return topology.cut_set(
            [[self.region], [other for other in topology.regions if other != self.region]]
        )


class PartitionFault(TriggeredFault, Outage):
    """Cuts all links between groups of regions: the cut-set."""

    kind: ClassVar[str] = "partition"
    groups: tuple[tuple[str, ...], ...] = Field(alias="partition", min_length=2)
    """The groups, such as [[r0, r1], [r2, r3]]. A region in none of them keeps its links."""

    @property
    def target(self) -> str:
        """`r0 r1 | r2 r3`."""
        return " | ".join(" ".join(group) for group in self.groups)

    @property
    def regions(self) -> tuple[str, ...]:
        """The regions of all groups."""
        return sum(self.groups, ())

    def links(self, topology: Topology) -> list[tuple[Link, bool]]:
        """Return the cut-set."""
        return topology.cut_set(self.groups)

    def problems(self, topology: Topology) -> Iterator[str]:
        """Yield also that no link joins the groups."""
        yield from super().problems(topology)
        if not self.links(topology):
            yield f"no link of {topology.name} joins these groups"

    @model_validator(mode="after")
    def _groups_are_apart(self) -> Self:
        twice = [region for region, times in Counter(sum(self.groups, ())).items() if times > 1]
        if twice:
            raise problem(f"{twice[0]} is listed twice", "partition")
        return self


class Flap(OneLinkFault, Outage):
    """Cuts a link repeatedly: `down` first, then `up`, and so on for the given time; it ends up."""

    kind: ClassVar[str] = "flap"
    link: LinkReference = Field(alias="flap")
    """The two regions that the link joins, or its name."""
    down_us: DurationUs = Field(gt=0)
    """How long it is cut each time."""
    up_us: DurationUs = Field(gt=0)
    """How long it works between cuts."""
    for_us: DurationUs = Field(gt=0)
    """The total time."""

    def periods(self) -> Iterator[tuple[int, int]]:
        """Yield the times for which it is cut."""
        end_us = self.at_us + self.for_us
        for start_us in range(self.at_us, end_us, self.down_us + self.up_us):
            yield start_us, min(start_us + self.down_us, end_us)

    @model_validator(mode="after")
    def _bounded(self) -> Self:
        if self.for_us > FLAPS_MAX * (self.down_us + self.up_us):
            raise problem(f"flaps more than {FLAPS_MAX} times", "for")
        return self


class SetLink(LinkOverrides, TriggeredFault, OneLinkFault):
    """Changes parameters of a link; those that are not given stay as they are."""

    kind: ClassVar[str] = "set"
    needs_mending: ClassVar[bool] = False
    link: LinkReference = Field(alias="set")
    """The two regions that the link joins, or its name."""
    mtu_bytes: SizeBytes | None = Field(None, ge=68, le=9000)
    """Larger IP packets vanish without an ICMP message: a path-MTU black hole (RFC 2923, 2.1)."""
    of: str | None = None
    """Only packets from or to this process, such as r2/server-0."""
    port: WholeNumber | None = Field(None, ge=1, le=65_535)
    """Only packets from or to this TCP or UDP port."""

    @property
    def target(self) -> str:
        """`r2-r3`, or `r2-r3 of r2/server-0 port 7000`."""
        return super().target + (f" {self.selects}" if self.selects else "")

    @property
    def selects(self) -> Selection | None:
        """The affected packets; None: all."""
        return None if self.of is None and self.port is None else Selection(self.of, self.port)

    def problems(self, topology: Topology) -> Iterator[str]:
        """Yield also an MTU that the link does not have."""
        yield from super().problems(topology)
        for link, _ in self.links(topology):
            if self.mtu_bytes is not None and self.mtu_bytes > link.mtu_bytes:
                yield f"makes the MTU larger than the link's own, {link.mtu_bytes} B"

    @model_validator(mode="after")
    def _changes_something(self) -> Self:
        if self.selects is not None and self.mtu_bytes is not None:
            raise problem("applies to all packets: leave out `of` and `port`", "mtu")
        if self.jitter_distribution not in {None, *NAMES}:
            raise problem("is a file: only a link of the topology can have one", "jitter_distribution")
        if not self.values():
            raise problem(
                "sets nothing: give delay, jitter, jitter_distribution, jitter_correlation, loss,"
                " loss_burst, duplicate, corrupt, rate, queue, reorder or mtu"
            )
        return self


def _link_or_fault(given: Any) -> Any:
    if isinstance(given, (str, tuple)):
        return given
    if isinstance(given, list) and len(given) == 2 and all(isinstance(end, str) for end in given):
        return tuple(given)
    raise problem(f"should be a fault's name, a link's or two regions, such as [r0, r1], not {given!r:.40}")


class Restore(ExperimentFault):
    """Ends a fault by its name, or everything that earlier faults do to a link."""

    kind: ClassVar[str] = "restore"
    mends: ClassVar[bool] = True
    what: Annotated[tuple[str, str] | str, BeforeValidator(_link_or_fault)] = Field(alias="restore")
    """A fault's name, or a link: two regions, or its name."""

    @property
    def target(self) -> str:
        """`cut` or `r2-r3`."""
        return link_text(self.what)

    @property
    def reference(self) -> LinkReference | None:
        """The link's regions; None if it restores a fault or a link by its name."""
        return None if isinstance(self.what, str) else self.what
