"""Parameters of reachability that an experiment may set."""

from collections.abc import Iterable
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class ReachabilityParameters:
    """Parameters of reachability; times are in microseconds."""

    probe_timeout_us: int = 500_000
    """Timeout of a probe, which is then repeated, and of a routed message, which then takes another way."""
    probes: int = 3
    """Probes without an answer until a node is considered failed."""
    relays: int = 4
    """Nodes that relay a probe, others with each attempt; from the second attempt on each of them asks the
    same number of further ones."""
    direct_again_us: int = 5_000_000
    """Interval of attempts to reach a relayed node directly, and a failed node at all."""

    @classmethod
    def refuse_unknown(cls, named: Iterable[str]) -> None:
        """Check the parameter names of an application. Raises ValueError for an unknown one."""
        known = [each.name for each in fields(cls)]
        if unknown := [name for name in named if name not in known]:
            raise ValueError(f"unknown parameter {unknown[0]!r:.40}; known ones: {', '.join(known)}")

    def __post_init__(self) -> None:
        """Check the ranges. Raises ValueError that names the parameter."""
        if not 1 <= self.probes <= 8:
            raise ValueError("probes should be from 1 to 8")
        if not 0 <= self.relays <= 64:
            raise ValueError("relays should be from 0 to 64")
        for name in ("probe_timeout_us", "direct_again_us"):
            if getattr(self, name) < 1_000:
                raise ValueError(f"{name.removesuffix('_us')} should be at least 1ms")
