"""Scribe with its reliability: nothing is lost, repeated or out of order for members that stay."""

import pytest

from node.core import machine as m
from node.core.deliveries import RecordKind
from node.protocols.pastry.messages import Goodbye
from tests.node.protocols.scribe.groups import Groups, assert_whole, since_and_got


@pytest.mark.slow
def test_no_event_is_lost_through_a_cut_between_two_regions():
    groups = Groups(seed=0, run_us=3_000_000)
    groups.cut((2, 3), then_us=8_000_000)
    groups.cut(then_us=5_000_000)
    assert_whole(groups)


@pytest.mark.slow
def test_no_event_is_lost_through_crashes_of_all_roots():
    groups = Groups(members=16, topics=4, run_us=3_000_000)
    for key, roots in sorted(groups.roots().items()):
        for name in groups.roots().get(key, roots):
            if "publisher" not in name and groups.starts[name] == 1:
                groups.kill(name, then_us=3_000_000)
                groups.start(name, then_us=2_000_000)
    assert_whole(groups)


def test_a_leaving_member_gets_no_more_events_and_is_no_child():
    groups = Groups(members=8, topics=2, run_us=3_000_000)
    name = "r0/member-0"
    node = groups.node(name)
    [(key, [stream])] = node._following.items()
    assert groups.parents_of(name, key)
    node._following.pop(key)
    node.trees.leave(key)
    groups.run(3_000_000)
    before = len(groups.records[name])
    groups.run(2_000_000)
    assert all(record.stream != stream for _, record in groups.records[name][before:])
    if not node.trees.topics[key].children:
        assert groups.parents_of(name, key) == []


def test_a_root_without_its_state_continues_from_the_members_numbers():
    """Let all members join later, so that none has the first events."""
    groups = Groups(members=12, topics=4, run_us=3_000_000)
    _, root, node, _ = groups.member_root()
    for key in node.trees.topics:
        for topic in groups.states(key).values():
            for state in topic.streams.values():
                while state.kept and state.first < 20:
                    state.kept.popleft()
    groups.kill(root, then_us=100_000)
    groups.start(root, then_us=8_000_000)
    assert_whole(groups)


@pytest.mark.slow
def test_events_published_on_both_sides_of_a_partition_reach_all():
    """Use several publishers of a topic, so that each side has a root that accepts its own events."""
    groups = Groups(members=4, topics=20, of_each=2, seed=3, run_us=3_000_000)
    groups.divide(then_us=8_000_000)
    groups.cut(then_us=20_000_000)
    assert_whole(groups)


@pytest.mark.slow
def test_all_members_restart_at_the_same_time():
    """Check joins that lead to nodes which are joining themselves."""
    groups = Groups(members=12, topics=4, run_us=6_000_000)
    members = groups.subscribers()
    for name in members:
        groups.kill(name)
    groups.run(1_000_000)
    for name in members:
        groups.start(name)
    groups.run(20_000_000)
    for name in members:
        groups.network.give(groups.addresses[name], m.Go(groups.now_us))
    groups.run(5_000_000)
    assert all(groups.node(name).pastry.is_active for name in members)
    assert all(len(roots) == 1 for roots in groups.roots().values())
    before = len(groups.records[members[0]])
    groups.run(1_000_000)
    assert len(groups.records[members[0]]) > before


@pytest.mark.slow
def test_a_subscriber_at_an_empty_root_learns_its_start_from_the_first_event():
    """Remove all nodes with a topic's events for good; events that their successors never had are not due."""
    groups = Groups(members=12, topics=12, replicas=0, run_us=4_000_000)
    members = groups.subscribers()
    before = {name: len(groups.records[name]) for name in members}
    for name in members:
        groups.kill(name)
    groups.run(3_500_000)
    for name in members:
        groups.restart(name, 0)
    groups.run(10_000_000)
    groups.finish()
    published, late = groups.published(), 0
    for name in members:
        records = groups.records[name][before[name] :]
        since, got = since_and_got(records)
        assert since.keys() == {each.number for each in groups.specs[name].subscriptions}
        for stream, first in since.items():
            assert got[stream] == sorted(seq for seq in published[stream] if seq >= first > 0)
            at_once = next(each for _, each in records if each.kind == RecordKind.SUBSCRIBED)
            late += at_once.first_seq == 0 and first > 1
    assert late, "every root knew how far its streams were"


def test_a_leaving_node_says_goodbye_and_is_not_waited_for():
    """Check that its children have other parents, and its neighbours other leaf sets, after some round
    trips.
    """
    groups = Groups(run_us=3_000_000)
    name = next(name for name, _, topic in groups.topics() if "member" in name and topic.children)
    address = groups.addresses[name]
    knew = [node for node in groups.nodes().values() if address in known(node)]
    assert len(knew) > 8
    assert goodbyes(groups, name) >= len(knew)
    groups.run(500_000)
    assert [node.pastry.own.address for node in knew if address in known(node)] == []
    topics = [topic for node in knew for topic in node.trees.topics.values()]
    assert all(topic.parent or topic.is_root for topic in topics if topic.is_needed)
    assert_whole(groups)


def known(node):
    """Return the addresses of a node's neighbours, on the ring and in trees."""
    return {each.address for each in node.pastry.leaf_set.members} | node.trees.neighbours()


def test_nodes_that_all_end_send_no_goodbyes():
    groups = Groups(members=8, topics=2, run_us=1_000_000)
    groups.finish(1_000_000)
    assert goodbyes(groups, "r0/member-0") == 0


def goodbyes(groups, name):
    """Let a node end by itself; return how many nodes it notifies."""
    told = []
    groups.network.watch = lambda source, target, messages: told.extend(map(type, messages))
    groups.finish_one(name, then_us=1)
    groups.network.watch = None
    groups.kill(name)
    return told.count(Goodbye)
