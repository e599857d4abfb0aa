"""Numeric values in messages: roles, kinds of events, predicates, refusals; limits of numbers."""

from node.core.errors import RemoteProtocolError
from node.core.message_layout import NamedValues

NAME_LIMIT_BYTES = 255
THE_PROXY = 0xFFFF_FFFF  # in a row of VIEW
U32_BYTES = 4
NUMBER_MAX = 1 << 50  # of requests and configurations: three years at 10 million a second


class Role(NamedValues):
    """The sender's role, in HELLO."""

    PROXY = 0
    DRIVER = 1
    CLIENT = 2
    CONFIGURATION = 3, "the configuration service of a region (3.3)"


class EventKind(NamedValues):
    """The type of an event (paper 2.1). A tombstone represents `count` collected events and has no bytes."""

    DATA = 0
    GC = 1
    TOMBSTONE = 2
    EPOCH = 3, "no event: the stream continues with the first event of the epoch in the argument"


class Predicate(NamedValues):
    """Which earlier events a garbage collection event collects (paper 3.4, 7)."""

    NONE = 0
    BEFORE = 1, "sequence numbers less than the argument"
    LAST = 2, "sequence numbers less than the event's own minus the argument: only the last N stay"
    OLDER_THAN = 3, "published more than the argument, in microseconds, before the event itself"
    SAME_KEY = 4, "events with the same key: the first bytes of an event; the argument is their number"


class Standing(NamedValues):
    """A replica's role in a configuration."""

    MEMBER = 0
    JOINING = 1, "beyond the tail, catching up"


class DiskState(NamedValues):
    """State of a durable replica's disk; a replica without one counts as working."""

    WORKS = 0
    FULL = 1, "the disk accepts nothing, so the replica acknowledges nothing"


class Refusal(NamedValues):
    """Reason of a refusal."""

    MALFORMED = 1, "the connection is closed afterwards"
    NOT_OWNER = 2
    UNKNOWN_STREAM = 3
    HISTORY_FULL = 4
    UNEXPECTED = 5, "a message that this role does not accept, or before HELLO"
    NOT_HEAD = 6, "of the chain: the configuration service knows the head"
    UNDOES = 7, "a garbage collection event that would undo an earlier one (2.1)"
    STALE = 8, "it belongs to another configuration"


FINAL_REFUSALS = frozenset({Refusal.NOT_OWNER, Refusal.UNKNOWN_STREAM, Refusal.UNDOES})
"""Codes of refused publications that must not be repeated."""


def check_number(name: str, number: int, limit: int = NUMBER_MAX) -> None:
    """Raise RemoteProtocolError for a number beyond the limit."""
    if number > limit:
        raise RemoteProtocolError(f"{name} with number {number}")
