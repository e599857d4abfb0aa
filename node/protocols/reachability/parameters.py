"""What an experiment may set of how nodes find out who is reached."""

from collections.abc import Iterable
from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True)
class ReachabilityParameters:
    """Times are microseconds."""

    probe_timeout_us: int = 500_000
    """Until a probe is sent again, and a message that was routed goes another way."""
    probes: int = 3
    """Without an answer, until a node is taken for failed."""
    relays: int = 4
    """Nodes that are asked to pass a probe on, others with each attempt; from the second one on each asks as
    many in its turn."""
    direct_again_us: int = 5_000_000
    """Between attempts to reach a node without its relay, and one that was taken for failed."""

    @classmethod
    def refuse_unknown(cls, named: Iterable[str]) -> None:
        """Raises ValueError if an application names a parameter that there is not."""
        known = [each.name for each in fields(cls)]
        if unknown := [name for name in named if name not in known]:
            raise ValueError(f"there is no parameter {unknown[0]!r:.40}: there are {', '.join(known)}")

    def __post_init__(self) -> None:
        """Raises ValueError that names the parameter."""
        if not 1 <= self.probes <= 8:
            raise ValueError("probes should be from 1 to 8")
        if not 0 <= self.relays <= 64:
            raise ValueError("relays should be from 0 to 64")
        for name in ("probe_timeout_us", "direct_again_us"):
            if getattr(self, name) < 1_000:
                raise ValueError(f"{name.removesuffix('_us')} should be at least 1ms")
