"""Takeover of the zones of failed nodes (2.3).

Each node names its successors in advance: first its replicas; then a neighbour whose zone forms a box
with its own; then those with the smallest zones. So all neighbours agree, and no node needs to know the
neighbours of its neighbours. A node that misses a neighbour reports it to the first successor, which probes
the node, takes over its zones if it has failed, and informs the reporters. If a successor does not act in
time, the next one is asked; after the last one each neighbour tries after a random delay.
"""

from collections.abc import Callable, Set
from dataclasses import dataclass, field

import numpy as np

from node.core import machine as m
from node.core.peers.peer_pool import Address
from node.protocols.can.claims import VERSION_MAX, Versions, ZoneClaims, ZoneHolder
from node.protocols.can.messages import ClaimRequest, Report, Successors
from node.protocols.can.parameters import CanParameters
from node.protocols.can.territory import Territory
from node.protocols.can.zones import Zone
from node.protocols.reachability.nodes import NodeHandle
from node.protocols.reachability.reachability import Reachability

TIMER = "orphan"
REPORTS_MAX = 1_024
LATE = 4  # range of the random delay of nodes that are not successors, in units of `takeover_us`


@dataclass(slots=True)
class _Orphan:
    """The zones of a failed node that have no known owner."""

    node: NodeHandle
    zones: Versions
    successors: list[NodeHandle]
    replicas: tuple[NodeHandle, ...] = ()  # without this node
    is_late: bool = False  # no successor is left


@dataclass(slots=True)
class TakeoverProtocol:
    """Takeover of zones by one node."""

    claims: ZoneClaims
    territory: Territory
    reach: Reachability
    parameters: CanParameters
    rng: m.Randomness
    emit: Callable[[m.Effect], None]
    adopt: Callable[[tuple[NodeHandle, ...]], None] = lambda nodes: None
    _orphans: dict[Address, _Orphan] = field(default_factory=dict)
    _reported: dict[Address, dict[Address, None]] = field(default_factory=dict)
    _named: tuple[NodeHandle, ...] = ()

    # --- In advance

    def announce_successors(self) -> None:
        """Send the list of successors to all neighbours if it has changed."""
        own = self.claims.own
        named = own.replicas + tuple(each for each in self.successors() if each not in own.replicas)
        if named != self._named:
            self._named = named
            message = Successors(own.node.id, own.node.address, len(own.replicas), named)
            for holder in (own, *self.claims.others.values()):
                for address in holder.addresses:
                    if address != own.node.address:
                        self.reach.send(address, message)

    def successors_message(self) -> Successors | None:
        """Return the list of successors as a message for a neighbour that may have missed it."""
        own = self.claims.own
        return (
            Successors(own.node.id, own.node.address, len(own.replicas), self._named) if self._named else None
        )

    def successors(self, without: Set[NodeHandle] = frozenset()) -> list[NodeHandle]:
        """Return the neighbours that should take over this node's zones, in order, except `without`."""
        table = self.claims.table
        fits = np.zeros(len(table), np.bool_)
        near = np.zeros(len(table), np.bool_)
        for zone in self.claims.own.versions:
            same = (table.low == np.asarray(zone.low)) & (table.high == np.asarray(zone.high))
            adjacent = table.adjacent(zone)
            near |= adjacent
            fits |= adjacent & (np.count_nonzero(same, axis=1) == table.dimensions - 1)
        others = self.claims.others
        order: dict[NodeHandle, tuple[bool, float, int]] = {}
        for row in np.flatnonzero(near).tolist():
            holder = others.get(table.owners[row])
            if holder is not None and holder.node not in without:
                volume = sum(zone.volume for zone in holder.versions)
                key = (not fits[row], volume, holder.node.id)
                order[holder.node] = min(key, order.get(holder.node, key))
        return sorted(order, key=lambda node: order[node])[: self.parameters.successors]

    # --- A node failed

    def failed(self, holder: ZoneHolder) -> None:
        """Start the takeover of a failed node's zones."""
        successors = [each for each in holder.successors if each != holder.node]
        earlier = self._orphans.get(holder.node.address)
        self._orphans[holder.node.address] = orphan = _Orphan(
            holder.node,
            (earlier.zones if earlier else {}) | holder.versions,
            successors,
            tuple(each for each in holder.replicas if each != self.claims.own.node),
        )
        for other in list(self.claims.others.values()):
            for zone in other.versions:
                self.claimed(zone)
        for zone in self.claims.own.versions:
            self.claimed(zone)
        if orphan.zones:
            self._ask_next_successor(orphan)

    def _ask_next_successor(self, orphan: _Orphan) -> None:
        own = self.claims.own
        while orphan.successors and self.reach.is_failed(orphan.successors[0].address):
            del orphan.successors[0]
        if orphan.successors and orphan.successors[0] == own.node:
            self._take_over(orphan)
            return
        wait_us = self.parameters.takeover_us
        if orphan.successors:
            successor = orphan.successors.pop(0)
            report = Report(orphan.node.id, orphan.node.address)
            self.reach.send(successor.address, *own.claim_messages(), report)
        elif orphan.is_late:
            self._take_over(orphan)
            return
        else:
            orphan.is_late = True
            wait_us += int(wait_us * LATE * self.rng.random())
        timer = (TIMER, str(orphan.node.address))
        self.emit(m.SetTimer(timer, self.reach.now_us + wait_us))

    def timed_out(self, address: Address) -> None:
        """Ask the next successor, since no node has taken over the zones."""
        orphan = self._orphans.get(address)
        if orphan is not None:
            self._ask_next_successor(orphan)

    def _take_over(self, orphan: _Orphan) -> None:
        address = orphan.node.address
        versions = {zone: min(version + 1, VERSION_MAX) for zone, version in orphan.zones.items()}
        self.emit(m.Log("takeover", {"peer": address, "count": len(versions)}))
        self._remove(address)
        is_replica = self.claims.original == address
        self.territory.gain(versions, self.claims.own.node if is_replica else None)
        if is_replica:
            self.adopt(orphan.replicas)
        for reporter in self._reported.pop(address, ()):
            self._send_claims(reporter)

    def _send_claims(self, address: Address) -> None:
        self.reach.send(address, ClaimRequest(self.claims.own.node.id), *self.claims.own.claim_messages())

    def report(self, sender: Address, report: Report) -> None:
        """Process the report of a node that misses another one, whose successor this node is."""
        known = self.claims.others.get(report.address)
        if known is not None or report.address in self._orphans:
            reporters = self._reported.setdefault(report.address, {})
            reporters[sender] = None
            if len(reporters) > REPORTS_MAX:
                del reporters[next(iter(reporters))]
            if known is not None:
                self.reach.probe(known.node, is_missed=True)
        if known is None:
            self._send_claims(sender)

    # --- Outcome (`layers.OrphanedZones`)

    def claimed(self, zone: Zone) -> None:
        """Remove a zone from the orphaned ones, since a node claims it."""
        for address, orphan in list(self._orphans.items()):
            if any(each.intersects(zone) for each in orphan.zones):
                orphan.zones = {
                    part: version for each, version in orphan.zones.items() for part in each.without(zone)
                }
                if not orphan.zones:
                    self._remove(address)

    def returned(self, node: NodeHandle) -> None:
        """Cancel the takeover for a node that is alive, and send its claims to the nodes that reported it.

        A restarted process has another id and does not cancel the takeover.
        """
        orphan = self._orphans.get(node.address)
        if orphan is not None and orphan.node != node:
            return
        self._remove(node.address)
        known = self.claims.others.get(node.address)
        for reporter in self._reported.pop(node.address, ()):
            if known is not None:
                self.reach.send(reporter, *known.claim_messages())

    def is_orphan(self, zone: Zone) -> bool:
        """Return whether part of the box waits for takeover from a failed node."""
        return any(each.intersects(zone) for orphan in self._orphans.values() for each in orphan.zones)

    def _remove(self, address: Address) -> None:
        if self._orphans.pop(address, None) is not None:
            self.emit(m.CancelTimer((TIMER, str(address))))
