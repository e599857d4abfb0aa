"""A channel: an open connection with another process of the system (the paper's FIFO channel, 3.1).

`Process` has the operations of a process's parts on its channels; each part adds what else it needs.
"""

from typing import Any, Protocol

from node.core import machine as m
from node.core.peers.peer_channel import PeerChannel
from node.protocols.sprinkler.messages import Refusal, Role
from node.protocols.sprinkler.parameters import SprinklerParameters


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


class Process(Protocol):
    """Methods and state of a `Participant` that its parts use."""

    name: str
    role: Role
    now_us: int
    rng: m.Randomness
    parameters: SprinklerParameters
    channels: dict[str, SprinklerChannel]

    def emit(self, effect: m.Effect) -> None:
        """Add an effect to those of this input."""

    def log(self, event: str, level: str = "info", /, **fields: Any) -> None:
        """Write a line to the log."""

    def send(self, channel: SprinklerChannel, *messages: Any) -> None:
        """Send messages, and subtract their size from the channel's room."""

    def refuse(
        self, channel: SprinklerChannel, code: Refusal, reason: str, stream: int = 0, request: int = 0
    ) -> None:
        """Answer with REFUSED, and log it."""

    def drop(self, channel: SprinklerChannel, reason: str, *, abort: bool = True) -> None:
        """Close a channel from this side and handle its loss."""
