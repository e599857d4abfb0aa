"""How a node gets its first zone (2.1): it requests part of the zone that contains a point.

The request is routed through a known node, and repeated until a zone is granted. The owner of the zone splits
it where its application decides, or at the middle of the longest side. A node with several zones, after a
takeover, gives one away whole.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from node.core import machine as m
from node.core.peers.peer_pool import Address
from node.protocols.can.claims import CONTACTS_MAX, ZoneClaims
from node.protocols.can.grants import Grants
from node.protocols.can.layers import CanApplication
from node.protocols.can.messages import Claim, Join, Route, coordinates_of, point_of
from node.protocols.can.parameters import CanParameters
from node.protocols.can.replicas import Replicas
from node.protocols.can.territory import Territory
from node.protocols.can.zones import Point, Zone
from node.protocols.reachability.nodes import NodeHandle
from node.protocols.reachability.reachability import Reachability

TIMER: m.Timer = ("join",)
SAME_US = 10_000  # maximum time between messages that were sent together


@dataclass(slots=True, eq=False)
class ZoneJoining:
    """Joins of one node: its own, and those of other nodes into its zones."""

    claims: ZoneClaims
    grants: Grants
    replicas: Replicas
    territory: Territory
    reach: Reachability
    application: CanApplication
    parameters: CanParameters
    rng: m.Randomness
    emit: Callable[[m.Effect], None]
    _point: Point | None = None
    _is_direct: bool = False
    _attempts: int = 0
    _giver: Address | None = None
    _given_us: int = 0

    # --- Join of this node

    def start(self, contacts: Iterable[Address], point: Point | None, *, is_direct: bool = False) -> None:
        """Ask the contacts one after the other. is_direct: for part of their own zones."""
        own = self.claims.own
        own.sequence = max(own.sequence, self.reach.now_us)
        known = [each for each in (*contacts, *self.claims.outsiders()) if each != own.node.address]
        self.claims.contacts = tuple(dict.fromkeys(known))[:CONTACTS_MAX]
        self._point, self._is_direct = point, is_direct
        self._attempts = 0
        self.try_again()

    def try_again(self) -> None:
        """Repeat the join, through another contact and, unless a point is given, to another point."""
        contacts = self.claims.outsiders()
        if not contacts:
            return
        own = self.claims.own
        contact = contacts[self._attempts % len(contacts)]
        if self._attempts:
            # invalidates a zone that others may have been announced, but that this node did not get
            own.sequence += 1
        self._attempts += 1
        point = self._point or tuple(self.rng.random() for _ in range(self.claims.table.dimensions))
        join = Join(own.node.id, own.node.address, own.sequence + 1, coordinates_of(point))
        if self._is_direct:
            self.reach.send(contact, join)
        else:
            self.reach.send(contact, Route(0, 0, join))
        self.emit(m.SetTimer(TIMER, self.reach.now_us + self.parameters.join_timeout_us))

    def is_given_by(self, address: Address) -> bool:
        """Return whether that node has just granted this one its first zone, and so announces this node to
        others.
        """
        return address == self._giver and self.reach.now_us - self._given_us <= SAME_US

    def given(self, address: Address) -> None:
        """Record the node that granted the first zone."""
        self._giver, self._given_us = address, self.reach.now_us
        self.emit(m.CancelTimer(TIMER))

    # --- Joins of others

    def admit(self, join: Join) -> None:
        """Give part of a zone or copies to a joining node."""
        node = NodeHandle(join.id, join.address)
        if self.grants.has_just_given(node):
            return  # a repeated request; the grant is repeated, too
        known = self.claims.others.get(join.address)
        if known is not None and known.node == node and known.sequence >= join.sequence:
            return  # a late request: the node already has zones
        # Zones that it had before the join are no longer its own.
        self.territory.claim_received(Claim(join.id, join.address, join.sequence, 0, 0, ()), join.address)
        point = point_of(join.point)
        zones = self.claims.own.versions
        zone = next((each for each in zones if each.contains(point)), None)
        zone = zone or max(zones, key=lambda each: each.volume)
        part = self._part(zone, join)
        if part is None:
            self.replicas.add(node)
        else:
            self.grants.to_joining(join, part, zones[zone])

    def _part(self, zone: Zone, join: Join) -> Zone | None:
        """Return the half with the joining node's point, or the upper one; None for a replica."""
        if len(self.claims.own.versions) > 1:
            return zone
        wanted = self.application.split(zone)
        if wanted == "copy":
            return None
        if wanted is None:
            side = zone.longest_side
            wanted = side, zone.middle[side]
            if not zone.low[side] < wanted[1] < zone.high[side]:
                return None  # too thin to split in floating point
        below, above = zone.split(*wanted)
        return below if below.contains(point_of(join.point)) else above
