"""Overlays of nodes on a plane in a flat network, for tests of the overlays alone."""

from random import Random

from node.core import machine as m
from node.core.peers.peer_pool import ReceivedFrom, Unreachable
from node.sim.flat_network import FlatNetwork

PLANE_US = 60_000
CONTACTS = 4


class PlaneNode:
    """A node whose application records what is delivered. `layer`: its overlay."""

    frame_limit_bytes = 1 << 20

    def __init__(self, contacts, delivered):
        self.effects, self.contacts, self.delivered = [], contacts, delivered

    def emit(self, effect):
        self.effects.append(effect)

    def start(self, given, now_us):
        """Start the layer's join."""
        raise NotImplementedError

    def handle(self, given, now_us):
        self.effects = []
        match given:
            case ReceivedFrom():
                self.layer.take(given.address, given.messages, now_us)
            case m.Started():
                self.start(given, now_us)
            case m.TimerFired():
                assert self.layer.timer(given.timer, now_us)
            case Unreachable():
                self.layer.unreachable(given, now_us)
        return self.effects

    def act(self, now_us, do):
        """See `OverlayNode.act`."""
        self.effects = []
        self.layer.reach.now_us = now_us
        do()
        return self.effects

    def progress(self):
        return m.NodeProgress()

    # --- Upcalls

    def receive(self, sender, message):
        raise AssertionError(message)


class PlaneOverlay:
    """Nodes on a plane that join one after the other through existing nodes."""

    first = 0  # address of the first node

    def __init__(self, count, seed=0, *, gap_us, parameters):
        self.rng, self.parameters = Random(seed), parameters
        self.delivered, self.where = [], {}
        self.network = FlatNetwork(self.delay_us)
        for address in range(self.first, self.first + count):
            self.join(address)
            self.run(gap_us)
        self.run(4_000_000)

    def node(self, address, contacts):
        """Return a new node."""
        raise NotImplementedError

    def delay_us(self, a, b):
        (x, y), (u, v) = self.where[a], self.where[b]
        return 1_000 + int(PLANE_US * ((x - u) ** 2 + (y - v) ** 2) ** 0.5)

    # --- Events in virtual time; `then_us` passes after each

    def join(self, address, then_us=None):
        self.where[address] = self.rng.random(), self.rng.random()
        there = sorted(self.network.nodes)
        node = self.node(address, self.rng.sample(there, min(CONTACTS, len(there))))
        self.network.start(address, node)
        self.run(then_us)
        return node

    def run(self, us):
        if us is not None:
            self.network.run(self.network.clock.now_us + us)

    def act(self, address, do, then_us=None):
        """Call a function on a node's layer."""
        self.network.act(address, lambda node: do(node.layer))
        self.run(then_us)

    def kill(self, address, then_us=None):
        self.network.kill(address)
        self.run(then_us)

    def kill_some(self, count, then_us=None):
        for address in self.rng.sample(sorted(self.network.nodes), count):
            self.network.kill(address)
        self.run(then_us)

    @property
    def nodes(self):
        return [each.machine for each in self.network.nodes.values()]
