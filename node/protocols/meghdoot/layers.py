"""What Meghdoot's layers ask of each other, and of the overlay beneath them."""

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
class Surroundings:
    """The zones beside one, and who owns each. A peer may have several that are beside each other. low, high:
    their edges, a row for each.
    """

    zones: Sequence[Zone]
    owners: Sequence[Address]
    low: Floats
    high: Floats


@dataclass(frozen=True, slots=True)
class News:
    """A peer has a zone, or has it no more. It may be this peer, and its zone one of its own."""

    owner: Address
    zone: Zone
    is_there: bool


class Overlay(Protocol):
    """What is known of the overlay."""

    def held(self) -> Sequence[Zone]:
        """The zones of this peer, also those of which it is a replica."""

    def beside(self, zone: Zone) -> Surroundings:
        """What is beside a zone that this peer holds."""

    def news(self) -> Sequence[News] | None:
        """What has become of the zones that are known since this was asked last, in order; None: too much."""

    def holders(self, zone: Zone, owner: Address) -> Sequence[Address]:
        """Who has a zone that is known: its owner, then its replicas."""

    def known(self) -> Iterable[Address]:
        """The owners and replicas of all zones that are known, but for this peer."""

    def replicas(self, zone: Zone) -> Sequence[NodeHandle]:
        """All others that hold a zone of this peer; one that was started again has another id."""

    def is_owner(self, zone: Zone) -> bool:
        """Whether this peer owns one that it holds, and is no replica."""


class Mail(Protocol):
    """How layers speak to those of other peers, and of this one."""

    own: Address
    now_us: int

    def send(self, address: Address, message: Any) -> None:
        """To a peer, also to this one."""

    def route(self, message: Any, point: Point) -> None:
        """To the owner of the zone in which a point is, also to this peer."""

    def miss(self, address: Address) -> None:
        """An answer is late: find out whether the peer lives, and by which way it is reached."""

    def is_silent(self, address: Address, since_us: int) -> bool:
        """Whether nothing came from a peer for so long."""

    def has_way_since(self, address: Address, since_us: int) -> bool:
        """Whether a peer is reached by a way round a cut that was found after a time."""

    def is_failed(self, address: Address) -> bool:
        """Whether a peer is known to give no answer."""

    @property
    def own_late_us(self) -> int:
        """How late this peer does what it should."""

    def own_late_since(self, since_us: int) -> int:
        """Likewise, as far as it was so since a time: a pause that was over then says nothing."""

    @property
    def late_us(self) -> int:
        """How much later than usual answers are to be expected: somebody is short of processors."""

    def emit(self, effect: Effect) -> None:
        """Let something be written down."""


@lru_cache(maxsize=ZONES_MAX)
def zone_id(zone: Zone) -> int:
    """A name for a zone, of 64 bits: who splits or merges it has another one."""
    edges = Struct(f">{2 * zone.dimensions}d").pack(*zone.low, *zone.high)
    return int.from_bytes(blake2b(edges, digest_size=8).digest(), "big")
