"""Overlays of CAN nodes in a flat network, and what they should be by a look at all of them."""

from dataclasses import dataclass
from random import Random
from typing import Annotated

import numpy as np

from node.core import machine as m
from node.core.message_layout import Field, TailField
from node.core.peers.peer_pool import ReceivedFrom, Unreachable
from node.protocols.can.messages import Coordinate, coordinates_of, point_of
from node.protocols.can.overlay import Can
from node.protocols.can.parameters import CanParameters
from node.protocols.can.zone_table import ZoneTable
from node.protocols.reachability.nodes import NodeHandle, id_of
from node.sim.flat_network import FlatNetwork

PLANE_US = 60_000
CONTACTS = 4


@dataclass(frozen=True, slots=True)
class Letter:
    """A routed message."""

    number: Annotated[int, Field("I", "", "which one")]
    point: Annotated[tuple[Coordinate, ...], TailField("rows", "where to", Coordinate)]


class Node:
    """A node whose application writes down what is delivered, and which zones came and went."""

    frame_limit_bytes = 1 << 20

    def __init__(self, address, life, dimensions, contacts, parameters, delivered):
        own = NodeHandle(id_of(f"node {address} {life}"), address)
        self.effects = []
        self.contacts = contacts
        self.delivered = delivered
        self.splits = None
        self.shares = False
        self.is_direct = False
        rng = Random(address + 1000 * life)
        self.can = Can(own, dimensions, parameters, rng, emit=self.emit, application=self)

    def emit(self, effect):
        self.effects.append(effect)

    def handle(self, given, now_us):
        self.effects = []
        match given:
            case ReceivedFrom():
                self.can.take(given.address, given.messages, now_us)
            case m.Started():
                self.can.start(self.contacts, now_us, is_direct=self.is_direct)
            case m.TimerFired():
                assert self.can.timer(given.timer, now_us)
            case Unreachable():
                self.can.unreachable(given, now_us)
        return self.effects

    def act(self, now_us, do):
        self.effects = []
        self.can.reach.now_us = now_us
        do(self.can)
        return self.effects

    # --- Upcalls

    def point_of(self, message):
        return point_of(message.point)

    def deliver(self, message, point):
        self.delivered.append((message.number, self.can.own.address))

    def receive(self, sender, message):
        raise AssertionError("nothing is sent")

    def split(self, zone, joining):
        return self.splits(zone) if self.splits else None

    def gave(self, zone, to):
        pass

    def gained(self, zone, giver):
        pass

    def sends_on(self, join):
        return False

    def is_shared(self, message):
        return self.shares

    def zones_changed(self):
        pass

    def failed(self, node):
        pass


class Overlay:
    """Nodes on a plane; addresses from 1 on: 0 is no address."""

    def __init__(self, count, dimensions=2, seed=0, gap_us=200_000, parameters=None):
        self.rng = Random(seed)
        self.dimensions = dimensions
        self.parameters = parameters or CanParameters()
        self.delivered = []
        self.where = {}
        self.lives = {}
        self.network = FlatNetwork(self.delay_us)
        for address in range(1, count + 1):
            self.join(address)
            self.run(gap_us)
        self.run(4_000_000)

    def delay_us(self, a, b):
        (x, y), (u, v) = self.where[a], self.where[b]
        return 1_000 + int(PLANE_US * ((x - u) ** 2 + (y - v) ** 2) ** 0.5)

    def join(self, address):
        self.where[address] = self.rng.random(), self.rng.random()
        there = sorted(self.network.nodes)
        contacts = self.rng.sample(there, min(CONTACTS, len(there)))
        life = self.lives[address] = self.lives.get(address, -1) + 1
        node = Node(address, life, self.dimensions, contacts, self.parameters, self.delivered)
        self.network.start(address, node)
        return node

    def run(self, us):
        self.network.run(self.network.clock.now_us + us)

    @property
    def nodes(self):
        return [each.machine for each in self.network.nodes.values()]

    def route(self, count, among=None):
        """Route letters from some nodes to any points; those, and what was delivered, as (number, where)."""
        self.delivered.clear()
        among = among or self.nodes
        points = [tuple(self.rng.random() for _ in range(self.dimensions)) for _ in range(count)]
        for number, point in enumerate(points):
            self.send(self.rng.choice(among), number, point)
        self.run(2_000_000)
        return points, list(self.delivered)

    def send(self, node, number, point):
        """Route a letter from a node."""
        letter = Letter(number, coordinates_of(point))
        self.network.call(
            node.can.own.address, lambda node, now: node.act(now, lambda can: can.route(letter))
        )


def table_of(nodes):
    """Who has what."""
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
