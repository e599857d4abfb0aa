"""Which messages tell a story: when a picture has no room for all, what goes first.

What a protocol sends all the time (gossip, acknowledgements, progress) goes first and its data last. What it
sends seldom, and so says that something changed (a subscription, a new configuration), is never left out for
its type: any type that does not stand here is such a one.
"""

from collections.abc import Mapping
from typing import Any

HEARTBEAT = "heartbeat"
"""An advertisement without counters: it says only that its sender lives (Sprinkler paper 3.3)."""

EVENTS = ("EVENTS", "SPARSE_EVENTS")
_ORDINARY = (
    HEARTBEAT,
    "VIEW",
    "STORED",
    "PUBLISHED",
    "NOTIFY",
    "REQUEST",
    "ANSWERED",
    "PUBLICATION",
    "PUBLISH",
    "ADVERTISEMENT",
    "PATHS",
    *reversed(EVENTS),
)
"""Sent all the time, what tells least first."""

ORDINARY = frozenset(_ORDINARY)
LEAVING_FIRST = tuple(kind for kind in _ORDINARY if kind not in EVENTS)


def what(row: Mapping[str, Any]) -> str:
    """The type of a row of TRANSFERS, where an advertisement without counters is a heartbeat."""
    return HEARTBEAT if row["type"] == "ADVERTISEMENT" and not row.get("advertised") else str(row["type"])


def rank(kind: str) -> int:
    """How much it tells; the more, the higher."""
    return _ORDINARY.index(kind) if kind in ORDINARY else len(_ORDINARY)
