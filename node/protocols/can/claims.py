"""Ownership of zones as one node knows it: its own zones and those that others claim.

Several nodes may claim the same volume while they cannot reach each other: one of them holds it provisionally
for a node that it considers failed. The volume belongs to the claim that was taken over least often, then to
the node with the lowest id. A provisional owner gives the volume back when it learns that the other is alive.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from node.core.peers.peer_pool import Address
from node.protocols.can.messages import Claim, Successors, sides_of, zone_of
from node.protocols.can.zone_table import ZoneTable
from node.protocols.can.zones import Point, Zone
from node.protocols.reachability.nodes import NodeHandle

ACQUAINTANCES_MAX = 32
CONTACTS_MAX = 64
PAST_MAX = 1_024  # forgotten nodes whose last sequence is remembered
UNFINISHED_MAX = 256  # nodes with an incomplete set of CLAIMs
VERSION_MAX = (1 << 16) - 1

Versions = dict[Zone, int]
"""A node's zones, and the number of times each was taken over."""
Rank = tuple[int, int]


@dataclass(slots=True, eq=False)
class ZoneHolder:
    """A node and its zones. successors: in order; the first `replicas` of them have copies now."""

    node: NodeHandle
    sequence: int
    versions: Versions
    since_us: int = 0
    replicas: tuple[NodeHandle, ...] = ()
    successors: tuple[NodeHandle, ...] = ()
    # cache of `addresses` and its input
    _addressed: tuple[tuple[NodeHandle, ...] | None, tuple[Address, ...]] = (None, ())

    def rank(self, zone: Zone) -> Rank:
        """Return the rank of this claim: the lowest of several for the same volume wins."""
        return self.versions[zone], self.node.id

    @property
    def addresses(self) -> tuple[Address, ...]:
        """Addresses of all nodes that serve the zones: the owner, then its replicas."""
        replicas, addresses = self._addressed
        if replicas is not self.replicas:
            addresses = (self.node.address, *(each.address for each in self.replicas))
            self._addressed = self.replicas, addresses
        return addresses

    def claim_messages(self) -> tuple[Claim, ...]:
        """Return its zones as messages."""
        count = len(self.versions)
        of = self.node.id, self.node.address, self.sequence, count
        if not count:
            return (Claim(*of, 0, ()),)
        return tuple(Claim(*of, version, sides_of(zone)) for zone, version in self.versions.items())

    def successor_messages(self) -> tuple[Successors, ...]:
        """Return its successors as a message, if they are known."""
        if not self.successors:
            return ()
        return (Successors(self.node.id, self.node.address, len(self.replicas), self.successors),)


@dataclass(slots=True)
class _Unfinished:
    sequence: int
    versions: Versions = field(default_factory=dict)


class ClaimAssembly:
    """Assembly of the CLAIMs of a node into its set of zones."""

    def __init__(self) -> None:
        self._unfinished: dict[Address, _Unfinished] = {}

    def add(self, claim: Claim, now_us: int) -> ZoneHolder | None:
        """Add a claim; return the node's zones once all of them are known."""
        node = NodeHandle(claim.id, claim.address)
        if claim.count <= 1:
            versions = {zone_of(claim.sides): claim.version} if claim.count else {}
            return ZoneHolder(node, claim.sequence, versions, now_us)
        known = self._unfinished.get(claim.address)
        if known is None or known.sequence != claim.sequence:
            known = self._unfinished[claim.address] = _Unfinished(claim.sequence)
        known.versions[zone_of(claim.sides)] = claim.version
        if len(self._unfinished) > UNFINISHED_MAX:
            del self._unfinished[next(iter(self._unfinished))]
        if len(known.versions) < claim.count:
            return None
        del self._unfinished[claim.address]
        return ZoneHolder(node, claim.sequence, known.versions, now_us)


class ZoneClaims:
    """The knowledge of one node: its own zones, and those of others that touch or overlap them."""

    def __init__(self, own: NodeHandle, dimensions: int) -> None:
        self.own = ZoneHolder(own, 0, {})
        self.others: dict[Address, ZoneHolder] = {}
        self.table: ZoneTable[Address] = ZoneTable(dimensions)
        self.original: Address | None = None  # the node that this one is a replica of, if any
        self.contacts: tuple[Address, ...] = ()  # nodes through which this node joined or may join
        self.acquaintances: dict[Address, NodeHandle] = {}  # nodes that are not neighbours, oldest first
        self._past: dict[Address, int] = {}  # last sequence of forgotten nodes, oldest first

    def holder(self, address: Address) -> ZoneHolder:
        """Return the node at an address that has zones in the table."""
        return self.own if address == self.own.node.address else self.others[address]

    # --- Changes

    def set_own(self, versions: Versions) -> None:
        """Set the zones of this node."""
        self._replace(self.own.node.address, self.own.versions, versions)
        self.own.versions = versions
        self.own.sequence += 1

    def update(self, holder: ZoneHolder) -> None:
        """Replace another node's zones; keep its replicas and successors unless it restarted."""
        address = holder.node.address
        before = self.others.get(address)
        if before is not None and before.node == holder.node:
            holder.replicas, holder.successors = before.replicas, before.successors
            holder.since_us = before.since_us
        self._replace(address, before.versions if before else {}, holder.versions)
        self.others[address] = holder

    def forget(self, address: Address) -> ZoneHolder | None:
        """Remove a node and its zones; return what was known of it."""
        holder = self.others.pop(address, None)
        if holder is not None:
            self._replace(address, holder.versions, {})
            self.remember(holder)
        return holder

    def remember(self, holder: ZoneHolder) -> None:
        """Remember the sequence of a node whose zones do not concern this node."""
        address = holder.node.address
        if holder.versions:
            self.add_acquaintance(holder.node)
        self._past[address] = max(holder.sequence, self._past.pop(address, 0))
        if len(self._past) > PAST_MAX:
            del self._past[next(iter(self._past))]

    def add_acquaintance(self, node: NodeHandle) -> None:
        """Remember a node that is not a neighbour: a cut may separate all neighbours, but not this node."""
        self.acquaintances.pop(node.address, None)
        if node.address not in self.others and node.address != self.own.node.address:
            self.acquaintances[node.address] = node
            if len(self.acquaintances) > ACQUAINTANCES_MAX:
                del self.acquaintances[next(iter(self.acquaintances))]

    def outsiders(self) -> list[Address]:
        """Return the nodes outside the neighbourhood that this node may contact."""
        return list(dict.fromkeys((*self.contacts, *self.acquaintances)))

    def is_past(self, holder: ZoneHolder) -> bool:
        """Return whether newer information about the node is known."""
        known = self.others.get(holder.node.address)
        if known is not None:
            return holder.sequence <= known.sequence
        past = self._past.get(holder.node.address, 0)
        return holder.sequence < past or (holder.sequence == past and not self.concerns(holder))

    def check(self) -> None:
        """Assert the invariants of the claims.

        The node's own zones are disjoint, a node with zones is not a replica, and the table contains exactly
        the known zones.
        """
        zones = tuple(self.own.versions)
        assert not zones or self.original is None, "a replica with own zones"
        for number, zone in enumerate(zones):
            assert not any(zone.intersects(other) for other in zones[:number]), "its own zones overlap"
        own = self.own.node.address
        assert own not in self.others, "a neighbour of itself"
        known = {(own, zone) for zone in zones}
        known |= {(address, zone) for address, holder in self.others.items() for zone in holder.versions}
        assert known == set(self.table), "the table differs from the known zones"
        assert len(self.acquaintances) <= ACQUAINTANCES_MAX, "too many acquaintances"

    def _replace(self, address: Address, before: Versions, after: Versions) -> None:
        for zone in before:
            if zone not in after:
                self.table.remove(address, zone)
        for zone in after:
            self.table.add(address, zone)

    # --- Queries

    @property
    def held(self) -> Versions:
        """Zones that this node owns or has copies of."""
        if self.original is None:
            return self.own.versions
        original = self.others.get(self.original)
        return original.versions if original is not None else {}

    def concerns(self, holder: ZoneHolder) -> bool:
        """Return whether another node's zones touch or overlap those of this node."""
        return holder.node.address == self.original or any(
            zone.adjacent(own) or zone.intersects(own) for zone in holder.versions for own in self.held
        )

    def strangers(self) -> list[Address]:
        """Return the nodes whose zones touch none of this node's any more."""
        near = np.zeros(len(self.table), np.bool_)
        for zone in self.held:
            near |= self.table.adjacent(zone) | self.table.intersecting(zone)
        kept = {self.table.owners[row] for row in np.flatnonzero(near)}
        return [address for address in self.others if address not in kept]

    def adjacent(self, zone: Zone) -> Iterator[tuple[ZoneHolder, Zone]]:
        """Yield the zones of other nodes that share a face with the given zone, in table order."""
        own = self.own.node.address
        for row in np.flatnonzero(self.table.adjacent(zone)):
            owner = self.table.owners[row]
            if owner != own:
                yield self.others[owner], self.table.zones[row]

    def overlapping(self, zones: Iterable[Zone], without: Address) -> Iterator[tuple[ZoneHolder, Zone, Zone]]:
        """Yield claims of nodes other than `without` that overlap the given zones.

        Each result is the claiming node, its zone, and the given zone that overlaps it.
        """
        for zone in zones:
            for row in np.flatnonzero(self.table.intersecting(zone)):
                owner = self.table.owners[row]
                if owner != without:
                    yield self.holder(owner), self.table.zones[row], zone

    def nearest(self, point: Point) -> tuple[ZoneHolder, Zone]:
        """Return the zone that is nearest to a point, and its holder: the paper's greedy routing (2.2).

        If this node's own zone is not the nearest, some neighbour's is always nearer: that behind the face
        through which the shortest way leads. Floating-point distances may be equal although that neighbour is
        nearer by less than their precision, or only in the half-open sense; `zone_table.approach` decides
        between those. The rank decides between claims to the same volume.
        """
        nearest = self.table.nearest(point)
        if len(nearest) == 1:
            [(owner, zone)] = nearest
            return self.holder(owner), zone
        return min(
            ((self.holder(owner), zone) for owner, zone in nearest), key=lambda found: found[0].rank(found[1])
        )
