"""A channel: an open connection with another process of the system (the paper's FIFO channel, 3.1)."""

from typing import Any

from node.core.peer_channel import PeerChannel
from node.protocols.sprinkler.messages import Role


class Channel(PeerChannel):
    """`role` is the peer's, None until HELLO. reached: by stream, how far the peer said it is."""

    __slots__ = ("reached", "role")

    def __init__(self, connection: int, dialled: str | None, now_us: int, room_bytes: int) -> None:
        super().__init__(connection, dialled, now_us, room_bytes)
        self.role: Role | None = None
        self.reached: dict[int, int] = {}  # a NOTIFY of less would be no news

    def greeted(self, greeting: Any) -> None:
        """The peer has said HELLO."""
        super().greeted(greeting)
        self.role = Role(greeting.role)
