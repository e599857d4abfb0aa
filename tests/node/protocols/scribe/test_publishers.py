"""Publishers that die and come back, and several of one topic: each one's events come once and in order."""

from itertools import pairwise

import pytest

from node.core import machine as m
from node.core.deliveries import RecordKind
from node.core.epochs import epoch_of, first_seq_of_epoch
from node.core.peers.peer_pool import Unreachable
from node.protocols.pastry.overlay import Pastry
from node.protocols.scribe.messages import Fetch, FetchBefore, Multicast, Position, Publish
from node.protocols.scribe.topic import StreamState
from tests.node.protocols.scribe.groups import REGIONS, Groups
from tests.node.protocols.scribe.test_peer import Peers
from tests.node.protocols.scribe.test_trees import assert_whole


def acknowledged(groups, name):
    """One past the last number that a publisher was told of, and when that was."""
    told = [(t_us, record) for t_us, record in groups.records[name] if record.kind == RecordKind.ACKNOWLEDGED]
    return told[-1][1].first_seq + told[-1][1].count, told[-1][0]


def test_an_isolated_root_acknowledges_nothing_for_a_while_and_then_continues():
    groups = Groups(members=5, topics=2)
    groups.run(3_000_000)
    alone = "r1/publisher-0"
    for name in groups.specs:
        if name != alone:
            groups.kill(name)
    killed_us = groups.now_us
    groups.run(6_000_000)
    before, told_us = acknowledged(groups, alone)
    assert told_us < killed_us + 1_000_000
    groups.run(10_000_000)
    after, told_us = acknowledged(groups, alone)
    assert after > before
    assert told_us > groups.now_us - 2_000_000


def epochs_got(groups, stream):
    return {
        epoch_of(record.first_seq)
        for records in groups.records.values()
        for _, record in records
        if record.kind == RecordKind.DELIVERED and record.stream == stream
    }


@pytest.mark.slow
def test_events_of_a_returned_publisher_reach_all():
    groups = Groups(seed=0)
    groups.run(3_000_000)
    name = "r1/publisher-0"
    for _ in range(2):
        groups.run(500_000)
        groups.kill(name)
        groups.run(3_000_000)
        groups.start(name)
        groups.run(3_000_000)
        groups.tell_one(name)
        groups.run(3_000_000)
    assert_whole(groups)
    assert epochs_got(groups, 1) == {0, 1, 2}


def test_a_publisher_comes_back_while_its_root_is_gone():
    groups = Groups()
    groups.run(3_000_000)
    key, stream = next((key, node) for key, node in groups.topics().items() if node == 1)
    [root] = groups.roots()[key]
    assert root != "r1/publisher-0"
    groups.kill("r1/publisher-0")
    groups.run(100_000)
    groups.kill(root)
    groups.start("r1/publisher-0")
    groups.run(2_000_000)
    groups.tell_one("r1/publisher-0")
    groups.run(8_000_000)
    assert_whole(groups)
    assert epochs_got(groups, stream) == {0, 1}


@pytest.mark.slow
def test_events_of_several_publishers_of_a_topic_arrive_once_and_in_order():
    groups = Groups(seed=1, topics=4, of_each=3)
    groups.run(3_000_000)
    groups.cut((2, 3))
    groups.run(5_000_000)
    for _, [root] in sorted(groups.roots().items())[:2]:
        if "publisher" not in root:
            groups.kill(root)
            groups.run(3_000_000)
    groups.cut()
    groups.run(5_000_000)
    assert_whole(groups, least=2_000)
    assert groups.published().keys() == set(range(12))
    for flat in groups.network.nodes.values():
        for topic in flat.machine.trees.topics.values():
            assert len({stream // 3 for stream in topic.streams}) <= 1


def test_missing_events_of_an_epoch_are_awaited_before_the_next_one():
    state, second = StreamState(), first_seq_of_epoch(1)
    one, two, three = (
        Multicast(0, 0, first, after, 1, b"") for first, after in ((1, 0), (2, 1), (second, 2))
    )
    assert list(state.take(one, 0)) == [one]
    assert list(state.take(three, 0)) == []
    assert list(state.take(two, 0)) == [two, three]
    assert state.next == second + 1
    assert list(state.take(two, 0)) == []
    assert state.first == 1
    assert state.since(2) == [two, three]


def test_events_waiting_for_a_number_that_was_passed_otherwise_are_released():
    """One root knew less of the epoch before than another."""
    state, second = StreamState(), first_seq_of_epoch(1)
    two = Multicast(0, 0, 2, 1, 1, b"")
    begins = Multicast(0, 0, second, 1, 1, b"")
    follows = Multicast(0, 0, second + 1, second, 1, b"")
    one_to_three = Multicast(0, 0, 1, 0, 3, b"")
    for early in (two, begins, follows):
        assert list(state.take(early, 0)) == []
    *_, first, last = state.take(one_to_three, 0)
    assert (first.first_seq, first.after) == (second, 3)
    assert last is follows
    assert not state.early
    state.check()


def test_after_what_is_given_up_comes_the_rest_of_its_epoch_and_then_the_next_one():
    """A root that knew less of an epoch sent the next one first."""
    state, second = StreamState(), first_seq_of_epoch(1)
    state.next = 3
    ten, eleven = (Multicast(0, 0, first, first - 1, 1, b"") for first in (10, 11))
    for after in (5, 11):
        assert list(state.take(Multicast(0, 0, second, after, 1, b""), 0)) == []
    for early in (ten, eleven):
        assert list(state.take(early, 0)) == []
    *rest, begins = state.skip_to(10, 0)
    assert rest == [ten, eleven]
    assert (begins.first_seq, begins.after) == (second, 11)
    state.check()


def test_the_rest_of_an_epoch_that_is_there_comes_before_the_next_one():
    state, second = StreamState(), first_seq_of_epoch(1)
    begins = Multicast(0, 0, second, 1, 1, b"")
    three, one_and_two = Multicast(0, 0, 3, 2, 1, b""), Multicast(0, 0, 1, 0, 2, b"")
    for early in (begins, three):
        assert list(state.take(early, 0)) == []
    assert [batch.first_seq for batch in state.take(one_and_two, 0)] == [1, 3, second]
    state.check()


def test_a_peer_that_does_not_know_its_last_number_finds_out():
    peers = Peers()
    topic, got = 1 << 127, []
    publisher, member = peers.not_root(topic)[:2]
    member.join("", topic, got.append)
    peers.run(1)
    for number in range(3):
        publisher.multicast("", topic, b"%d" % number)
    peers.run(2)
    again = peers.restart(publisher)
    for number in range(3, 6):
        again.multicast("", topic, b"%d" % number)
    peers.run(4)
    assert [each.content for each in got] == [b"0", b"1", b"2", b"3", b"4", b"5"]
    assert [each.seq for each in got] == [
        1,
        2,
        3,
        first_seq_of_epoch(1),
        first_seq_of_epoch(1) + 1,
        first_seq_of_epoch(1) + 2,
    ]


def numbers(groups, name, kind):
    """(stream, number) of all events in a node's records of a kind, in order."""
    found = [record for _, record in groups.records[name] if record.kind == kind]
    return [(each.stream, each.first_seq + n) for each in found for n in range(each.count)]


@pytest.mark.slow
def test_a_publisher_writes_down_once_what_was_acknowledged_and_all_of_it_at_last():
    groups = Groups()
    name = "r1/publisher-0"
    groups.run(3_000_000)
    groups.cut((1, 0), (1, 2), (1, 3))
    groups.run(3_000_000)
    sent = numbers(groups, name, RecordKind.PUBLISHED)
    taken = numbers(groups, name, RecordKind.ACKNOWLEDGED)
    assert 0 < len(taken) < len(sent)
    assert set(taken) < set(sent)
    groups.cut()
    groups.run(10_000_000)
    groups.finish()
    taken = numbers(groups, name, RecordKind.ACKNOWLEDGED)
    assert sorted(taken) == sorted(numbers(groups, name, RecordKind.PUBLISHED))


def test_a_root_that_joined_late_has_what_is_before_that_from_others():
    groups = Groups(members=12, topics=4)
    groups.run(4_000_000)
    key, [first] = next((key, names) for key, names in groups.roots().items() if "member" in names[0])
    at_root = groups.node(first)
    heir = groups.names[at_root.pastry.leaf_set.nearest(key, 1)[0].address]
    groups.kill(heir)
    groups.run(1_000_000)
    groups.start(heir)
    groups.run(500_000)
    groups.tell_one(heir)
    groups.run(2_000_000)
    [(stream, kept)] = at_root.trees.topics[key].streams.items()
    assert kept.first == 1
    at_heir = groups.node(heir).trees.topics[key].streams[stream]
    assert at_heir.first == 1  # a replica that was away asks its root
    _, lost = at_heir.kept.popleft()  # as if its question had been lost
    at_heir.events -= lost.count
    groups.kill(first)
    groups.run(3_000_000)
    assert groups.roots()[key] == [heir]
    assert groups.node(heir).trees.topics[key].streams[stream].first == 1
    groups.node(heir).trees.topics[key].check(groups.node(heir).pastry.own)


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_replica_that_is_restarted_at_once_gets_all_data_of_the_root(goes_on):
    """Restart it before its failure is detected, while the root regards it as up to date."""
    groups = Groups(members=12, topics=4)
    groups.run(4_000_000)
    if not goes_on:
        groups.finish(1_000_000)
    key, [first] = next((key, names) for key, names in groups.roots().items() if "member" in names[0])
    at_root = groups.node(first)
    replica = groups.names[at_root.pastry.leaf_set.nearest(key, 1)[0].address]
    groups.kill(replica)
    groups.network.give(groups.addresses[first], Unreachable(groups.addresses[replica], "reset by peer"))
    groups.start(replica)
    groups.run(500_000)
    groups.tell_one(replica)
    groups.run(3_000_000)
    groups.finish(2_000_000)
    [(stream, kept)] = at_root.trees.topics[key].streams.items()
    there = groups.node(replica).trees.topics[key].streams[stream]
    assert (there.first, there.next) == (kept.first, kept.next)


@pytest.mark.parametrize("apart", range(REGIONS))
def test_replicas_that_were_away_for_longer_than_events_are_kept_come_further(apart):
    groups = Groups(members=8, topics=4, buffer_us=1_000_000)
    groups.run(3_000_000)
    groups.cut(*((apart, other) for other in range(REGIONS) if other != apart))
    groups.run(20_000_000)
    groups.cut()
    groups.run(5_000_000)
    groups.finish()
    assert all(node.machine.progress().silent for node in groups.network.nodes.values())


def test_the_number_before_all_kept_events_is_kept_as_long():
    def events(first, count=1):
        return Multicast(1, 0, first, first - 1, count, b"." * count)

    state = StreamState(next=9)
    state.put_before(events(7), 5)
    assert state.first == 9
    state.put_before(events(6, 3), 5)
    state.put_before(events(5), 7)
    state.put_before(events(7), 9)
    assert [batch.first_seq for batch in state.since(1)] == [5, 6]
    assert (state.first, state.next, state.events) == (5, 9, 4)
    state.check()
    state.trim(6, 100)
    assert not state.kept


def test_a_paused_root_asks_again_for_events_that_others_took():
    groups = Groups(members=12, topics=4)
    groups.run(3_000_000)
    key, [name] = next(iter(groups.roots().items()))
    root = groups.node(name)
    topic, late_us = root.trees.topics[key], root.parameters.heartbeat_timeout_us
    root.handle(m.Nudge(), groups.now_us + late_us)
    assert not topic.asked
    root.handle(m.Nudge(), groups.now_us + late_us + 2 * root.parameters.tick_us)
    assert topic.asked == {
        node.address for node in root.pastry.leaf_set.nearest(key, root.parameters.replicas)
    }


def test_a_request_before_an_unknown_stream_begins_none():
    groups = Groups(members=4, topics=2)
    groups.run(3_000_000)
    node = groups.node("r0/member-0")
    [(key, topic), *_] = node.trees.topics.items()
    known = dict(topic.streams)
    assert node.trees.receive(groups.addresses["r1/member-0"], FetchBefore(key, (Position(77, 5),)))
    assert topic.streams == known


@pytest.mark.slow
def test_events_that_no_node_holds_are_given_up_even_under_constant_churn():
    groups = Groups(members=24, topics=4, buffer_us=4_000_000)
    groups.run(3_000_000)
    groups.cut(*((3, other) for other in range(REGIONS - 1)))
    groups.run(10_000_000)
    groups.cut()
    healed_us = groups.now_us
    for number in range(8):
        name = f"r{number % 3}/member-{1 + number // 3}"
        groups.kill(name)
        groups.run(2_500_000)
        groups.start(name)
        groups.tell_one(name)
        groups.run(1_500_000)
    came_us = {
        (name, topic.number): [healed_us]
        for name, spec in groups.specs.items()
        if name.startswith("r3/member")
        for topic in spec.subscriptions
    }
    for name, stream in came_us:
        came_us[name, stream] += [
            time_us
            for time_us, record in groups.records[name]
            if (record.kind, record.stream) == (RecordKind.DELIVERED, stream) and time_us > healed_us
        ]
    longest_us = max(b - a for times in came_us.values() for a, b in pairwise([*times, groups.now_us]))
    assert longest_us < 12_000_000


def test_a_root_misses_no_replica_before_that_could_have_answered(monkeypatch):
    missed = []
    groups = Groups(members=8, topics=4)
    monkeypatch.setattr(Pastry, "miss", lambda pastry, node: missed.append(node))
    groups.run(3_000_000)
    assert groups.roots()
    assert missed == []


def test_a_node_that_misses_state_holders_reports_completeness_to_a_new_root_only_later():
    groups = Groups(members=8, topics=4, heartbeat_timeout_us=1_500_000)
    groups.run(3_000_000)
    groups.cut(*((region, 3) for region in range(REGIONS - 1)))
    asked = groups.node("r0/member-1")
    topic = next(each for each in asked.trees.topics.values() if each.kept_for is not None)
    for _ in range(60):
        groups.run(100_000)
        if asked.trees.succession.may_be_divided(topic):
            break
    fetch = Fetch(topic.key, asked.pastry.own.id, groups.addresses["r1/member-1"], 1, ())
    asked.trees.receive(groups.addresses["r1/member-1"], fetch)
    assert topic.untold == {groups.addresses["r1/member-1"]}
    groups.cut()
    groups.run(12_000_000)
    assert topic.untold == set()


def test_a_root_discards_events_of_an_epoch_that_waits_to_begin():
    """Check it, because waiting events would keep joining nodes from beginning."""
    groups = Groups(members=8, topics=4)
    groups.run(3_000_000)
    key, [name] = next(iter(groups.roots().items()))
    root = groups.node(name)
    topic = root.trees.topics[key]
    stream, state = next(iter(topic.streams.items()))
    sender = groups.node("r0/publisher-0").pastry.own
    topic.divided_us = groups.now_us
    for first in (first_seq_of_epoch(1), first_seq_of_epoch(1) + 1):
        root.roots.publish(topic, Publish(key, sender.id, sender.address, 0, stream, first, 1, b"x"))
    assert not state.early
    assert state.next < first_seq_of_epoch(1)
    root.roots.publish(topic, Publish(key, sender.id, sender.address, 0, stream, state.next + 1, 1, b"x"))
    assert list(state.early) == [state.next + 1]
