"""Groups of Scribe nodes in a flat network: who published what, and who got what, by their own records."""

from collections import defaultdict
from dataclasses import replace
from ipaddress import IPv4Address
from random import Random

from node.core import machine as m
from node.core.deliveries import RecordKind
from node.core.specification import Member, NodeSpec, PlannedSubscription
from node.protocols.scribe.messages import topic_key
from node.protocols.scribe.node import ScribeNode
from node.sim.flat_network import FlatNetwork

REGIONS = 4
WAN_US = (1_000, 17_000, 37_000, 23_000)
EVENT_BYTES = 20


def since_and_got(records):
    """By stream the first number that a member is to get, 0 if it was never told, and all that it got."""
    since, got = {}, defaultdict(list)
    for _, record in records:
        if record.kind == RecordKind.SUBSCRIBED:
            since[record.stream] = since.get(record.stream) or record.first_seq
        elif record.kind == RecordKind.DELIVERED:
            got[record.stream] += range(record.first_seq, record.first_seq + record.count)
    return since, got


class Groups:
    """`members` nodes of four regions, the first of each publishes; every member follows some topics."""

    def __init__(self, members=24, topics=6, seed=0, rate_per_s=20, of_each=1, **parameters):
        self.rng = Random(seed)
        self.count = topics
        self.of_each = of_each  # publishers of a topic: regions, one after the other
        self.records = defaultdict(list)
        self.logs = []
        self.network = FlatNetwork(self.delay_us, self.told)
        publishers = {f"r{region}/publisher-0": region for region in range(REGIONS)}
        names = publishers | {f"r{n % REGIONS}/member-{n // REGIONS}": n % REGIONS for n in range(members)}
        listed = tuple(
            Member(name, name, f"r{region}", name.split("/")[1].split("-")[0], 0, f"10.{region}.0.{at + 1}")
            for at, (name, region) in enumerate(names.items())
        )
        self.members = {each.name: each for each in listed}
        self.addresses = {each.name: int(IPv4Address(each.address)) for each in listed}
        self.names = {address: name for name, address in self.addresses.items()}
        workload = {"event_size_bytes": EVENT_BYTES, "rate_per_s": rate_per_s, "publishers": of_each}
        self.specs = {
            each.name: NodeSpec(
                each.name, each.host, each.region, each.role, each.index, seed, "scribe", (),
                each.address, parameters, workload,
                tuple(f"r{(topic + at) % REGIONS}" for topic in range(topics) for at in range(of_each)),
                subscriptions=self.subscriptions(each, topics),
            )
            for each in listed
        }  # fmt: skip
        self.starts = defaultdict(int)
        for name in self.specs:
            self.start(name)
        self.run(3_000_000)
        self.tell(m.Go(self.now_us))

    def subscriptions(self, member, topics):
        if member.role != "member":
            return ()
        followed, count = sorted(self.rng.sample(range(topics), topics // 2)), self.of_each
        return tuple(PlannedSubscription(0, topic * count + at) for topic in followed for at in range(count))

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
        machine = ScribeNode(spec, Random(f"{name} {spec.start}"))
        self.network.start(self.addresses[name], machine)

    def kill(self, name):
        self.network.kill(self.addresses[name])

    def node(self, name):
        return self.network.nodes[self.addresses[name]].machine

    def told(self, address, time_us, effect):
        if isinstance(effect, m.Record):
            self.records[self.names[address]].append((time_us, effect))
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

    def topics(self):
        """By key the stream of each topic."""
        return {topic_key(stream): stream for stream in range(self.count)}

    def cut(self, *pairs):
        """Regions that do not reach each other from now on."""
        apart = {frozenset(pair) for pair in pairs}
        self.network.reaches = lambda a, b: frozenset(((a >> 16) & 255, (b >> 16) & 255)) not in apart

    def finish(self, settle_us=10_000_000):
        """Publish no more, and let everything come."""
        self.tell(m.StopDrivers())
        self.run(settle_us)

    def roots(self):
        """Return the live nodes that regard themselves as a topic's root, by its key."""
        found = defaultdict(list)
        for flat in self.network.nodes.values():
            for key, topic in flat.machine.trees.topics.items():
                if topic.is_root and (topic.streams or topic.children):
                    found[key].append(self.names[flat.address])
        return found

    def parents_of(self, name, key):
        """Who holds a node for its child in a topic's tree."""
        return [
            self.names[flat.address]
            for flat in self.network.nodes.values()
            if key in flat.machine.trees.topics
            and self.addresses[name] in flat.machine.trees.topics[key].children
        ]

    # --- What came of it

    def published(self):
        """By stream the sequence numbers that were sent."""
        found = defaultdict(set)
        for name, records in self.records.items():
            if "publisher" in name:
                for _, record in records:
                    if record.kind == RecordKind.PUBLISHED:
                        found[record.stream] |= set(range(record.first_seq, record.first_seq + record.count))
        return found

    def judged(self):
        """Lost, duplicated and out of order, over all members that were never killed."""
        published = self.published()
        lost = repeated = disordered = delivered = 0
        for name, records in self.records.items():
            stayed = self.starts[name] == 1 and self.addresses[name] in self.network.nodes
            if "member" not in name or not stayed:
                continue
            since, got = since_and_got(records)
            for stream, first in since.items():
                must = {seq for seq in published[stream] if seq >= first}
                lost += len(must - set(got[stream]))
                repeated += len(got[stream]) - len(set(got[stream]))
                disordered += got[stream] != sorted(got[stream])
                delivered += len(got[stream])
            assert since.keys() == {each.number for each in self.specs[name].subscriptions}, name
        return lost, repeated, disordered, delivered
