"""Overlays of Pastry nodes in a flat network, and what they should do by the list of all ids."""

from bisect import bisect
from random import Random

from node.core import machine as m
from node.core.peers.peer_pool import ReceivedFrom, Unreachable
from node.protocols.pastry.ids import closest
from node.protocols.pastry.messages import Heartbeat
from node.protocols.pastry.overlay import Pastry
from node.protocols.pastry.parameters import PastryParameters
from node.protocols.reachability.messages import Ping
from node.protocols.reachability.nodes import NodeHandle, id_of
from node.sim.flat_network import FlatNetwork

PLANE_US = 60_000
CONTACTS = 4


class Node:
    """A node whose application writes down what is delivered, and which way it went."""

    frame_limit_bytes = 1 << 20

    def __init__(self, address, contacts, parameters, delivered, node_id=None):
        own = NodeHandle(id_of(f"node {address}") if node_id is None else node_id, address)
        self.effects = []
        self.contacts = contacts
        self.delivered = delivered
        self.pastry = Pastry(own, parameters, Random(address), self.emit, self)

    def emit(self, effect):
        self.effects.append(effect)

    def handle(self, given, now_us):
        self.effects = []
        match given:
            case ReceivedFrom():
                self.pastry.take(given.address, given.messages, now_us)
            case m.Started():
                self.pastry.start(self.contacts, now_us, given.stored)
            case m.TimerFired():
                self.pastry.timer(given.timer, now_us)
            case Unreachable():
                self.pastry.unreachable(given, now_us)
        return self.effects

    def route(self, message, key, now_us):
        self.effects = []
        self.pastry.reach.now_us = now_us
        self.pastry.route(message, key)
        return self.effects

    def send(self, to, now_us):
        """Something that needs no answer; if nothing has come back for a while, the other is missed."""
        self.effects = []
        reach = self.pastry.reach
        reach.now_us = now_us
        if reach.is_silent(to.address, 1_500_000):
            self.pastry.miss(to)
        self.pastry.send(Heartbeat(self.pastry.own.id), to.address)
        return self.effects

    def progress(self):
        return m.NodeProgress()

    def deliver(self, message, key):
        self.delivered.append((message, key, self.pastry.own))

    def forward(self, message, key, following):
        return message

    def receive(self, sender, message):
        raise AssertionError(message)

    def new_leafs(self, leaf_set):
        pass

    def failed(self, node):
        pass


class Overlay:
    """Nodes on a plane, which join one after the other through an existing one."""

    def __init__(self, count, seed=0, *, gap_us=20_000, parameters=None):
        self.rng = Random(seed)
        self.parameters = parameters or PastryParameters()
        self.delivered = []
        self.where = {}
        self.network = FlatNetwork(self.delay_us)
        for address in range(count):
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
        self.network.start(address, Node(address, contacts, self.parameters, self.delivered))

    def run(self, us):
        self.network.run(self.network.clock.now_us + us)

    @property
    def nodes(self):
        return [each.machine for each in self.network.nodes.values()]

    def route(self, count, among=None):
        """Route messages from some nodes to any keys; what was delivered, as (key, where)."""
        self.delivered.clear()
        among = among or self.nodes
        keys = [self.rng.getrandbits(128) for _ in range(count)]
        for number, key in enumerate(keys):
            start = self.rng.choice(among).pastry.own.address
            self.network.call(start, lambda node, now, n=number, k=key: node.route(Ping(0, n), k, now))
        self.run(2_000_000)
        return keys, [(message.number, key, where) for message, key, where in self.delivered]


def wrong_leaf_sets(nodes, half):
    """How many do not have exactly their neighbours on the ring."""
    handles = sorted((node.pastry.own for node in nodes), key=lambda each: each.id)
    count, wrong = len(handles), 0
    for at, own in enumerate(handles):
        leaf_set = next(node.pastry.leaf_set for node in nodes if node.pastry.own == own)
        near = range(1, min(half, count - 1) + 1)
        larger = [handles[(at + step) % count] for step in near]
        smaller = [handles[(at - step) % count] for step in near]
        wrong += leaf_set.larger != larger or leaf_set.smaller != smaller
    return wrong


def root_of(key, nodes):
    """Return the live node that is numerically closest to a key, by a search of all."""
    handles = sorted((node.pastry.own for node in nodes), key=lambda each: each.id)
    at = bisect([each.id for each in handles], key)
    return closest(key, (handles[at - 1], handles[at % len(handles)]))
