"""What an experiment may set of CAN."""

from dataclasses import dataclass

from node.protocols.reachability.parameters import ReachabilityParameters


@dataclass(frozen=True, slots=True)
class CanParameters(ReachabilityParameters):
    """Times are microseconds. The paper (SIGCOMM 2001) gives none."""

    heartbeat_us: int = 1_000_000
    """From a node to each neighbour (the paper's periodic update, 2.3); 0: never, where nothing fails."""
    heartbeat_timeout_us: int = 3_000_000
    """Without a word from a neighbour, until it is probed."""
    takeover_us: int = 2_000_000
    """For the heir of a node that failed to take its zones over, until the next one is asked to."""
    heirs: int = 4
    """Neighbours that a node names, in order, to take its zones over."""
    join_timeout_us: int = 1_000_000
    """Until a join, a grant or a search that has no answer is tried again."""

    acknowledge_us: int = 0
    """How long a node that was handed a message waits for something to go back anyway, until it says
    that it has it; 0: not at all."""

    @property
    def repair_us(self) -> int:
        """After a node failed, until its zones are another's, if its first heir lives."""
        noticed_us = self.heartbeat_us + self.heartbeat_timeout_us
        return noticed_us + self.probes * self.probe_timeout_us + self.takeover_us

    def __post_init__(self) -> None:
        """Raises ValueError that names the parameter."""
        ReachabilityParameters.__post_init__(self)
        if not 1 <= self.heirs <= 64:
            raise ValueError("heirs should be from 1 to 64")
        if self.heartbeat_us and self.heartbeat_timeout_us <= self.heartbeat_us:
            raise ValueError("heartbeat_timeout should be more than heartbeat")
        if not 0 <= self.acknowledge_us <= self.probe_timeout_us // 4:
            raise ValueError("acknowledge should be at most a quarter of probe_timeout")
        for name in ("takeover_us", "join_timeout_us"):
            if getattr(self, name) < 1_000:
                raise ValueError(f"{name.removesuffix('_us')} should be at least 1ms")
