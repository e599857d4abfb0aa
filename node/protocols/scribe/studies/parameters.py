"""Parameters of Scribe's studies (`cutset study NAME --set …`)."""

from dataclasses import dataclass

GROUP_MIN = 11
LAN_US = 1_000
"""Delay between a node and its router, in microseconds."""


@dataclass(frozen=True, slots=True)
class GroupsParameters:
    """Parameters of groups; defaults are the paper's. Groups with fewer than 11 members are left out."""

    nodes: int = 100_000
    groups: int = 1_500
    group_size: int = 0
    """Members of each group; 0: floor(nodes r^-1.25 + 0.5) for that of rank r (IV.A)."""
    entries_max: int = 0
    """Entries above which the bottleneck remover acts; 0: never (IV.E)."""
    collapse: bool = False
    """Whether nodes that are not members and have one child leave the tree (IV.F)."""

    batch: int = 0
    """Members of a group that join at the same time; 0: all. The paper does not give it."""

    def __post_init__(self) -> None:
        """Check the ranges. Raises ValueError that names the parameter."""
        if not 32 <= self.nodes <= 1_000_000:
            raise ValueError("nodes should be from 32 to 1000000")
        if not 1 <= self.groups <= 100_000:
            raise ValueError("groups should be from 1 to 100000")
        if self.group_size and not 2 <= self.group_size <= self.nodes:
            raise ValueError("group_size should be from 2 to nodes, or 0")
        if self.batch < 0:
            raise ValueError("batch should not be negative")

    def sizes(self) -> list[int]:
        """Return the sizes of all groups by rank."""
        if self.group_size:
            return [self.group_size] * self.groups
        by_rank = (int(self.nodes * rank**-1.25 + 0.5) for rank in range(1, self.groups + 1))
        return [size for size in by_rank if size >= GROUP_MIN]


@dataclass(frozen=True, slots=True)
class DepthParameters:
    """Parameters of the depth study; defaults are the draft's."""

    nodes: int = 100_000
    entries_max: int = 75
    """Entries above which a node is overloaded: c (4)."""
    batch: int = 200
    """Subscribers that join at the same time; the draft does not give it."""

    def __post_init__(self) -> None:
        """Check the ranges. Raises ValueError that names the parameter."""
        if not 32 <= self.nodes <= 1_000_000:
            raise ValueError("nodes should be from 32 to 1000000")
        if not 1 <= self.entries_max <= 1_000:
            raise ValueError("entries_max should be from 1 to 1000")
        if not 1 <= self.batch <= self.nodes:
            raise ValueError("batch should be from 1 to nodes")


@dataclass(frozen=True, slots=True)
class JoinsParameters:
    """Parameters of an overlay built by joins."""

    nodes: int = 10_000
    routes: int = 10_000
    """Number of routes followed in both overlays."""

    def __post_init__(self) -> None:
        """Check the ranges. Raises ValueError that names the parameter."""
        if not 32 <= self.nodes <= 1_000_000:
            raise ValueError("nodes should be from 32 to 1000000")
        if not 1 <= self.routes <= 1_000_000:
            raise ValueError("routes should be from 1 to 1000000")


@dataclass(frozen=True, slots=True)
class ChurnParameters:
    """Parameters of churn. The topic of rank r has nodes r^-1.25 members and one event per second."""

    nodes: int = 1_000
    topics: int = 20
    session_min_min: int = 5
    """Shortest mean session, in minutes; longer ones of 5, 15, 30, 60 and 120 are run, too."""
    duration_us: int = 180_000_000
    """Time in which events are published."""
    heartbeat_us: int = 5_000_000
    """Interval of heartbeats of ring and trees; a node is missed after two and a half."""

    def __post_init__(self) -> None:
        """Check the ranges. Raises ValueError that names the parameter."""
        if not 64 <= self.nodes <= 100_000:
            raise ValueError("nodes should be from 64 to 100000")
        if not 1 <= self.topics <= self.nodes // 2:
            raise ValueError("topics should be from 1 to half of nodes")
        if not 1_000_000 <= self.heartbeat_us <= 60_000_000:
            raise ValueError("heartbeat should be from 1s to 60s")
        if not 60_000_000 <= self.duration_us <= 7_200_000_000:
            raise ValueError("duration should be from 1min to 2h")
