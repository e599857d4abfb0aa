"""Parameters of Scribe's studies (`cutset study NAME --set …`)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Literal

from node.core.bounds import Bounded, Bounds, sizes_up_to

NODES = Bounds(32, 1_000_000)
GROUP_MIN = 11
LAN_US = 1_000
"""Delay between a node and its router, in microseconds."""


@dataclass(frozen=True, slots=True)
class GroupsParameters(Bounded):
    """Parameters of groups; defaults are the paper's. Groups with fewer than 11 members are left out."""

    nodes: Annotated[int, NODES] = 100_000
    groups: Annotated[int, Bounds(1, 100_000)] = 1_500
    group_size: int = 0
    """Members of each group; 0: floor(nodes r^-1.25 + 0.5) for that of rank r (IV.A)."""
    entries_max: int = 0
    """Entries above which the bottleneck remover acts; 0: never (IV.E)."""
    collapse: bool = False
    """Whether nodes that are not members and have one child leave the tree (IV.F)."""

    batch: Annotated[int, Bounds(0)] = 0
    """Members of a group that join at the same time; 0: all. The paper does not give it."""
    network: Literal["even", "varied", "large"] = "varied"
    """The 5,050 routers with domains of one size or of varied sizes (IV.A), or 102,510 routers; the paper's
    102,639 are a map of the Internet."""

    def __post_init__(self) -> None:
        """Check the ranges. Raises ValueError that names the parameter."""
        Bounded.__post_init__(self)
        if self.group_size and not 2 <= self.group_size <= self.nodes:
            raise ValueError("group_size should be from 2 to nodes, or 0")

    def sizes(self) -> list[int]:
        """Return the sizes of all groups by rank."""
        if self.group_size:
            return [self.group_size] * self.groups
        by_rank = (int(self.nodes * rank**-1.25 + 0.5) for rank in range(1, self.groups + 1))
        return [size for size in by_rank if size >= GROUP_MIN]


@dataclass(frozen=True, slots=True)
class DepthParameters(Bounded):
    """Parameters of the depth study; defaults are the draft's."""

    nodes: Annotated[int, NODES] = 100_000
    entries_max: Annotated[int, Bounds(1, 1_000)] = 75
    """Entries above which a node is overloaded: c (4)."""
    batch: int = 200
    """Subscribers that join at the same time; the draft does not give it."""

    def __post_init__(self) -> None:
        """Check the ranges. Raises ValueError that names the parameter."""
        Bounded.__post_init__(self)
        if not 1 <= self.batch <= self.nodes:
            raise ValueError("batch should be from 1 to nodes")


@dataclass(frozen=True, slots=True)
class RoutesParameters(Bounded):
    """Parameters of routes. Overlays of 1,000, 3,000, 10,000 nodes and so on are measured, up to `nodes`."""

    nodes: Annotated[int, NODES] = 100_000
    routes: Annotated[int, Bounds(1, 1_000_000)] = 5_000
    """Pairs of routes that are followed in each overlay."""

    def sizes(self) -> Iterator[int]:
        """Return the numbers of nodes."""
        return sizes_up_to(self.nodes, 1_000)


@dataclass(frozen=True, slots=True)
class JoinsParameters(Bounded):
    """Parameters of an overlay built by joins."""

    nodes: Annotated[int, NODES] = 10_000
    routes: Annotated[int, Bounds(1, 1_000_000)] = 10_000
    """Number of routes followed in both overlays."""


@dataclass(frozen=True, slots=True)
class ChurnParameters(Bounded):
    """Parameters of churn. The topic of rank r has nodes r^-1.25 members and one event per second."""

    nodes: Annotated[int, Bounds(64, 100_000)] = 1_000
    topics: int = 20
    session_min_min: int = 5
    """Shortest mean session, in minutes; longer ones of 5, 15, 30, 60 and 120 are run, too."""
    duration_us: Annotated[int, Bounds(60_000_000, 7_200_000_000)] = 180_000_000
    """Time in which events are published."""
    heartbeat_us: Annotated[int, Bounds(1_000_000, 60_000_000)] = 5_000_000
    """Interval of heartbeats of ring and trees; a node is missed after two and a half."""

    def __post_init__(self) -> None:
        """Check the ranges. Raises ValueError that names the parameter."""
        Bounded.__post_init__(self)
        if not 1 <= self.topics <= self.nodes // 2:
            raise ValueError("topics should be from 1 to half of nodes")
