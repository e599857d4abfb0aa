"""Peers on an overlay that never changes, in a flat network: Meghdoot's layers without CAN's."""

from collections import defaultdict
from random import Random

import numpy as np

from node.core import machine as m
from node.core.content.content import ContentAttribute
from node.core.deliveries import RecordKind
from node.core.peers.peer_pool import ReceivedFrom, SendTo
from node.core.specification import PlannedSubscription as Asked
from node.protocols.meghdoot.broker import Broker
from node.protocols.meghdoot.layers import ZoneNeighbours
from node.protocols.meghdoot.parameters import MeghdootParameters
from node.protocols.meghdoot.publishing.event import payload_of
from node.protocols.reachability.nodes import NodeHandle
from node.sim.flat_network import FlatNetwork
from tests.node.protocols.meghdoot.partitions import any_partition

TICK = ("tick",)
FLUSH = ("flush",)
DELAY_US = 5_000


class GivenPeer:
    """A peer of a given partition; routes go straight to where they lead."""

    frame_limit_bytes = 1 << 20

    def own_late_since(self, since_us):
        return self.own_late_us

    def __init__(self, address, peers, parameters, attributes):
        self.own, self.peers, self.parameters = address, peers, parameters
        self.now_us = self.late_us = self.own_late_us = 0
        self.effects = []
        self.delivered = []
        self.interests = []
        self.here = []
        self.is_flushing = False
        self.broker = Broker(
            parameters, attributes, self, self, life=0,
            interest=lambda kind, asked: self.interests.append((kind, asked.number)),
            deliver=self.delivered.append,
        )  # fmt: skip

    # --- Overlay

    def held(self):
        return self.peers.zones_of[self.own]

    def beside(self, zone):
        return self.peers.beside(zone)

    def news(self):
        return ()

    def holders(self, zone, owner):
        return self.peers.holders[zone]

    def known(self):
        return [each for each in self.peers.zones_of if each != self.own]

    def replicas(self, zone):
        return [NodeHandle(each, each) for each in self.peers.holders[zone] if each != self.own]

    def is_owner(self, zone):
        return self.peers.holders[zone][0] == self.own

    # --- Mail

    def send(self, address, message):
        if address == self.own:
            self.here.append(message)
        else:
            self.effects.append(SendTo(address, (message,)))

    def route(self, message, point):
        self.send(self.peers.owner_of(point), message)

    def miss(self, address):
        pass

    def is_silent(self, address, since_us):
        return False

    def has_way_since(self, address, since_us):
        return False

    def is_failed(self, address):
        return address not in self.peers.network.nodes

    def emit(self, effect):
        self.effects.append(effect)

    # --- Machine

    def handle(self, given, now_us):
        self.now_us, self.effects = now_us, []
        if type(given) is ReceivedFrom:
            for message in given.messages:
                self.broker.receive(given.address, message)
        elif type(given) is m.TimerFired:
            self.timer(given.timer)
        elif type(given) is m.Started:
            self.effects.append(m.SetTimer(TICK, now_us + self.parameters.tick_us))
        self.settle()
        return self.effects

    def act(self, now_us, do):
        self.now_us, self.effects = now_us, []
        do()
        self.settle()
        return self.effects

    def timer(self, timer):
        if timer == TICK:
            self.effects.append(m.SetTimer(TICK, self.now_us + self.parameters.tick_us))
            self.broker.tick()
        else:
            self.is_flushing = False
            self.broker.flush()

    def settle(self):
        while self.here:
            self.broker.receive(self.own, self.here.pop(0))
        if not self.is_flushing and self.broker.has_answers:
            self.is_flushing = True
            self.effects.append(m.SetTimer(FLUSH, self.now_us + self.parameters.confirm_us))

    def progress(self):
        return m.NodeProgress()


class GivenPeers:
    """One peer for each zone of a partition, and more for some: replicas."""

    def __init__(self, attributes=2, zones=30, seed=0, replicated=0, quiet=False, **parameters):
        self.rng = Random(seed)
        self.attributes = tuple(ContentAttribute(f"a{n}", "real", 0.0, 100.0) for n in range(attributes))
        self.parameters = MeghdootParameters(**parameters)
        partition = any_partition(2 * attributes, zones, self.rng)
        self.holders = {zone: [at + 1] for at, zone in enumerate(partition)}
        for at in range(replicated):
            self.holders[self.rng.choice(partition)].append(zones + at + 1)
        self.zones_of = defaultdict(list)
        for zone, holders in self.holders.items():
            for holder in holders:
                self.zones_of[holder].append(zone)
        self._edges = np.array([zone.low for zone in partition]), np.array([zone.high for zone in partition])
        self._partition, self._near = partition, {}
        self.network = FlatNetwork(lambda a, b: DELAY_US)
        self.peers = {}
        for address in sorted(self.zones_of):
            self.peers[address] = GivenPeer(address, self, self.parameters, self.attributes)
            (self.network.add if quiet else self.network.start)(address, self.peers[address])

    def beside(self, zone):
        if zone not in self._near:
            low, high = self._edges
            at, end = np.array(zone.low), np.array(zone.high)
            touch = ((low <= end) & (at <= high)).all(axis=1)
            faces = ((low == end) | (high == at)).sum(axis=1) == 1
            rows = np.flatnonzero(touch & faces)
            near = [self._partition[row] for row in rows]
            owners = [self.holders[each][0] for each in near]
            self._near[zone] = ZoneNeighbours(near, owners, low[rows], high[rows])
        return self._near[zone]

    def owner_of(self, point):
        return next(holders[0] for zone, holders in self.holders.items() if zone.contains(point))

    def call(self, address, do):
        self.network.call(address, lambda peer, now_us: peer.act(now_us, lambda: do(peer.broker)))

    def run(self, us):
        self.network.run(self.network.clock.now_us + us)

    # --- Requests to the peers

    def any_ranges(self, share=0.3):
        found = []
        for _ in self.attributes:
            low = self.rng.uniform(0, 100)
            found.append((low, min(100.0, low + share * self.rng.uniform(0, 100))))
            if self.rng.random() < 0.3:
                found[-1] = (0.0, 100.0)
        return tuple(found)

    def subscribe(self, address, number, ranges, *, on=True):
        self.call(address, lambda broker: broker.subscribe(Asked(0, number, on, ranges)))

    def publish(self, address, values):
        numbers = []
        payload = payload_of(values, 8 * len(self.attributes))
        self.call(address, lambda broker: numbers.append(broker.publish(address, payload)))
        return numbers[0]

    def any_values(self):
        return tuple(
            float("nan") if self.rng.random() < 0.15 else self.rng.uniform(0, 100) for _ in self.attributes
        )

    def delivered(self):
        return {
            address: [(each.stream, each.first_seq) for each in peer.delivered]
            for address, peer in self.peers.items()
        }

    def confirmed(self):
        return sum(
            kind == RecordKind.SUBSCRIBED for peer in self.peers.values() for kind, _ in peer.interests
        )


def wants(ranges, values):
    """Whether a subscription matches an event, by the paper's predicate."""
    return all(
        (low <= value <= high) if value == value else (low, high) == (0.0, 100.0)
        for (low, high), value in zip(ranges, values, strict=True)
    )
