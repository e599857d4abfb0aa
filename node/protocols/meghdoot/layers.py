"""Interfaces between Meghdoot's layers, and to the overlay below them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from struct import Struct
from typing import Any, Protocol

from node.core.machine import Effect
from node.core.peers.peer_pool import Address
from node.protocols.can.zone_table import Floats
from node.protocols.can.zones import Point, Zone
from node.protocols.reachability.nodes import NodeHandle

ZONES_MAX = 1 << 17


@dataclass(frozen=True, slots=True)
class ZoneNeighbours:
    """The neighbours of a zone, and their owners. Several zones of one peer may be neighbours of each other.

    low, high: edges, one row per zone.
    """

    zones: Sequence[Zone]
    owners: Sequence[Address]
    low: Floats
    high: Floats


@dataclass(frozen=True, slots=True)
class OwnershipChange:
    """A change of ownership: a peer, possibly this one, has or no longer has a zone."""

    owner: Address
    zone: Zone
    is_there: bool


class Overlay(Protocol):
    """Knowledge of the overlay."""

    def held(self) -> Sequence[Zone]:
        """Return the zones of this peer, including those that it replicates."""

    def beside(self, zone: Zone) -> ZoneNeighbours:
        """Return the neighbours of a zone that this peer holds."""

    def news(self) -> Sequence[OwnershipChange] | None:
        """Return the changes of known zones since the last call, in order; None if there are too many."""

    def holders(self, zone: Zone, owner: Address) -> Sequence[Address]:
        """Return the holders of a known zone: its owner, then its replicas."""

    def known(self) -> Iterable[Address]:
        """Return the owners and replicas of all known zones, except this peer."""

    def replicas(self, zone: Zone) -> Sequence[NodeHandle]:
        """Return all other peers that hold a zone of this peer; a restarted one has another id."""

    def is_owner(self, zone: Zone) -> bool:
        """Return whether this peer owns the zone rather than replicates it."""


class MessageTransport(Protocol):
    """Transport of messages to other peers and to this one."""

    own: Address
    now_us: int

    def send(self, address: Address, message: Any) -> None:
        """Send a message to a peer, possibly to this one."""

    def route(self, message: Any, point: Point) -> None:
        """Route a message to the owner of the zone that contains the point, possibly this peer."""

    def miss(self, address: Address) -> None:
        """Probe a peer whose answer is late, to learn whether it is alive and how it is reached."""

    def is_silent(self, address: Address, since_us: int) -> bool:
        """Return whether nothing arrived from a peer within `since_us`."""

    def has_way_since(self, address: Address, since_us: int) -> bool:
        """Return whether a peer is reached through relays that were found after the given time."""

    def is_failed(self, address: Address) -> bool:
        """Return whether a peer is known as failed."""

    @property
    def own_late_us(self) -> int:
        """Lateness of this peer's own timers."""

    def own_late_since(self, since_us: int) -> int:
        """Return this peer's lateness if any was recorded since the given time, else 0."""

    @property
    def late_us(self) -> int:
        """Expected lateness of answers, because of busy processors."""

    def emit(self, effect: Effect) -> None:
        """Emit an effect, such as a log entry."""


@lru_cache(maxsize=ZONES_MAX)
def zone_id(zone: Zone) -> int:
    """Return a 64-bit hash of a zone's edges; a split or merge changes it."""
    edges = Struct(f">{2 * zone.dimensions}d").pack(*zone.low, *zone.high)
    return int.from_bytes(blake2b(edges, digest_size=8).digest(), "big")
