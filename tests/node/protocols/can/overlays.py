"""Overlays of CAN nodes in a flat network, and their expected state, computed from all nodes."""

from dataclasses import dataclass
from random import Random
from typing import Annotated

import numpy as np

from node.core.message_layout import Field, TailField
from node.protocols.can.claims import ZoneHolder
from node.protocols.can.messages import Coordinate, coordinates_of, point_of
from node.protocols.can.overlay import Can
from node.protocols.can.parameters import CanParameters
from node.protocols.can.zone_table import ZoneTable
from node.protocols.reachability.nodes import NodeHandle, id_of
from tests.node.protocols.planes import PlaneNode, PlaneOverlay


@dataclass(frozen=True, slots=True)
class Letter:
    """A routed message."""

    number: Annotated[int, Field("I", "", "which one")]
    point: Annotated[tuple[Coordinate, ...], TailField("rows", "where to", Coordinate)]


class CanNode(PlaneNode):
    """A node whose application leaves everything to CAN."""

    def point_of(self, message):
        return point_of(message.point)

    def split(self, zone):
        return None

    def sends_on(self, join):
        return False

    def is_shared(self, message):
        return False

    def gave(self, zone, to):
        pass

    def gained(self, zone, giver):
        pass

    def zones_changed(self):
        pass


class Node(CanNode):
    """A node with settings of its application. life: number of earlier processes at the address."""

    def __init__(self, address, life, dimensions, contacts, parameters, delivered):
        super().__init__(contacts, delivered)
        own = NodeHandle(id_of(f"node {address} {life}"), address)
        self.splits = None
        self.shares = self.is_direct = False
        rng = Random(address + 1000 * life)
        self.layer = self.can = Can(own, dimensions, parameters, rng, emit=self.emit, application=self)

    def start(self, given, now_us):
        self.can.start(self.contacts, now_us, is_direct=self.is_direct)

    # --- Upcalls

    def deliver(self, message):
        self.delivered.append((message.number, self.can.own.address))

    def split(self, zone):
        return self.splits(zone) if self.splits else None

    def is_shared(self, message):
        return self.shares


class Overlay(PlaneOverlay):
    first = 1  # 0 is no address

    def __init__(self, count, dimensions=2, seed=0, gap_us=200_000, parameters=None):
        self.dimensions, self.lives = dimensions, {}
        super().__init__(count, seed, gap_us=gap_us, parameters=parameters or CanParameters())

    def node(self, address, contacts):
        life = self.lives[address] = self.lives.get(address, -1) + 1
        return Node(address, life, self.dimensions, contacts, self.parameters, self.delivered)

    def join_at(self, address, contact, then_us=None):
        """Let a node ask a node for part of its own zone."""
        node = self.join(address)
        node.contacts, node.is_direct = [contact], True
        self.run(then_us)
        return node

    def any_point(self):
        return tuple(self.rng.random() for _ in range(self.dimensions))

    def route(self, count, among=None):
        """Route letters from some nodes to any points; return these and deliveries, as (number, where)."""
        self.delivered.clear()
        among = among or self.nodes
        points = [self.any_point() for _ in range(count)]
        for number, point in enumerate(points):
            self.send(self.rng.choice(among), number, point)
        self.run(2_000_000)
        return points, list(self.delivered)

    def send(self, node, number, point):
        """Route a letter from a node."""
        letter = Letter(number, coordinates_of(point))
        self.act(node.can.own.address, lambda can: can.route(letter))


def assign_zones(nodes, zones):
    """Assign one zone of a partition to each node, as `Can`s, and all neighbours; send nothing."""
    table = ZoneTable(zones[0].dimensions)
    for number, (node, zone) in enumerate(zip(nodes, zones, strict=True)):
        table.add(number, zone)
        node.claims.set_own({zone: 0})
    for node, zone in zip(nodes, zones, strict=True):
        for row in np.flatnonzero(table.adjacent(zone)).tolist():
            other = nodes[table.owners[row]].claims.own
            node.claims.update(ZoneHolder(other.node, other.sequence, dict(other.versions)))


def table_of(nodes):
    """Return the zones by owner."""
    table = ZoneTable(nodes[0].can.claims.table.dimensions)
    for node in nodes:
        for zone in node.can.zones:
            table.add(node.can.own.address, zone)
    return table


def shared(nodes):
    """Return the volume with several owners, counted once per pair."""
    table = table_of(nodes)
    volume = 0.0
    for row, zone in enumerate(table.zones):
        for other in np.flatnonzero(table.intersecting(zone)):
            if other > row:
                volume += zone.intersection(table.zones[other]).volume
    return round(volume, 9)


def unowned(nodes):
    """Return the volume without an owner, if none has several."""
    return round(1.0 - sum(zone.volume for zone in table_of(nodes).zones), 9)


def wrong(nodes):
    """Return all errors: volume without owner, volume with several owners, and wrong neighbours."""
    table = table_of(nodes)
    mistakes = []
    for node in nodes:
        own = node.can.own.address
        if not node.can.is_active:
            mistakes.append((own, "has no zone"))
            continue
        beside = {
            table.owners[row] for zone in node.can.zones for row in np.flatnonzero(table.adjacent(zone))
        }
        there = {(address, zone) for address, zone in table if address in beside - {own}}
        known = {(address, zone) for address, zone in node.can.claims.table if address != own}
        if known != there:
            mistakes.append((own, "misses", there - known, "believes", known - there))
    volume = shared(nodes)
    return round(unowned(nodes) + volume, 9), volume, mistakes
