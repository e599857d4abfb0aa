"""Overlays of Pastry nodes in a flat network, and their expected behaviour, computed from all ids."""

from bisect import bisect
from random import Random

from node.protocols.pastry.ids import closest
from node.protocols.pastry.overlay import Pastry
from node.protocols.pastry.parameters import PastryParameters
from node.protocols.reachability.messages import Ping
from node.protocols.reachability.nodes import NodeHandle, id_of
from tests.node.protocols.planes import PlaneNode, PlaneOverlay


class Node(PlaneNode):
    def __init__(self, address, contacts, parameters, delivered, node_id=None):
        super().__init__(contacts, delivered)
        own = NodeHandle(id_of(f"node {address}") if node_id is None else node_id, address)
        self.layer = self.pastry = Pastry(own, parameters, Random(address), self.emit, self)

    def start(self, given, now_us):
        self.pastry.start(self.contacts, now_us, given.stored)

    def deliver(self, message, key):
        self.delivered.append((message, key, self.pastry.own))

    def forward(self, message, key, following):
        return message

    def new_leafs(self, leaf_set):
        pass

    def failed(self, node):
        pass


class Overlay(PlaneOverlay):
    def __init__(self, count, seed=0, *, gap_us=20_000, parameters=None):
        super().__init__(count, seed, gap_us=gap_us, parameters=parameters or PastryParameters())

    def node(self, address, contacts, node_id=None):
        return Node(address, contacts, self.parameters, self.delivered, node_id)

    def route(self, count, among=None):
        """Route messages from some nodes to any keys; return keys and deliveries, as (key, where)."""
        self.delivered.clear()
        among = among or self.nodes
        keys = [self.rng.getrandbits(128) for _ in range(count)]
        for number, key in enumerate(keys):
            start = self.rng.choice(among).pastry.own.address
            self.act(start, lambda pastry, n=number, k=key: pastry.route(Ping(0, n), k))
        self.run(2_000_000)
        return keys, [(message.number, key, where) for message, key, where in self.delivered]


def wrong_leaf_sets(nodes, half):
    """Return how many nodes do not have exactly their neighbours on the ring."""
    ring = sorted((node.pastry for node in nodes), key=lambda each: each.own.id)
    handles, count, wrong = [each.own for each in ring], len(ring), 0
    near = range(1, min(half, count - 1) + 1)
    for at, pastry in enumerate(ring):
        larger = [handles[(at + step) % count] for step in near]
        smaller = [handles[(at - step) % count] for step in near]
        wrong += pastry.leaf_set.larger != larger or pastry.leaf_set.smaller != smaller
    return wrong


def root_of(key, nodes):
    """Return the live node that is numerically closest to a key, by a search of all."""
    handles = sorted((node.pastry.own for node in nodes), key=lambda each: each.id)
    at = bisect([each.id for each in handles], key)
    return closest(key, (handles[at - 1], handles[at % len(handles)]))
