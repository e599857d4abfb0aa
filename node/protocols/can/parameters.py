"""Parameters of CAN that an experiment may set."""

from dataclasses import dataclass
from typing import Annotated

from node.core.bounds import AT_LEAST_1MS, Bounds
from node.protocols.reachability.parameters import ReachabilityParameters


@dataclass(frozen=True, slots=True)
class CanParameters(ReachabilityParameters):
    """Parameters of CAN; times are in microseconds. The paper (SIGCOMM 2001) gives no values."""

    heartbeat_us: int = 1_000_000
    """Interval of heartbeats to each neighbour (the paper's periodic update, 2.3); 0: none."""
    heartbeat_timeout_us: int = 3_000_000
    """Silence of a neighbour until it is probed."""
    takeover_us: Annotated[int, AT_LEAST_1MS] = 2_000_000
    """Time for a successor to take over the zones of a failed node, until the next one is asked."""
    successors: Annotated[int, Bounds(1, 64)] = 4
    """Number of successors that a node names to take over its zones, in order."""
    join_timeout_us: Annotated[int, AT_LEAST_1MS] = 1_000_000
    """Time until a join, a grant or a search without an answer is repeated."""

    acknowledge_us: int = 0
    """Maximum delay of an acknowledgement, to send it with other messages to the same node; 0: none."""

    @property
    def repair_us(self) -> int:
        """Time from a node's failure until its zones have a new owner, if its first successor is alive."""
        noticed_us = self.heartbeat_us + self.heartbeat_timeout_us
        return noticed_us + self.probes * self.probe_timeout_us + self.takeover_us

    def __post_init__(self) -> None:
        """Check the ranges. Raises ValueError that names the parameter."""
        ReachabilityParameters.__post_init__(self)
        if self.heartbeat_us and self.heartbeat_timeout_us <= self.heartbeat_us:
            raise ValueError("heartbeat_timeout should be more than heartbeat")
        if not 0 <= self.acknowledge_us <= self.probe_timeout_us // 4:
            raise ValueError("acknowledge should be at most a quarter of probe_timeout")
