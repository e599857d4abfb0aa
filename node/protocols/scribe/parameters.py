"""What an experiment may set of Scribe, and of Pastry beneath it."""

from dataclasses import dataclass

from node.protocols.pastry.parameters import PastryParameters

BUFFER_EVENTS_MAX = 10_000_000


@dataclass(frozen=True, slots=True)
class Parameters(PastryParameters):
    """Times are microseconds. Sections: of the 2001 draft, unless 2002 is said."""

    port: int = 7400
    tick_us: int = 100_000
    """Between two publications."""
    tree_heartbeat_us: int = 500_000
    """From a parent to its children, of each topic without events (3.5; 2002, III.C)."""
    tree_timeout_us: int = 1_500_000
    """Without a word from the parent, until a child joins anew; from a child, until it is dropped."""
    join_retry_us: int = 500_000
    """Until a join that found no parent is sent again."""
    replicas: int = 5
    """Nodes nearest to the root that hold its topics' state, k (3.5)."""
    buffer_us: int = 60_000_000
    """How long events are kept to be replayed (3.5)."""
    buffer_events: int = 100_000
    """How many of a stream are kept, at most."""
    retransmit_us: int = 500_000
    """Without an answer, until a publisher or a root sends again (3.5)."""
    window: int = 256
    """Batches of a stream that a publisher has on their way without an answer."""

    def __post_init__(self) -> None:
        """Raises ValueError that names the parameter."""
        PastryParameters.__post_init__(self)
        if self.tree_timeout_us <= self.tree_heartbeat_us:
            raise ValueError("tree_timeout should be more than tree_heartbeat")
        if not 0 <= self.replicas <= self.leaf_set // 2:
            raise ValueError("replicas should be from 0 to half of leaf_set")
        if not 1 <= self.buffer_events <= BUFFER_EVENTS_MAX:
            raise ValueError(f"buffer_events should be from 1 to {BUFFER_EVENTS_MAX}")
        if not 1 <= self.window <= 65_536:
            raise ValueError("window should be from 1 to 65536")
        for name in ("tick_us", "tree_heartbeat_us", "join_retry_us", "retransmit_us", "buffer_us"):
            if getattr(self, name) < 1_000:
                raise ValueError(f"{name.removesuffix('_us')} should be at least 1ms")
