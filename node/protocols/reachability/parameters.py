"""Parameters of reachability that an experiment may set."""

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import Annotated

from node.core.bounds import AT_LEAST_1MS, Bounded, Bounds


@dataclass(frozen=True, slots=True)
class ReachabilityParameters(Bounded):
    """Parameters of reachability; times are in microseconds."""

    probe_timeout_us: Annotated[int, AT_LEAST_1MS] = 500_000
    """Timeout of a probe, which is then repeated, and of a routed message, which then takes another way."""
    probes: Annotated[int, Bounds(1, 8)] = 3
    """Probes without an answer until a node is considered failed."""
    relays: Annotated[int, Bounds(0, 64)] = 4
    """Number of nodes that relay a probe; each attempt uses others. From the second attempt on, each of them
    asks the same number of further nodes.
    """
    direct_again_us: Annotated[int, AT_LEAST_1MS] = 5_000_000
    """Interval of attempts to reach a relayed node directly, and a failed node at all."""

    @classmethod
    def refuse_unknown(cls, named: Iterable[str]) -> None:
        """Check the parameter names of an application. Raises ValueError for an unknown one."""
        known = [each.name for each in fields(cls)]
        if unknown := [name for name in named if name not in known]:
            raise ValueError(f"unknown parameter {unknown[0]!r:.40}; known ones: {', '.join(known)}")
