"""Parameters of Scribe, and of Pastry below it, that an experiment may set."""

from dataclasses import dataclass
from typing import Annotated, Literal

from node.core.bounds import AT_LEAST_1MS, Bounds
from node.protocols.pastry.parameters import PastryParameters

GrowthMode = Literal["base", "by-load"]
ScribeDelivery = Literal["exactly-once", "best-effort"]


@dataclass(frozen=True, slots=True)
class ScribeParameters(PastryParameters):
    """Parameters of Scribe; times are in microseconds.

    Sections are those of the 2001 draft unless 2002 is named.
    """

    port: int = 7400
    tick_us: Annotated[int, AT_LEAST_1MS] = 100_000
    """Interval of publications."""
    tree_heartbeat_us: Annotated[int, AT_LEAST_1MS] = 500_000
    """Interval of heartbeats from a parent to its children, per topic without events (3.5; 2002, III.C)."""
    tree_timeout_us: int = 1_500_000
    """Silence of the parent until a child probes it; after twice this time the child joins again."""
    join_retry_us: Annotated[int, AT_LEAST_1MS] = 500_000
    """Time until a join that found no parent is repeated."""
    replicas: int = 5
    """Nodes nearest to the root that hold its topics' state, k (3.5)."""
    buffer_us: Annotated[int, AT_LEAST_1MS] = 60_000_000
    """Time that events are stored for replay (3.5)."""
    buffer_events: Annotated[int, Bounds(1, 10_000_000)] = 100_000
    """Maximum of stored events per stream."""
    replicate_us: int = 300_000
    """Interval of messages from a root to each replica (3.5)."""
    refresh_us: Annotated[int, AT_LEAST_1MS] = 2_000_000
    """Interval of messages from a child to its parent (3.5), which drops it after three missing ones."""
    retransmit_us: Annotated[int, AT_LEAST_1MS] = 1_000_000
    """Time without an answer until a publisher or a root repeats a message (3.5)."""
    window: Annotated[int, Bounds(1, 65_536)] = 256
    """Maximum of unacknowledged batches per stream of a publisher."""
    delivery: ScribeDelivery = "exactly-once"
    """`best-effort`: plain Scribe (2002, III). Events are not stored, replicated or repeated, and are lost
    while trees are repaired. The run's contract follows."""
    growth: GrowthMode = "base"
    """Nodes on the way of a join that become forwarders: `base`, all (3.2; 2002, III.A); `by-load`, those
    that get children from overloaded nodes (3.4.1; 2002, IV.F)."""
    entries_max: int = 0
    """Number of entries of all children tables above which a node is overloaded: c (4), 64 (2002, IV.E); 0:
    no limit. With growth `base` the bottleneck remover enforces it (2002, IV.E)."""
    collapse: bool = False
    """Whether nodes that are not members and have one child leave the tree (2002, IV.F)."""
    shrink_below: Annotated[int, Bounds(0, 256)] = 0
    """A node with fewer children offers them to its parent (3.4.2, without a number; try 4); 0: never."""
    shrink_after_us: Annotated[int, AT_LEAST_1MS] = 10_000_000
    """Time with few children until the offer, and between offers (3.4.2 gives none)."""

    @property
    def is_best_effort(self) -> bool:
        """Whether events may be lost."""
        return self.delivery == "best-effort"

    def __post_init__(self) -> None:
        """Check the ranges. Raises ValueError that names the parameter."""
        PastryParameters.__post_init__(self)
        if self.tree_timeout_us <= self.tree_heartbeat_us:
            raise ValueError("tree_timeout should be more than tree_heartbeat")
        if not 0 <= self.replicas <= self.leaf_set // 2:
            raise ValueError("replicas should be from 0 to half of leaf_set")
        if self.entries_max < 0 or (self.growth == "by-load" and not self.entries_max):
            raise ValueError("entries_max should be at least 1 with growth by-load, and never negative")
