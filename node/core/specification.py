"""What one node of a run is told about itself and the others, as plain data.

The testbed writes it as a JSON object (`NodeSpec.from_json`); the protocols build their machines from it.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Self


@dataclass(frozen=True, slots=True)
class Member:
    """A process of the run. `stream` is the one that its region owns, if any."""

    name: str  # "r2/proxy-0"
    host: str
    region: str
    role: str
    index: int
    address: str
    stream: int | None = None


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """One process. Paths and namespace are for whoever runs it; the machine sees the rest."""

    name: str
    host: str
    region: str
    role: str
    index: int
    seed: int
    system: str
    members: tuple[Member, ...]
    streams: Mapping[str, int]  # region -> the first stream that it owns
    parameters: Mapping[str, Any] = field(default_factory=dict)
    workload: Mapping[str, Any] = field(default_factory=dict)
    homes: tuple[str, ...] = ()  # of each stream, by its number, the region that owns it
    start: int = 0  # how often this process was started before
    netns: str | None = None  # path of the network namespace; None stays in the launcher's
    log: str | None = None
    deliveries: str | None = None
    storage: str | None = None  # directory of what survives the process; None: nothing does

    @classmethod
    def from_json(cls, given: Mapping[str, Any]) -> Self:
        """From the JSON object; raises ValueError that names what is missing or unknown."""
        known = {f.name for f in fields(cls)}
        unknown = sorted(set(given) - known)
        if unknown:
            raise ValueError(f"node specification: unknown {', '.join(unknown)}")
        try:
            members = tuple(Member(**member) for member in given["members"])
            return cls(**{**given, "members": members, "homes": tuple(given.get("homes", ()))})
        except (KeyError, TypeError) as error:
            raise ValueError(f"node specification of {given.get('name', '?')}: {error}") from error
