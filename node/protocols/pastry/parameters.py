"""Parameters of Pastry that an experiment may set.

The defaults of `b` and `leaf_set` are those of section 2 of both Scribe papers, which give no others.
"""

from dataclasses import dataclass
from typing import Annotated

from node.core.bounds import AT_LEAST_1MS, Bounds
from node.protocols.reachability.parameters import ReachabilityParameters


@dataclass(frozen=True, slots=True)
class PastryParameters(ReachabilityParameters):
    """Parameters of Pastry; times are in microseconds.

    b: bits per digit. leaf_set: number of neighbours on the ring. neighbourhood: size of the neighbourhood
    set.
    """

    b: int = 4
    leaf_set: Annotated[int, Bounds(2, 256)] = 16
    neighbourhood: Annotated[int, Bounds(0, 256)] = 16
    heartbeat_us: int = 500_000
    """Interval of heartbeats to the left neighbour on the ring; 0: none."""
    heartbeat_timeout_us: int = 1_500_000
    """Silence of the right neighbour until it is probed."""
    join_timeout_us: Annotated[int, AT_LEAST_1MS] = 1_000_000
    """Time until a join without an answer is repeated."""
    remember_us: int = 5_000_000
    """Minimum interval between writes of a changed leaf set, for a restart; 0: never written."""
    row_repair: bool = False
    """Whether a failed node of the routing table is replaced by asking another node of its row. Otherwise
    only nodes that this one learns of in other messages replace it.
    """
    credentials: str = ""
    """Credentials that a joining node must show; each node on the way of a join compares them with its own.
    Empty: none are required."""

    def __post_init__(self) -> None:
        """Check the ranges. Raises ValueError that names the parameter."""
        ReachabilityParameters.__post_init__(self)
        if self.b not in {1, 2, 4, 8}:
            raise ValueError("b should be 1, 2, 4 or 8 bits")
        if self.leaf_set % 2:
            raise ValueError("leaf_set should be even")
        if self.heartbeat_us and self.heartbeat_timeout_us <= self.heartbeat_us:
            raise ValueError("heartbeat_timeout should be more than heartbeat")
