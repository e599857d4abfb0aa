"""What an experiment may set of Scribe, and of Pastry beneath it."""

from dataclasses import dataclass
from typing import Literal

from node.protocols.pastry.parameters import PastryParameters

BUFFER_EVENTS_MAX = 10_000_000
Growth = Literal["base", "by-load"]
Delivery = Literal["exactly-once", "best-effort"]


@dataclass(frozen=True, slots=True)
class Parameters(PastryParameters):
    """Times are microseconds. Sections: of the 2001 draft, unless 2002 is said."""

    port: int = 7400
    tick_us: int = 100_000
    """Between two publications."""
    tree_heartbeat_us: int = 500_000
    """From a parent to its children, of each topic without events (3.5; 2002, III.C)."""
    tree_timeout_us: int = 1_500_000
    """Without a word from the parent, until a child asks whether it lives; twice, until it joins anew."""
    join_retry_us: int = 500_000
    """Until a join that found no parent is sent again."""
    replicas: int = 5
    """Nodes nearest to the root that hold its topics' state, k (3.5)."""
    buffer_us: int = 60_000_000
    """How long events are kept to be replayed (3.5)."""
    buffer_events: int = 100_000
    """How many of a stream are kept, at most."""
    replicate_us: int = 300_000
    """Between two messages from a root to each of its replicas (3.5)."""
    refresh_us: int = 2_000_000
    """Between two from a child to its parent (3.5); without three of them it is dropped."""
    retransmit_us: int = 1_000_000
    """Without an answer, until a publisher or a root sends again (3.5)."""
    window: int = 256
    """Batches of a stream that a publisher has on their way without an answer."""
    delivery: Delivery = "exactly-once"
    """`best-effort`: without what stands on Scribe (2002, III). Nothing is kept, replicated or sent again, so
    events are lost while trees are repaired. The run's contract follows."""
    growth: Growth = "base"
    """Which nodes on a join's way become forwarders: `base`, all (3.2; 2002, III.A); `by-load`, those that
    overloaded ones hand children on to (3.4.1; 2002, IV.F)."""
    entries_max: int = 0
    """Entries of all children tables, above which a node is overloaded: c (4), 64 (2002, IV.E); 0: no limit.
    With growth `base` the bottleneck remover sees to it (2002, IV.E)."""
    collapse: bool = False
    """Whether nodes that are no members and have one child leave the tree (2002, IV.F)."""
    shrink_below: int = 0
    """Fewer children are offered to the parent (3.4.2, which gives no number; 4 will do); 0: never."""
    shrink_after_us: int = 10_000_000
    """For how long they have to be so few, and the time after a refusal (3.4.2 gives none either)."""

    @property
    def is_best_effort(self) -> bool:
        """Whether events may be lost."""
        return self.delivery == "best-effort"

    def __post_init__(self) -> None:
        """Raises ValueError that names the parameter."""
        PastryParameters.__post_init__(self)
        if self.tree_timeout_us <= self.tree_heartbeat_us:
            raise ValueError("tree_timeout should be more than tree_heartbeat")
        if not 0 <= self.replicas <= self.leaf_set // 2:
            raise ValueError("replicas should be from 0 to half of leaf_set")
        if not 1 <= self.buffer_events <= BUFFER_EVENTS_MAX:
            raise ValueError(f"buffer_events should be from 1 to {BUFFER_EVENTS_MAX}")
        if self.entries_max < 0 or (self.growth == "by-load" and not self.entries_max):
            raise ValueError("entries_max should be at least 1 with growth by-load, and never negative")
        if not 0 <= self.shrink_below <= 256:
            raise ValueError("shrink_below should be from 0 to 256")
        if not 1 <= self.window <= 65_536:
            raise ValueError("window should be from 1 to 65536")
        for name in (
            "tick_us",
            "tree_heartbeat_us",
            "join_retry_us",
            "retransmit_us",
            "buffer_us",
            "shrink_after_us",
            "refresh_us",
        ):
            if getattr(self, name) < 1_000:
                raise ValueError(f"{name.removesuffix('_us')} should be at least 1ms")
