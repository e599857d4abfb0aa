"""Groups of Scribe nodes in a flat network, with published and delivered events by their records."""

from collections import defaultdict
from random import Random

from node.core.deliveries import RecordKind
from node.core.specification import PlannedSubscription
from node.protocols.scribe.node import ScribeNode
from tests.node.protocols.community import REGIONS, Community, numbers

EVENT_BYTES = 20


def since_and_got(records):
    """Return, by stream, a member's first number (0 if unknown), and the numbers that it received."""
    since, got = {}, defaultdict(list)
    for time_us, record in records:
        if record.kind == RecordKind.SUBSCRIBED:
            since[record.stream] = since.get(record.stream) or record.first_seq
        elif record.kind == RecordKind.DELIVERED:
            got[record.stream] += numbers([(time_us, record)])
    return since, got


class Groups(Community):
    """`members` nodes of four regions, the first of each publishes; every member follows half of the topics.

    of_each: publishers of a topic, one region after the other.
    """

    system, role = "scribe", "member"

    def __init__(self, members=24, topics=6, seed=0, rate_per_s=20, of_each=1, run_us=None, **parameters):
        self.count, self.of_each = topics, of_each
        workload = {"event_size_bytes": EVENT_BYTES, "rate_per_s": rate_per_s, "publishers": of_each}
        streams = tuple(f"r{(topic + at) % REGIONS}" for topic in range(topics) for at in range(of_each))
        given = {"parameters": parameters, "workload": workload, "streams": streams}
        super().__init__(members, seed, **given, run_us=run_us)

    def drawn(self):
        followed = sorted(self.rng.sample(range(self.count), self.count // 2))
        streams = [topic * self.of_each + at for topic in followed for at in range(self.of_each)]
        return tuple(PlannedSubscription(0, stream) for stream in streams)

    def machine(self, spec, name):
        return ScribeNode(spec, Random(f"{name} {spec.start}"))

    def topics(self):
        """Yield name, key and topic of all nodes."""
        for name, node in self.nodes().items():
            for key, topic in node.trees.topics.items():
                yield name, key, topic

    def states(self, key):
        """Return the topic's state at each node that has one, by name."""
        return {name: topic for name, other, topic in self.topics() if other == key}

    def roots(self):
        """Return the live nodes that regard themselves as a topic's root, by its key."""
        found = defaultdict(list)
        for name, key, topic in self.topics():
            if topic.is_root and (topic.streams or topic.children):
                found[key].append(name)
        return found

    def member_root(self):
        """Return a topic whose root is a member: key, the root's name, the root, its topic."""
        key, [name] = next((key, names) for key, names in self.roots().items() if "member" in names[0])
        return key, name, self.node(name), self.node(name).trees.topics[key]

    def replica_of(self, root, key):
        """Return the name of the first node that replicates the root's state of a topic."""
        return self.names[root.pastry.leaf_set.nearest(key, 1)[0].address]

    def parents_of(self, name, key):
        """Return the nodes that have a node as their child in a topic's tree."""
        return [each for each, topic in self.states(key).items() if self.addresses[name] in topic.children]

    # --- Result

    def published(self):
        """Return by stream the sequence numbers that were sent."""
        found = defaultdict(set)
        for name in self.records:
            if "publisher" in name:
                for each in self.recorded(name, RecordKind.PUBLISHED):
                    found[each[1].stream] |= set(numbers([each]))
        return found

    def judged(self):
        """Return lost, repeated, disordered and delivered events of all members that were never killed."""
        published = self.published()
        lost = repeated = disordered = delivered = 0
        for name in self.stayed():
            since, got = since_and_got(self.records[name])
            for stream, first in since.items():
                must = {seq for seq in published[stream] if seq >= first}
                lost += len(must - set(got[stream]))
                repeated += len(got[stream]) - len(set(got[stream]))
                disordered += got[stream] != sorted(got[stream])
                delivered += len(got[stream])
            assert since.keys() == {each.number for each in self.specs[name].subscriptions}, name
        return lost, repeated, disordered, delivered


def assert_whole(groups, least=1_000):
    """Let all events arrive; check that none is lost, repeated or out of order, and that each topic has one
    root.
    """
    groups.finish()
    lost, repeated, disordered, delivered = groups.judged()
    assert (lost, repeated, disordered) == (0, 0, 0)
    assert delivered >= least
    assert all(len(roots) == 1 for roots in groups.roots().values())
