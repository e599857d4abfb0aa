"""Nodes of four regions in a flat network, with all their records, for tests of systems on an overlay."""

from collections import defaultdict
from dataclasses import replace
from ipaddress import IPv4Address
from random import Random

from node.core import machine as m
from node.core.specification import Member, NodeSpec
from node.sim.flat_network import FlatNetwork

REGIONS = 4
WAN_US = (1_000, 17_000, 37_000, 23_000)


def region(address):
    return (address >> 16) & 255


class Community:
    """One publisher of each region, and `count` subscribing nodes with drawn subscriptions."""

    system, role = "", ""

    def __init__(
        self,
        count,
        seed,
        *,
        parameters,
        workload,
        streams,
        network=FlatNetwork,
        gap_us=0,
        run_us=None,
        settle_us=10_000_000,
    ):
        """Start all nodes, `gap_us` after each other; let them publish, for `run_us` at first."""
        self.rng, self.settle_us = Random(seed), settle_us
        self.records, self.measures, self.logs = defaultdict(list), defaultdict(list), []
        self.starts = defaultdict(int)
        self.network = network(self.delay_us, self.told)
        names = [f"r{region}/publisher-0" for region in range(REGIONS)]
        names += [f"r{n % REGIONS}/{self.role}-{n // REGIONS}" for n in range(count)]
        self.members = {
            name: Member(name, name, name[:2], name[3:].split("-")[0], 0, f"10.{name[1]}.0.{at + 1}")
            for at, name in enumerate(names)
        }
        self.addresses = {name: int(IPv4Address(each.address)) for name, each in self.members.items()}
        self.names = {address: name for name, address in self.addresses.items()}
        self.specs = {
            name: NodeSpec(
                name, name, each.region, each.role, 0, seed, self.system, (), each.address, parameters,
                workload, streams, subscriptions=self.drawn() if each.role == self.role else (),
            )
            for name, each in self.members.items()
        }  # fmt: skip
        for name in self.specs:
            self.start(name)
            if gap_us:
                self.run(gap_us)
        self.run(3_000_000)
        self.tell(m.Go(self.now_us))
        self.run(run_us)

    def drawn(self):
        """Draw the subscriptions of a node."""
        raise NotImplementedError

    def machine(self, spec, name):
        """Return the state machine of a node."""
        raise NotImplementedError

    @property
    def now_us(self):
        return self.network.clock.now_us

    def delay_us(self, a, b):
        return WAN_US[(region(a) - region(b)) % REGIONS]

    # --- Events in virtual time; `then_us` passes after each

    def start(self, name, then_us=None):
        there = [self.members[self.names[address]] for address in sorted(self.network.nodes)]
        contact = tuple(Random(f"{name} {len(there)}").sample(there, 1)) if there else ()
        spec = replace(self.specs[name], start=self.starts[name], members=contact)
        self.starts[name] += 1
        self.network.start(self.addresses[name], self.machine(spec, name))
        self.run(then_us)

    def kill(self, name, then_us=None):
        self.network.kill(self.addresses[name])
        self.run(then_us)

    def restart(self, name, after_us=1_000, then_us=None):
        """Restart a node and let it join."""
        self.start(name)
        self.run(after_us)
        self.network.give(self.addresses[name], m.Go(self.now_us))
        self.run(then_us)

    def finish_one(self, name, then_us=None):
        """Let a node stop by itself."""
        self.network.give(self.addresses[name], m.Finish())
        self.run(then_us)

    def node(self, name):
        return self.network.nodes[self.addresses[name]].machine

    def nodes(self):
        return {self.names[address]: flat.machine for address, flat in self.network.nodes.items()}

    def subscribers(self):
        """Return the names of all nodes that subscribe."""
        return [name for name in self.specs if self.role in name]

    def told(self, address, time_us, effect):
        if isinstance(effect, m.Record):
            self.records[self.names[address]].append((time_us, effect))
        elif isinstance(effect, m.Measure):
            self.measures[self.names[address]].append((time_us, effect))
        elif isinstance(effect, m.Log):
            self.logs.append((time_us, self.names[address], effect))

    def recorded(self, name, kind):
        """Return (time, record) of a node's records of a kind."""
        return [(time_us, each) for time_us, each in self.records[name] if each.kind == kind]

    def stayed(self):
        """Return the subscribers that were never killed."""
        there = self.nodes()
        return [name for name in self.subscribers() if self.starts[name] == 1 and name in there]

    def events(self):
        """Return the kinds of log entries so far."""
        return {log.event for _, _, log in self.logs}

    def run(self, us):
        if us is not None:
            self.network.run(self.now_us + us)

    def tell(self, given):
        for address in list(self.network.nodes):
            self.network.give(address, given)

    def cut(self, *pairs, then_us=None):
        """Cut the paths between these pairs of regions from now on."""
        apart = {frozenset(pair) for pair in pairs}
        self.network.reaches = lambda a, b: frozenset((region(a), region(b))) not in apart
        self.run(then_us)

    def isolate(self, one, then_us=None):
        self.cut(*((one, other) for other in range(REGIONS) if other != one), then_us=then_us)

    def divide(self, then_us=None):
        """Cut the network in two halves."""
        self.cut((0, 2), (0, 3), (1, 2), (1, 3), then_us=then_us)

    def finish(self, settle_us=None):
        """Stop publishing, and let all events arrive."""
        self.tell(m.StopDrivers())
        self.run(settle_us or self.settle_us)


def numbers(records):
    """Return the sequence numbers of all events in records, in order."""
    return [record.first_seq + n for _, record in records for n in range(record.count)]
