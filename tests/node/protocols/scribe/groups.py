"""Groups of Scribe nodes in a flat network: who published what, and who got what, by their own records."""

from collections import defaultdict
from ipaddress import IPv4Address
from random import Random

from node.core import machine as m
from node.core.deliveries import RecordKind
from node.core.specification import Member, NodeSpec, PlannedSubscription
from node.protocols.scribe.messages import topic_key
from node.protocols.scribe.node import ScribeNode
from node.sim.flat_network import FlatNetwork
from tests.node.protocols.community import REGIONS, Community

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


class Groups(Community):
    """`members` nodes of four regions, the first of each publishes; every member follows some topics."""

    def __init__(self, members=24, topics=6, seed=0, rate_per_s=20, of_each=1, **parameters):
        super().__init__(FlatNetwork)
        self.rng = Random(seed)
        self.count = topics
        self.of_each = of_each  # publishers of a topic: regions, one after the other
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
        for name in self.specs:
            self.start(name)
        self.run(3_000_000)
        self.tell(m.Go(self.now_us))

    def subscriptions(self, member, topics):
        if member.role != "member":
            return ()
        followed, count = sorted(self.rng.sample(range(topics), topics // 2)), self.of_each
        return tuple(PlannedSubscription(0, topic * count + at) for topic in followed for at in range(count))

    def machine(self, spec, name):
        return ScribeNode(spec, Random(f"{name} {spec.start}"))

    def topics(self):
        """By key the stream of each topic."""
        return {topic_key(stream): stream for stream in range(self.count)}

    def finish(self, settle_us=10_000_000):
        super().finish(settle_us)

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
