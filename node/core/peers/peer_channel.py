"""What a process knows of one open connection with a peer, and how much may still be handed to it.

A connection takes a burst of so many bytes; then it has to say that it can take more. Bulk data are handed
over only while there is room (`open_for_bulk`). Small messages may overdraw it, up to a limit.
"""

from typing import Any, Protocol


class Greeting(Protocol):
    """The first message on a connection. incarnation: tells apart processes that had the same name."""

    @property
    def name(self) -> str:
        """The sender's name, by which others dial it."""

    @property
    def incarnation(self) -> int:
        """Which process of that name, greater for later ones."""


class PeerChannel:
    """One open connection, and how much may still be handed to it. Protocols extend it by what they keep."""

    __slots__ = (
        "awaiting",
        "connection",
        "dialled",
        "has_answered",
        "has_greeted",
        "heard_us",
        "incarnation",
        "is_read",
        "name",
        "room_bytes",
        "sent_us",
    )

    def __init__(self, connection: int, dialled: str | None, now_us: int, room_bytes: int) -> None:
        self.connection = connection
        self.dialled = dialled  # the peer that we dialled, if we did
        self.heard_us = now_us
        self.sent_us = now_us
        self.room_bytes = room_bytes  # until it has to say that it can take more
        self.awaiting = False  # asked to be told when it is writable
        self.is_read = True
        self.name = dialled or ""  # known for sure from its greeting on
        self.incarnation = 0
        self.has_greeted = False
        self.has_answered = False  # it said something after our greeting: a round trip is behind us

    def greeted(self, greeting: Any) -> None:
        """The peer says who it is. Extend this for what else its greeting has."""
        self.name, self.incarnation, self.has_greeted = greeting.name, greeting.incarnation, True

    @property
    def open_for_bulk(self) -> bool:
        """Whether more than small messages may be handed to it now."""
        return self.room_bytes > 0 and not self.awaiting
