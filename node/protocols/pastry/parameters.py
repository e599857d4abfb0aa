"""What an experiment may set of Pastry.

The defaults of `b` and `leaf_set` are those of section 2 of both Scribe papers, which leave the others open.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class PastryParameters:
    """Times are microseconds. `b` bits are a digit; `leaf_set` nodes are kept as neighbours on the ring."""

    b: int = 4
    leaf_set: int = 16
    neighbourhood: int = 16
    heartbeat_us: int = 500_000
    """From a node to its left neighbour on the ring; 0: never, where nothing fails."""
    heartbeat_timeout_us: int = 1_500_000
    """Without a word from the right neighbour, until it is probed."""
    probe_timeout_us: int = 500_000
    """Until a probe is sent again, and a message that was routed goes another way."""
    probes: int = 3
    """Without an answer, until a node is taken for failed."""
    relays: int = 4
    """Nodes that are asked to pass a probe on, others with each attempt; from the second one on each asks as
    many in its turn."""
    direct_again_us: int = 5_000_000
    """Between attempts to reach a node without its relay, and one that was taken for failed."""
    join_timeout_us: int = 1_000_000
    """Until a join that has no answer is tried again."""
    remember_us: int = 5_000_000
    """Between two writings of a leaf set that changed, for the node's return; 0: never."""

    def __post_init__(self) -> None:
        """Raises ValueError that names the parameter."""
        if self.b not in {1, 2, 4, 8}:
            raise ValueError("b should be 1, 2, 4 or 8 bits")
        if not 2 <= self.leaf_set <= 256 or self.leaf_set % 2:
            raise ValueError("leaf_set should be even, from 2 to 256")
        if not 1 <= self.probes <= 8:
            raise ValueError("probes should be from 1 to 8")
        if self.heartbeat_us and self.heartbeat_timeout_us <= self.heartbeat_us:
            raise ValueError("heartbeat_timeout should be more than heartbeat")
        for name in ("probe_timeout_us", "direct_again_us", "join_timeout_us"):
            if getattr(self, name) < 1_000:
                raise ValueError(f"{name.removesuffix('_us')} should be at least 1ms")
