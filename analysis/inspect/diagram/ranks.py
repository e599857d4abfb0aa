"""Which messages tell a story: when a picture has no room for all, what goes first.

What a protocol sends all the time (gossip, acknowledgements, progress) goes first and its data last. What it
sends seldom, and so says that something changed (a subscription, a new configuration), is never left out for
its type: any type that its `Reading` gives no rank is such a one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from analysis.messages.label import label
from analysis.messages.marked import READING
from node.systems import reading_of

HEARTBEAT = "heartbeat"
"""A message that says only that its sender lives."""


@dataclass(frozen=True)
class Ranks:
    """The messages of one system, from what tells least to what tells most."""

    system: str
    events: tuple[str, ...]  # messages that carry events, the usual one first
    ordinary: tuple[str, ...]  # sent all the time, what tells least first
    heartbeat: str  # the message that is one where it lists no counters
    colours: Mapping[str, str]
    host_at: Mapping[str, str] = field(default_factory=dict)  # what to call addresses in labels

    @property
    def leaving_first(self) -> tuple[str, ...]:
        """What is left out first: all that is sent all the time, but events."""
        return tuple(kind for kind in self.ordinary if kind not in self.events)

    def what(self, row: Mapping[str, Any]) -> str:
        """The type of a row of TRANSFERS, or that it is a heartbeat."""
        return HEARTBEAT if row["type"] == self.heartbeat and not row.get("advertised") else str(row["type"])

    def rank(self, kind: str) -> int:
        """How much it tells; the more, the higher."""
        return self.ordinary.index(kind) if kind in self.ordinary else len(self.ordinary)

    def label(self, row: Mapping[str, Any]) -> str:
        """The message in one line."""
        return HEARTBEAT if self.what(row) == HEARTBEAT else label(row, self.system, self.host_at)


@cache
def ranks_of(system: str) -> Ranks:
    """The ranks of a system; those of events known by their markers, if its messages are none of ours."""
    reading = reading_of(system) or READING
    ordinary = (HEARTBEAT, *reading.ranks, *reversed(reading.carries))
    return Ranks(system, reading.carries, ordinary, reading.heartbeat, reading.colours)
