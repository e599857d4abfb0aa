"""The view of zones that CAN gives to Meghdoot's layers."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from struct import Struct

from node.core.peers.peer_pool import Address
from node.protocols.can.zone_table import Floats
from node.protocols.can.zones import Zone

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


@lru_cache(maxsize=ZONES_MAX)
def zone_id(zone: Zone) -> int:
    """Return a 64-bit hash of a zone's edges; a split or merge changes it."""
    edges = Struct(f">{2 * zone.dimensions}d").pack(*zone.low, *zone.high)
    return int.from_bytes(blake2b(edges, digest_size=8).digest(), "big")
