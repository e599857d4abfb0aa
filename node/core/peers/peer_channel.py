"""State of one open connection with a peer, and its room for data to send.

A connection accepts a burst of a number of bytes; then it must report that it can take more. Bulk data is
sent only while there is room (`open_for_bulk`). Small messages may overdraw it, up to a limit.
"""

from typing import Any, Protocol

from mypy_extensions import mypyc_attr


class Greeting(Protocol):
    """The first message on a connection. incarnation: distinguishes processes with the same name."""

    @property
    def name(self) -> str:
        """The sender's name, by which others dial it."""

    @property
    def incarnation(self) -> int:
        """Number of the process with that name, greater for later ones."""


@mypyc_attr(allow_interpreted_subclasses=True)
class PeerChannel:
    """One open connection and its room for data to send. Protocols extend it by their own state."""

    def __init__(self, connection: int, dialled: str | None, now_us: int, room_bytes: int) -> None:
        self.connection = connection
        self.dialled = dialled  # the peer that this side dialled, if it did
        self.heard_us = now_us
        self.sent_us = now_us
        self.room_bytes = room_bytes  # until the connection must report that it can take more
        self.awaiting = False  # an AwaitWritable is pending
        self.is_read = True
        self.name = dialled or ""  # certain only after its greeting
        self.incarnation = 0
        self.has_greeted = False
        self.has_answered = False  # it sent a message after our greeting, so a round trip is complete

    def greeted(self, greeting: Any) -> None:
        """Store the peer's identity. Extend this for further fields of the greeting."""
        self.name, self.incarnation, self.has_greeted = greeting.name, greeting.incarnation, True

    @property
    def open_for_bulk(self) -> bool:
        """Whether bulk data may be sent on it now."""
        return self.room_bytes > 0 and not self.awaiting
