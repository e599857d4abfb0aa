"""Who has which zones: what a node has itself, and what it was told that others have.

Several nodes may claim the same volume while they do not reach each other: one of them holds it in trust for
a node that it takes for failed. It belongs to the claim that was taken over least often, of those to the one
with the lowest id. Whoever holds it in trust gives it back when it hears that the other lives.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

import numpy as np

from node.core.peers.peer_pool import Address
from node.protocols.can.messages import Claim, Heirs, sides_of, zone_of
from node.protocols.can.zone_table import Floats, ZoneTable
from node.protocols.can.zones import Point, Zone
from node.protocols.reachability.nodes import NodeHandle

ACQUAINTANCES_MAX = 32
CONTACTS_MAX = 64
PAST_MAX = 1_024  # nodes of which it is remembered how late word of them was
UNFINISHED_MAX = 256  # nodes of whose zones some claims are missing
VERSION_MAX = (1 << 16) - 1

Versions = dict[Zone, int]
"""A node's zones, and how often each was taken over."""
Rank = tuple[int, int]


@dataclass(slots=True, eq=False)
class Holder:
    """A node and its zones. heirs: who takes them over, in order; the first `replicas` have copies now."""

    node: NodeHandle
    sequence: int
    versions: Versions
    since_us: int = 0
    replicas: tuple[NodeHandle, ...] = ()
    heirs: tuple[NodeHandle, ...] = ()
    _addressed: tuple[tuple[NodeHandle, ...] | None, tuple[Address, ...]] = (None, ())  # of which replicas

    def rank(self, zone: Zone) -> Rank:
        """Of those who claim the same volume, the one with the least has it."""
        return self.versions[zone], self.node.id

    @property
    def addresses(self) -> tuple[Address, ...]:
        """Of all who have its zones: itself, then those with copies."""
        replicas, addresses = self._addressed
        if replicas is not self.replicas:
            addresses = (self.node.address, *(each.address for each in self.replicas))
            self._addressed = self.replicas, addresses
        return addresses

    def told(self) -> tuple[Claim, ...]:
        """Its zones, as messages."""
        count = len(self.versions)
        of = self.node.id, self.node.address, self.sequence, count
        if not count:
            return (Claim(*of, 0, ()),)
        return tuple(Claim(*of, version, sides_of(zone)) for zone, version in self.versions.items())

    def named(self) -> tuple[Heirs, ...]:
        """Its heirs, as a message, if they are known."""
        if not self.heirs:
            return ()
        return (Heirs(self.node.id, self.node.address, len(self.replicas), self.heirs),)


@dataclass(slots=True)
class _Unfinished:
    sequence: int
    versions: Versions = field(default_factory=dict)


class Listening:
    """Puts together what comes in several messages."""

    def __init__(self) -> None:
        self._unfinished: dict[Address, _Unfinished] = {}

    def hear(self, claim: Claim, now_us: int) -> Holder | None:
        """A claim came; who has what, once all of its zones are known."""
        node = NodeHandle(claim.id, claim.address)
        if claim.count <= 1:
            versions = {zone_of(claim.sides): claim.version} if claim.count else {}
            return Holder(node, claim.sequence, versions, now_us)
        known = self._unfinished.get(claim.address)
        if known is None or known.sequence != claim.sequence:
            known = self._unfinished[claim.address] = _Unfinished(claim.sequence)
        known.versions[zone_of(claim.sides)] = claim.version
        if len(self._unfinished) > UNFINISHED_MAX:
            del self._unfinished[next(iter(self._unfinished))]
        if len(known.versions) < claim.count:
            return None
        del self._unfinished[claim.address]
        return Holder(node, claim.sequence, known.versions, now_us)


class Claims:
    """What one node knows: its own zones, and those of others that touch or overlap them."""

    def __init__(self, own: NodeHandle, dimensions: int) -> None:
        self.own = Holder(own, 0, {})
        self.others: dict[Address, Holder] = {}
        self.table: ZoneTable[Address] = ZoneTable(dimensions)
        self.original: Address | None = None  # whose zones this node has copies of, if it is a replica
        self.contacts: tuple[Address, ...] = ()  # through whom this node joined, or would
        self.acquaintances: dict[Address, NodeHandle] = {}  # who are no neighbours, oldest first
        self._past: dict[Address, int] = {}  # the sequence of those that were forgotten, oldest first

    def holder(self, address: Address) -> Holder:
        """Who has zones of the table."""
        return self.own if address == self.own.node.address else self.others[address]

    # --- Changes

    def have(self, versions: Versions) -> None:
        """The node's own zones are these from now on."""
        self._replace(self.own.node.address, self.own.versions, versions)
        self.own.versions = versions
        self.own.sequence += 1

    def know(self, holder: Holder) -> None:
        """Another node has these zones. Its replicas and heirs are as they were, but for another life."""
        address = holder.node.address
        before = self.others.get(address)
        if before is not None and before.node == holder.node:
            holder.replicas, holder.heirs = before.replicas, before.heirs
            holder.since_us = before.since_us
        self._replace(address, before.versions if before else {}, holder.versions)
        self.others[address] = holder

    def forget(self, address: Address) -> Holder | None:
        """It has none, as far as this node is concerned; what it had."""
        holder = self.others.pop(address, None)
        if holder is not None:
            self._replace(address, holder.versions, {})
            self.remember(holder)
        return holder

    def remember(self, holder: Holder) -> None:
        """Another node's zones were as this says, and are none of this node's business."""
        address = holder.node.address
        if holder.versions:
            self.meet(holder.node)
        self._past[address] = max(holder.sequence, self._past.pop(address, 0))
        if len(self._past) > PAST_MAX:
            del self._past[next(iter(self._past))]

    def meet(self, node: NodeHandle) -> None:
        """A node is there, though it is no neighbour: where all neighbours lie behind a cut, such a one may
        reach them.
        """
        self.acquaintances.pop(node.address, None)
        if node.address not in self.others and node.address != self.own.node.address:
            self.acquaintances[node.address] = node
            if len(self.acquaintances) > ACQUAINTANCES_MAX:
                del self.acquaintances[next(iter(self.acquaintances))]

    def strange(self) -> list[Address]:
        """Nodes that may know more than those beside this one do."""
        return list(dict.fromkeys((*self.contacts, *self.acquaintances)))

    def is_past(self, holder: Holder) -> bool:
        """Whether something later is known of another node."""
        known = self.others.get(holder.node.address)
        if known is not None:
            return holder.sequence <= known.sequence
        past = self._past.get(holder.node.address, 0)
        return holder.sequence < past or (holder.sequence == past and not self.concerns(holder))

    def check(self) -> None:
        """Assert that a node's own zones have no volume in common, that it is nobody's replica then, and that
        the table has what is known.
        """
        zones = tuple(self.own.versions)
        assert not zones or self.original is None, "zones of its own, and a replica"
        for number, zone in enumerate(zones):
            assert not any(zone.intersects(other) for other in zones[:number]), "its own zones overlap"
        own = self.own.node.address
        assert own not in self.others, "a neighbour of itself"
        known = {(own, zone) for zone in zones}
        known |= {(address, zone) for address, holder in self.others.items() for zone in holder.versions}
        assert known == set(self.table), "zones that the table does not know, or others"
        assert len(self.acquaintances) <= ACQUAINTANCES_MAX, "more acquaintances than may be"

    def _replace(self, address: Address, before: Versions, after: Versions) -> None:
        for zone in before:
            if zone not in after:
                self.table.remove(address, zone)
        for zone in after:
            self.table.add(address, zone)

    # --- Questions

    @property
    def held(self) -> Versions:
        """The zones that this node has, or has copies of."""
        if self.original is None:
            return self.own.versions
        original = self.others.get(self.original)
        return original.versions if original is not None else {}

    def concerns(self, holder: Holder) -> bool:
        """Whether another node's zones touch this one's, or overlap them."""
        return holder.node.address == self.original or any(
            zone.adjacent(own) or zone.intersects(own) for zone in holder.versions for own in self.held
        )

    def strangers(self) -> list[Address]:
        """Those whose zones touch none of this node's any more."""
        near = np.zeros(len(self.table), np.bool_)
        for zone in self.held:
            near |= self.table.adjacent(zone) | self.table.intersecting(zone)
        kept = {self.table.owners[row] for row in np.flatnonzero(near)}
        return [address for address in self.others if address not in kept]

    def beside(self, zone: Zone) -> Iterator[tuple[Holder, Zone]]:
        """Other nodes' zones that share a face with one, in the order of the table."""
        own = self.own.node.address
        for row in np.flatnonzero(self.table.adjacent(zone)):
            owner = self.table.owners[row]
            if owner != own:
                yield self.others[owner], self.table.zones[row]

    def overlapping(self, zones: Iterable[Zone], without: Address) -> Iterator[tuple[Holder, Zone, Zone]]:
        """Others than one node with claims to the volume of its zones: who, to which zone, and to which of
        those.
        """
        for zone in zones:
            for row in np.flatnonzero(self.table.intersecting(zone)):
                owner = self.table.owners[row]
                if owner != without:
                    yield self.holder(owner), self.table.zones[row], zone

    def volumes(self) -> Floats:
        """Of each zone in the table."""
        volumes: Floats = np.multiply.reduce(self.table.high - self.table.low, axis=1)
        return volumes

    def nearest(self, point: Point) -> tuple[Holder, Zone]:
        """The zone that is nearest to a point, and who has it: the paper's greedy routing (2.2).

        If this node's own one is not the nearest, some neighbour's is nearer, always: that of the zone behind
        the face through which the shortest way leads. Distances as numbers may be equal where that one is
        nearer by less than they can tell, or in the half-open sense only; so `zone_table.approach` decides
        between those. A holder's rank decides between claims to the same volume.
        """
        nearest = self.table.nearest(point)
        if len(nearest) == 1:
            [(owner, zone)] = nearest
            return self.holder(owner), zone
        return min(
            ((self.holder(owner), zone) for owner, zone in nearest), key=lambda found: found[0].rank(found[1])
        )
