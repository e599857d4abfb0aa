"""Transport and view of the overlay for Meghdoot's layers, on CAN."""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from node.core.peers.peer_pool import Address, PeerEffect
from node.protocols.can.claims import Versions
from node.protocols.can.overlay import Can
from node.protocols.can.zones import Zone
from node.protocols.meghdoot.layers import OwnershipChange, ZoneNeighbours
from node.protocols.reachability.lateness import Lateness
from node.protocols.reachability.nodes import NodeHandle

USUAL_US = 500_000
CHANGES_MAX = 64
"""Changes of zones that are kept; after more, all zones are read again."""


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


class OverlayView:
    """Knowledge of the overlay: a view of a node's claims."""

    def __init__(self) -> None:
        self._can: Can
        self._changes: list[OwnershipChange] = []
        self._versions: Versions | None = None
        self._held: tuple[Zone, ...] = ()

    def watch_claims(self, can: Can, changed: Callable[[], None]) -> None:
        """Connect to a node's claims; `changed` is called with each change."""
        self._can, self._changed = can, changed
        can.claims.table.watch = self._on_change

    def _on_change(self, owner: Address, zone: Zone, is_there: bool) -> None:
        if len(self._changes) <= CHANGES_MAX:
            self._changes.append(OwnershipChange(owner, zone, is_there))
        self._changed()

    def held(self) -> Sequence[Zone]:
        """Return the zones of this peer, including those that it replicates."""
        versions = self._can.claims.held
        if versions is not self._versions:
            self._versions, self._held = versions, tuple(versions)
        return self._held

    def neighbours(self, zone: Zone) -> ZoneNeighbours:
        """Return the neighbours of a zone that this peer holds."""
        claims = self._can.claims
        table = claims.table
        rows = np.flatnonzero(table.adjacent(zone)).tolist()
        zones, owners = [table.zones[row] for row in rows], [table.owners[row] for row in rows]
        return ZoneNeighbours(zones, owners, table.low[rows], table.high[rows])

    def ownership_changes(self) -> Sequence[OwnershipChange] | None:
        """Return the changes of known zones since the last call, in order; None if there are too many."""
        changes, self._changes = self._changes, []
        return changes if len(changes) <= CHANGES_MAX else None

    def holders(self, zone: Zone, owner: Address) -> Sequence[Address]:
        """Return the holders of a known zone: its owner, then its replicas."""
        return self._can.claims.holder(owner).addresses

    def known(self) -> Iterable[Address]:
        """Return the owners and replicas of all known zones, except this peer."""
        claims = self._can.claims
        holders = (claims.own, *claims.others.values())
        found = dict.fromkeys(address for holder in holders for address in holder.addresses)
        found.pop(claims.own.node.address, None)
        return found

    @property
    def replicas(self) -> Sequence[NodeHandle]:
        """All other peers that hold the zones of this peer; a restarted one has another id."""
        return self._can.claims.own.replicas

    def is_owner(self, zone: Zone) -> bool:
        """Return whether this peer owns the zone rather than replicates it."""
        versions = self._can.claims.own.versions
        return bool(versions) and zone in versions
