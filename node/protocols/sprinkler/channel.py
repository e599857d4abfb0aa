"""A channel: what a node knows of one open connection, and how much may still be handed to it.

`room_bytes` is what may be handed over before the connection has to say that it can take more. Events are
handed over only while there is room (`open_for_bulk`); small messages may overdraw it.
"""

from node.protocols.sprinkler.messages import Role


class Channel:
    """One open connection (the paper's FIFO channel, 3.1)."""

    __slots__ = (
        "awaiting",
        "connection",
        "dialled",
        "has_answered",
        "heard_us",
        "incarnation",
        "is_read",
        "name",
        "reached",
        "role",
        "room_bytes",
        "sent_us",
    )

    def __init__(self, connection: int, dialled: str | None, now_us: int, room_bytes: int) -> None:
        self.connection = connection
        self.dialled = dialled  # the peer that we dialled, if we did
        self.heard_us = now_us
        self.sent_us = now_us
        self.room_bytes = room_bytes
        self.awaiting = False  # asked to be told when it is writable
        self.is_read = True
        self.name = dialled or ""  # known for sure from HELLO on
        self.role: Role | None = None  # None until HELLO
        self.has_answered = False  # it said something after our HELLO: a round trip is behind us
        self.incarnation = 0
        self.reached: dict[int, int] = {}  # by stream, how far the peer said it is: a NOTIFY would be no news

    @property
    def open_for_bulk(self) -> bool:
        """Whether events may be handed to it now."""
        return self.room_bytes > 0 and not self.awaiting
