"""Transport of the overlay for Meghdoot's layers, on CAN."""

from collections import deque
from collections.abc import Callable
from typing import Any

from node.core.peers.peer_pool import Address, PeerEffect
from node.protocols.can.overlay import Can
from node.protocols.reachability.lateness import Lateness

USUAL_US = 500_000


class OverlayTransport:
    """Transport of messages to other peers and to this one.

    here: messages of this peer to itself, which wait until the current input is processed.
    """

    def __init__(self, own: Address, emit: Callable[[PeerEffect], None]) -> None:
        self.can: Can
        self.own = own
        self.here: deque[Any] = deque()
        self.lateness = Lateness(USUAL_US)
        self.emit = emit

    @property
    def now_us(self) -> int:
        """Time of the current input."""
        return self.can.reach.now_us

    def send(self, address: Address, message: Any) -> None:
        """Send a message to a peer, possibly to this one."""
        if address == self.own:
            self.here.append(message)
        else:
            self.can.reach.send(address, message)

    def route(self, message: Any) -> None:
        """Route a message to the owner of the zone that contains its point, possibly this peer."""
        self.can.route(message)

    def miss(self, address: Address) -> None:
        """Probe a peer whose answer is late, to learn whether it is alive and how it is reached."""
        if address != self.own:
            self.can.miss(address)

    def is_silent(self, address: Address, since_us: int) -> bool:
        """Return whether nothing arrived from a peer within `since_us`."""
        return self.can.reach.is_silent(address, since_us)

    def has_way_since(self, address: Address, since_us: int) -> bool:
        """Return whether a peer is reached through relays that were found after the given time."""
        return self.can.reach.has_way_since(address, since_us)

    def is_failed(self, address: Address) -> bool:
        """Return whether a peer is known as failed."""
        return self.can.reach.is_failed(address)

    @property
    def own_late_us(self) -> int:
        """Lateness of this peer's own timers."""
        return self.lateness.at(self.now_us)

    def own_late_since(self, since_us: int) -> int:
        """Return this peer's lateness if any was recorded since the given time, else 0."""
        return self.lateness.since(since_us, self.now_us)

    @property
    def late_us(self) -> int:
        """Expected lateness of answers, because of busy processors."""
        return self.can.reach.late_us
