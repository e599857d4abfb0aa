"""A channel: an open connection with another process of the system (the paper's FIFO channel, 3.1)."""

from typing import Any

from node.core.peers.peer_channel import PeerChannel
from node.protocols.sprinkler.messages import Role


class SprinklerChannel(PeerChannel):
    """A channel with a peer. `role` is the peer's, None until HELLO. reached: the peer's reported counter of
    each stream.
    """

    __slots__ = ("reached", "role")

    def __init__(self, connection: int, dialled: str | None, now_us: int, room_bytes: int) -> None:
        super().__init__(connection, dialled, now_us, room_bytes)
        self.role: Role | None = None
        self.reached: dict[int, int] = {}  # a NOTIFY with a smaller counter would be redundant

    def greeted(self, greeting: Any) -> None:
        """Store the peer's role from its HELLO."""
        super().greeted(greeting)
        self.role = Role(greeting.role)
