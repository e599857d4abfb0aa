"""Ranks of messages: which ones go first if a picture has no room for all.

Messages that a protocol sends all the time (gossip, acknowledgements, progress) go first, its data last. Rare
messages, which indicate a change (a subscription, a new configuration), are never left out for their type. A
type without a rank in its `Reading` is rare.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from analysis.messages.label import label
from analysis.messages.marked import READING
from node.systems import reading_of

HEARTBEAT = "heartbeat"
"""A message that shows only that its sender is running."""


@dataclass(frozen=True)
class Ranks:
    """The messages of one system, from the least to the most informative."""

    system: str
    events: tuple[str, ...]  # messages that carry events, the usual one first
    ordinary: tuple[str, ...]  # sent all the time, the least informative first
    heartbeat: str  # the message type that is a heartbeat if it lists no counters
    colours: Mapping[str, str]
    host_at: Mapping[str, str] = field(default_factory=dict)  # names for addresses in labels

    @property
    def leaving_first(self) -> tuple[str, ...]:
        """Types that are left out first: routine messages except events."""
        return tuple(kind for kind in self.ordinary if kind not in self.events)

    def what(self, row: Mapping[str, Any]) -> str:
        """Return the type of a row of TRANSFERS, or HEARTBEAT."""
        return HEARTBEAT if row["type"] == self.heartbeat and not row.get("advertised") else str(row["type"])

    def rank(self, kind: str) -> int:
        """Return the rank of a type: the higher, the more informative."""
        return self.ordinary.index(kind) if kind in self.ordinary else len(self.ordinary)

    def label(self, row: Mapping[str, Any]) -> str:
        """Return the message in one line."""
        return HEARTBEAT if self.what(row) == HEARTBEAT else label(row, self.system, self.host_at)


@cache
def ranks_of(system: str) -> Ranks:
    """Return the ranks of a system.

    For a system without a codec they are those of events recognized by their markers.
    """
    reading = reading_of(system) or READING
    ordinary = (HEARTBEAT, *reading.ranks, *reversed(reading.carries))
    return Ranks(system, reading.carries, ordinary, reading.heartbeat, reading.colours)
