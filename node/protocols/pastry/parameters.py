"""What an experiment may set of Pastry.

The defaults of `b` and `leaf_set` are those of section 2 of both Scribe papers, which leave the others open.
"""

from dataclasses import dataclass

from node.protocols.reachability.parameters import ReachabilityParameters


@dataclass(frozen=True, slots=True)
class PastryParameters(ReachabilityParameters):
    """Times are microseconds. `b` bits are a digit; `leaf_set` nodes are kept as neighbours on the ring."""

    b: int = 4
    leaf_set: int = 16
    neighbourhood: int = 16
    heartbeat_us: int = 500_000
    """From a node to its left neighbour on the ring; 0: never, where nothing fails."""
    heartbeat_timeout_us: int = 1_500_000
    """Without a word from the right neighbour, until it is probed."""
    join_timeout_us: int = 1_000_000
    """Until a join that has no answer is tried again."""
    remember_us: int = 5_000_000
    """Between two writings of a leaf set that changed, for the node's return; 0: never."""

    def __post_init__(self) -> None:
        """Raises ValueError that names the parameter."""
        ReachabilityParameters.__post_init__(self)
        if self.b not in {1, 2, 4, 8}:
            raise ValueError("b should be 1, 2, 4 or 8 bits")
        if not 2 <= self.leaf_set <= 256 or self.leaf_set % 2:
            raise ValueError("leaf_set should be even, from 2 to 256")
        if not 0 <= self.neighbourhood <= 256:
            raise ValueError("neighbourhood should be from 0 to 256")
        if self.heartbeat_us and self.heartbeat_timeout_us <= self.heartbeat_us:
            raise ValueError("heartbeat_timeout should be more than heartbeat")
        if self.join_timeout_us < 1_000:
            raise ValueError("join_timeout should be at least 1ms")
