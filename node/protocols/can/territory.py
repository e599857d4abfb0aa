"""The zones of one node as they change, and the exchange of claims with its neighbours.

A node sends each change at once to all neighbours (2.3's immediate update). A neighbour learns of new
neighbours from others and sends them HEARTBEAT; one that does not know the sender answers, so that each
learns the other's zones. Conflicting claims are settled as `claims` describes: a third node that notices the
conflict informs the node that must give way. That node gives way when the other claims the volume directly,
because a provisional owner must not give its zone to a node that has failed.
"""

from collections.abc import Callable, Iterable
from typing import Any

from node.core import machine as m
from node.core.peers.peer_pool import Address
from node.protocols.can.claims import ClaimAssembly, Versions, ZoneClaims, ZoneHolder
from node.protocols.can.layers import BoundaryCheck, CanApplication, OrphanedZones
from node.protocols.can.messages import Claim, ClaimRequest, Heartbeat, Successors
from node.protocols.can.versions import merged_versions, united_versions
from node.protocols.can.zones import Zone
from node.protocols.reachability.nodes import NodeHandle
from node.protocols.reachability.reachability import Reachability

LOGGED_DIGITS = 9


class Territory:
    """The zones of one node. The owner of the parts sets `orphans`, `boundary` and `introduce`.

    `introduce` is called with each node that this node learns of.
    """

    orphans: OrphanedZones
    boundary: BoundaryCheck
    introduce: Callable[[ZoneHolder, Address], None]

    def __init__(
        self,
        claims: ZoneClaims,
        reach: Reachability,
        application: CanApplication,
        emit: Callable[[m.Effect], None],
        *,
        homeless: Callable[[], None],
        failed: Callable[[NodeHandle], None],
    ) -> None:
        """Create an empty territory.

        homeless: called when this node has lost all zones. failed: called when another node has failed or
        restarted.
        """
        self.claims = claims
        self._reach = reach
        self._application = application
        self._emit = emit
        self._homeless = homeless
        self._failed = failed
        self._listening = ClaimAssembly()
        self._own = claims.own.node
        self._turn = 0

    # --- Changes of this node's zones

    def gain(self, versions: Versions, giver: NodeHandle | None, *, is_announced: bool = False) -> None:
        """Add zones to this node, which is no longer a replica. is_announced: the giver informs others."""
        self.claims.original = None
        self._set_own(merged_versions(united_versions(self.claims.own.versions, versions)))
        for zone in versions:
            self._application.gained(zone, giver)
            self.orphans.claimed(zone)
        if not is_announced:
            self.announce()
        self.boundary.doubt()
        self._application.zones_changed()

    def give(self, zone: Zone, to: NodeHandle, *others: Any, is_silent: bool = False) -> None:
        """Give the part of the box that is this node's to another node, and announce the change.

        others: messages that go to the neighbours first. is_silent: announce nothing, since more parts
        follow.
        """
        versions: Versions = {}
        lost = []
        for own, version in self.claims.own.versions.items():
            versions |= dict.fromkeys(own.without(zone), version)
            if own.intersects(zone):
                lost.append(own.intersection(zone))
        self._set_own(versions)
        for each in lost:
            self._application.gave(each, to)
        if not is_silent:
            self.announce(*others)
            if versions:
                self.drop_strangers()
            else:
                self._homeless()
            self._application.zones_changed()

    def _set_own(self, versions: Versions) -> None:
        self.claims.set_own(versions)
        volume = sum(zone.volume for zone in versions)
        rows = [logged(zone, version) for zone, version in versions.items()]
        self._emit(m.Log("zones", {"count": len(versions), "volume": volume, "zones": rows}))

    def announce(self, *others: Any) -> None:
        """Send this node's zones to all neighbours and replicas."""
        messages = (*others, *self.claims.own.claim_messages())
        for address in (*self.claims.others, *(each.address for each in self.claims.own.replicas)):
            self._reach.send(address, *messages)

    def drop_strangers(self) -> None:
        """Forget nodes that are no longer neighbours."""
        for address in self.claims.strangers():
            self.claims.forget(address)

    # --- Messages of others

    def claim_received(self, claim: Claim, sender: Address, *, is_introduced: bool = False) -> None:
        """Process a claim. is_introduced: the sender also informs the claiming node about this one."""
        if claim.address == self._own.address:
            return
        holder = self._listening.add(claim, self._reach.now_us)
        if holder is not None:
            self._learn(holder, sender, is_introduced=is_introduced)

    def successors_received(self, successors: Successors) -> None:
        """Record the successors of a node."""
        holder = self.claims.others.get(successors.address)
        known: set[Address] = set()
        if holder is not None and holder.node.id == successors.id:
            before, holder.replicas = holder.replicas, successors.nodes[: successors.replicas]
            known, holder.successors = {each.address for each in holder.successors}, successors.nodes
            if holder.replicas != before:
                self._application.zones_changed()
        for node in successors.nodes:
            if node.address not in known:
                self.claims.add_acquaintance(node)

    def check_sequence(self, node: NodeHandle, sequence: int) -> None:
        """Process the sequence of a live node's zones; request the zones if they are unknown."""
        known = self.claims.others.get(node.address)
        for replica in self.claims.own.replicas:
            if replica.address == node.address:
                if replica != node:
                    self._failed(replica)
                return
        if known is not None and known.node != node:
            if sequence > known.sequence:
                self._failed(known.node)  # an earlier process
            known = None
        if known is None:
            self.orphans.returned(node)
            if self.claims.own.versions:
                self._reach.send(node.address, ClaimRequest(self._own.id), *self.claims.own.claim_messages())
        elif known.sequence < sequence:
            self._reach.send(node.address, ClaimRequest(self._own.id))

    def joins(self, node: NodeHandle, sequence: int) -> None:
        """Process the join of a node; one with a newer id at a known address replaces a failed process."""
        known = self.claims.others.get(node.address)
        if known is not None and known.node != node and sequence > known.sequence:
            self._failed(known.node)  # an earlier process
        for replica in self.claims.own.replicas:
            if replica.address == node.address and replica != node:
                self._failed(replica)

    def _learn(self, holder: ZoneHolder, sender: Address, *, is_introduced: bool) -> None:
        address = holder.node.address
        known = self.claims.others.get(address)
        if known is not None and known.node != holder.node and holder.sequence > known.sequence:
            self._failed(known.node)  # an earlier process
            known = None
        is_direct = sender == address
        if self.claims.is_past(holder):
            if not is_direct or known is None or holder.sequence != known.sequence:
                return
            if holder.versions == known.versions:
                self._give_way(known)  # until now only others reported it
                return
        if is_direct:
            self.orphans.returned(holder.node)
        concerns = self.claims.concerns(holder)
        if concerns:
            self.claims.update(holder)
            if address == self.claims.original and holder.versions:
                self.drop_strangers()
            is_own = not self.claims.own.versions  # a replica contacts no neighbour
            if known is None and not (is_direct or is_introduced or is_own):
                self._greet(holder, sender)
        else:
            self.claims.forget(address)
            self.claims.remember(holder)
        for zone in holder.versions:
            self.orphans.claimed(zone)
        if not is_introduced:
            self.introduce(holder, sender)
        if known is None or not _is_within(holder.versions, known.versions):
            self._settle(holder, sender)
        self._check_lost_zones(known)
        if concerns or known is not None:
            self._application.zones_changed()

    def _greet(self, holder: ZoneHolder, told_by: Address) -> None:
        """Send this node's claims to a newly known node; search a relay if that node does not answer."""
        self._reach.send(holder.node.address, Heartbeat(self._own.id, self.claims.own.sequence))
        if self._reach.is_failed(holder.node.address):
            self._reach.probe(holder.node, told_by)

    def _check_lost_zones(self, before: ZoneHolder | None) -> None:
        """Check whether the zones that a node lost have a known new owner."""
        if before is None:
            return
        for zone in before.versions:
            rest = [zone]
            for row in self.claims.table.intersecting(zone).nonzero()[0]:
                taken = self.claims.table.zones[row]
                rest = [part for each in rest for part in each.without(taken)]
            if any(part.adjacent(own) for part in rest for own in self.claims.own.versions):
                self.boundary.doubt()
                return

    # --- Conflicting claims

    def _settle(self, holder: ZoneHolder, sender: Address) -> None:
        """Check whether other nodes claim the same volume; this node may have to give way."""
        own = self.claims.own
        if not own.versions:  # a replica only probes the other claimants
            for other, _, _ in list(self.claims.overlapping(holder.versions, holder.node.address)):
                self._reach.probe(other.node)
            return
        for other, others_zone, zone in list(self.claims.overlapping(holder.versions, holder.node.address)):
            if other.node.address == sender:
                continue  # the sender knows this claim; its own claims follow
            is_theirs = holder.rank(zone) < other.rank(others_zone)
            winner, loser = (holder, other) if is_theirs else (other, holder)
            if loser is not own:
                self._reach.send(loser.node.address, *winner.claim_messages())
                if other is not own:
                    self._reach.send(other.node.address, ClaimRequest(self._own.id))
            elif sender != winner.node.address:
                self._reach.send(winner.node.address, ClaimRequest(self._own.id))
        if sender == holder.node.address:
            self._give_way(holder)

    def contend(self) -> None:
        """Repeat the check for conflicting claims, since messages may have been lost.

        Each call requests the zones of all nodes that claim this node's volume, and checks one other node in
        turn.
        """
        own = self.claims.own
        rivals = [holder for holder, _, _ in self.claims.overlapping(own.versions, own.node.address)]
        for holder in dict.fromkeys(rivals):
            self._reach.send(holder.node.address, ClaimRequest(own.node.id), *own.claim_messages())
        others = list(self.claims.others.values())
        if others:
            self._turn = (self._turn + 1) % len(others)
            self._settle(others[self._turn], own.node.address)

    def _give_way(self, holder: ZoneHolder) -> None:
        """Give up the volume for which a node's direct claim ranks higher than this node's."""
        own = self.claims.own
        lost = [
            zone.intersection(mine)
            for zone in holder.versions
            for mine in own.versions
            if zone.intersects(mine) and holder.rank(zone) < own.rank(mine)
        ]
        for number, zone in enumerate(lost):
            self.give(zone, holder.node, is_silent=number + 1 < len(lost))


def _is_within(zones: Iterable[Zone], others: Iterable[Zone]) -> bool:
    """Return whether each zone lies in one of the others, so that the node claims no new volume."""
    return all(any(other.covers(zone) for other in others) for zone in zones)


def logged(zone: Zone, version: int) -> list[float]:
    """Return a zone in log form: its version, then its lower and upper edge in each dimension."""
    edges = (edge for both in zip(zone.low, zone.high, strict=True) for edge in both)
    return [version, *(round(edge, LOGGED_DIGITS) for edge in edges)]
