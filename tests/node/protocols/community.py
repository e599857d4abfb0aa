"""Nodes of four regions in a flat network, with all that they put on record, for overlays' tests."""

from collections import defaultdict
from dataclasses import replace
from random import Random

from node.core import machine as m

REGIONS = 4
WAN_US = (1_000, 17_000, 37_000, 23_000)


class Community:
    """A community that a subclass fills with `specs`, `members`, `addresses` and `names`."""

    def __init__(self, network):
        self.records, self.measures, self.logs = defaultdict(list), defaultdict(list), []
        self.starts = defaultdict(int)
        self.network = network(self.delay_us, self.told)

    def machine(self, spec, name):
        """Return the state machine of a node."""
        raise NotImplementedError

    @property
    def now_us(self):
        return self.network.clock.now_us

    def delay_us(self, a, b):
        here, there = (a >> 16) & 255, (b >> 16) & 255
        return WAN_US[(here - there) % REGIONS]

    def start(self, name):
        there = [self.members[self.names[address]] for address in sorted(self.network.nodes)]
        contact = tuple(Random(f"{name} {len(there)}").sample(there, 1)) if there else ()
        spec = replace(self.specs[name], start=self.starts[name], members=contact)
        self.starts[name] += 1
        self.network.start(self.addresses[name], self.machine(spec, name))

    def kill(self, name):
        self.network.kill(self.addresses[name])

    def node(self, name):
        return self.network.nodes[self.addresses[name]].machine

    def told(self, address, time_us, effect):
        if isinstance(effect, m.Record):
            self.records[self.names[address]].append((time_us, effect))
        elif isinstance(effect, m.Measure):
            self.measures[self.names[address]].append((time_us, effect))
        elif isinstance(effect, m.Log):
            self.logs.append((time_us, self.names[address], effect))

    def run(self, us):
        self.network.run(self.now_us + us)

    def tell(self, given):
        for address in list(self.network.nodes):
            self.network.give(address, given)

    def tell_one(self, name):
        """Let a node that was started later take part."""
        self.network.give(self.addresses[name], m.Go(self.now_us))

    def cut(self, *pairs):
        """Regions that do not reach each other from now on."""
        apart = {frozenset(pair) for pair in pairs}
        self.network.reaches = lambda a, b: frozenset(((a >> 16) & 255, (b >> 16) & 255)) not in apart

    def finish(self, settle_us):
        """Publish no more, and let everything come."""
        self.tell(m.StopDrivers())
        self.run(settle_us)
