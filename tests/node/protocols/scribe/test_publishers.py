"""Publishers that die and restart, and several of one topic: each one's events arrive once and in order."""

from itertools import pairwise

import pytest

from node.core import machine as m
from node.core.deliveries import RecordKind
from node.core.epochs import epoch_of, first_seq_of_epoch
from node.core.peers.peer_pool import Unreachable
from node.protocols.pastry.overlay import Pastry
from node.protocols.scribe.messages import Fetch, FetchBefore, Multicast, Position, Publish, topic_key
from node.protocols.scribe.topic import StreamState
from tests.node.protocols.community import numbers
from tests.node.protocols.scribe.groups import Groups, assert_whole
from tests.node.protocols.scribe.test_peer import Peers


def test_an_isolated_root_acknowledges_nothing_for_a_while_and_then_continues():
    groups = Groups(members=5, topics=2, run_us=3_000_000)
    alone = "r1/publisher-0"

    def acknowledged_us():
        return groups.recorded(alone, RecordKind.ACKNOWLEDGED)[-1][0]

    for name in groups.specs:
        if name != alone:
            groups.kill(name)
    killed_us = groups.now_us
    groups.run(6_000_000)
    assert acknowledged_us() < killed_us + 1_000_000
    groups.run(10_000_000)
    assert acknowledged_us() > groups.now_us - 2_000_000


def test_a_publisher_restarts_while_its_root_is_down():
    groups = Groups(members=16, run_us=3_000_000)
    key, name, stream = topic_key(1), "r1/publisher-0", 1
    [root] = groups.roots()[key]
    assert root != name
    groups.kill(name, then_us=100_000)
    groups.kill(root)
    groups.restart(name, 2_000_000, then_us=3_000_000)
    groups.kill(name, then_us=1_000_000)
    groups.restart(name, 2_000_000, then_us=4_000_000)
    assert_whole(groups)
    delivered = [each for name in groups.records for _, each in groups.recorded(name, RecordKind.DELIVERED)]
    assert {epoch_of(each.first_seq) for each in delivered if each.stream == stream} == {0, 1, 2}


@pytest.mark.slow
def test_events_of_several_publishers_of_a_topic_arrive_once_and_in_order():
    groups = Groups(members=16, seed=1, topics=4, of_each=3, run_us=3_000_000)
    groups.cut((2, 3), then_us=5_000_000)
    for _, [root] in sorted(groups.roots().items())[:2]:
        if "publisher" not in root:
            groups.kill(root, then_us=3_000_000)
    groups.cut(then_us=5_000_000)
    assert_whole(groups)
    assert groups.published().keys() == set(range(12))
    for *_, topic in groups.topics():
        assert len({stream // 3 for stream in topic.streams}) <= 1


SECOND = first_seq_of_epoch(1)


def batch(first, after=None, count=1):
    """Return a batch of events that begins with this number."""
    return Multicast(0, 0, first, first - 1 if after is None else after, count, b"." * count)


@pytest.mark.parametrize(
    ("given", "released"),
    [
        ([batch(1), batch(SECOND, 2), batch(2)], [(1, 0), (2, 1), (SECOND, 2)]),
        ([batch(1), batch(2), batch(2), batch(1)], [(1, 0), (2, 1)]),
        (
            [batch(2), batch(SECOND, 1), batch(SECOND + 1), batch(1, count=3)],
            [(1, 0), (SECOND, 3), (SECOND + 1, SECOND)],
        ),
        ([batch(SECOND, 1), batch(3), batch(1, count=2)], [(1, 0), (3, 2), (SECOND, 3)]),
    ],
    ids=[
        "missing events of an epoch are awaited before the next one",
        "repetitions are dropped",
        "events that wait for a number that was passed otherwise are released",
        "the rest of an epoch that is there comes before the next one",
    ],
)
def test_events_are_released_in_order_once(given, released):
    state = StreamState()
    taken = [each for early in given for each in state.take(early, 0)]
    assert [(each.first_seq, each.after) for each in taken] == released
    assert state.since(1) == taken
    assert not state.early
    state.check()


def test_after_lost_events_the_rest_of_their_epoch_precedes_the_next_epoch():
    """Let a root that has less of an epoch send the next epoch first."""
    state = StreamState(next=3)
    for early in (batch(SECOND, 5), batch(SECOND, 11), batch(10), batch(11)):
        assert list(state.take(early, 0)) == []
    *rest, begins = state.skip_to(10, 0)
    assert rest == [batch(10), batch(11)]
    assert (begins.first_seq, begins.after) == (SECOND, 11)
    state.check()


def test_the_number_before_the_stored_events_is_retained():
    state = StreamState(next=9)
    state.put_before(batch(7), 5)
    assert state.first == 9
    state.put_before(batch(6, count=3), 5)
    state.put_before(batch(5), 7)
    state.put_before(batch(7), 9)
    assert [each.first_seq for each in state.since(1)] == [5, 6]
    assert (state.first, state.next, state.events) == (5, 9, 4)
    state.check()
    state.trim(6, 100)
    assert not state.kept


def test_a_peer_that_lost_its_last_number_learns_it():
    peers = Peers()
    topic, got = 1 << 127, []
    publisher, member = peers.not_root(topic)[:2]
    member.join("", topic, got.append)
    peers.run(1)
    for number in range(2):
        publisher.multicast("", topic, b"%d" % number)
    peers.run(2)
    again = peers.restart(publisher)
    for number in range(2, 4):
        again.multicast("", topic, b"%d" % number)
    peers.run(4)
    assert [(each.content, each.seq) for each in got] == [
        (b"0", 1), (b"1", 2), (b"2", SECOND), (b"3", SECOND + 1),
    ]  # fmt: skip


@pytest.mark.slow
def test_a_publisher_records_all_acknowledged_events_once():
    groups = Groups(members=12)
    name = "r1/publisher-0"

    def events(kind):
        found = groups.recorded(name, kind)
        return [(each[1].stream, number) for each in found for number in numbers([each])]

    groups.run(3_000_000)
    groups.isolate(1, then_us=3_000_000)
    sent, taken = events(RecordKind.PUBLISHED), events(RecordKind.ACKNOWLEDGED)
    assert 0 < len(taken) < len(sent)
    assert set(taken) < set(sent)
    groups.cut(then_us=8_000_000)
    groups.finish()
    assert sorted(events(RecordKind.ACKNOWLEDGED)) == sorted(events(RecordKind.PUBLISHED))


def test_a_root_that_joined_late_gets_earlier_events_from_others():
    groups = Groups(members=12, topics=4, run_us=4_000_000)
    key, first, at_root, topic = groups.member_root()
    heir = groups.replica_of(at_root, key)
    groups.kill(heir, then_us=1_000_000)
    groups.restart(heir, 500_000, then_us=2_000_000)
    [(stream, kept)] = topic.streams.items()
    assert kept.first == 1
    at_heir = groups.states(key)[heir].streams[stream]
    assert at_heir.first == 1  # a replica that was away asks its root
    _, lost = at_heir.kept.popleft()  # as if its question had been lost
    at_heir.events -= lost.count
    groups.kill(first, then_us=3_000_000)
    assert groups.roots()[key] == [heir]
    assert groups.states(key)[heir].streams[stream].first == 1
    groups.states(key)[heir].check(groups.node(heir).pastry.own)


@pytest.mark.parametrize("goes_on", [True, False])
def test_a_replica_that_is_restarted_at_once_gets_all_data_of_the_root(goes_on):
    """Restart it before its failure is detected, while the root regards it as up to date."""
    groups = Groups(members=12, topics=4, run_us=4_000_000)
    if not goes_on:
        groups.finish(1_000_000)
    key, first, at_root, topic = groups.member_root()
    replica = groups.replica_of(at_root, key)
    groups.kill(replica)
    groups.network.give(groups.addresses[first], Unreachable(groups.addresses[replica], "reset by peer"))
    groups.restart(replica, 500_000, then_us=3_000_000)
    groups.finish(2_000_000)
    [(stream, kept)] = topic.streams.items()
    there = groups.states(key)[replica].streams[stream]
    assert (there.first, there.next) == (kept.first, kept.next)


@pytest.mark.parametrize("apart", [1, 3])
def test_replicas_that_were_away_for_too_long_skip_expired_events(apart):
    groups = Groups(members=8, topics=4, buffer_us=1_000_000, run_us=3_000_000)
    groups.isolate(apart, then_us=20_000_000)
    groups.cut(then_us=5_000_000)
    groups.finish()
    assert all(node.progress().silent for node in groups.nodes().values())


@pytest.fixture
def few():
    """Return a few nodes after some time, the root of a topic, and its state of the topic."""
    groups = Groups(members=8, topics=4, run_us=3_000_000)
    key, [name] = next(iter(groups.roots().items()))
    root = groups.node(name)
    return groups, root, root.trees.topics[key]


def test_a_paused_root_requests_events_that_others_accepted(few):
    groups, root, topic = few
    late_us = root.parameters.heartbeat_timeout_us
    root.handle(m.Nudge(), groups.now_us + late_us)
    assert not topic.asked
    root.handle(m.Nudge(), groups.now_us + late_us + 2 * root.parameters.tick_us)
    nearest = root.pastry.leaf_set.nearest(topic.key, root.parameters.replicas)
    assert topic.asked == {node.address for node in nearest}


def test_a_request_before_an_unknown_stream_begins_none(few):
    groups, root, topic = few
    known = dict(topic.streams)
    request = FetchBefore(topic.key, (Position(77, 5),))
    assert root.trees.receive(groups.addresses["r1/member-0"], request)
    assert topic.streams == known


def test_a_root_discards_events_of_an_epoch_that_waits_to_begin(few):
    """Check it, because waiting events would keep joining nodes from beginning."""
    groups, root, topic = few
    stream, state = next(iter(topic.streams.items()))
    sender = groups.node("r0/publisher-0").pastry.own

    def publish(first):
        root.roots.publish(topic, Publish(topic.key, sender.id, sender.address, 0, stream, first, 1, b"x"))

    topic.divided_us = groups.now_us
    publish(SECOND)
    publish(SECOND + 1)
    assert not state.early
    assert state.next < SECOND
    publish(state.next + 1)
    assert list(state.early) == [state.next + 1]


@pytest.mark.slow
def test_events_that_no_node_holds_are_given_up_even_under_constant_churn():
    groups = Groups(members=16, topics=4, buffer_us=4_000_000, run_us=3_000_000)
    groups.isolate(3, then_us=10_000_000)
    groups.cut()
    healed_us = groups.now_us
    for number in range(5):
        name = f"r{number % 3}/member-{1 + number // 3}"
        groups.kill(name, then_us=2_500_000)
        groups.restart(name, 0, then_us=1_500_000)
    longest_us = 0
    for name in (name for name in groups.subscribers() if name.startswith("r3")):
        for topic in groups.specs[name].subscriptions:
            came = groups.recorded(name, RecordKind.DELIVERED)
            came_us = [us for us, each in came if each.stream == topic.number and us > healed_us]
            longest_us = max(longest_us, *(b - a for a, b in pairwise([healed_us, *came_us, groups.now_us])))
    assert longest_us < 12_000_000


def test_a_root_probes_no_replica_before_it_could_have_answered(monkeypatch):
    missed = []
    groups = Groups(members=8, topics=4)
    monkeypatch.setattr(Pastry, "miss", lambda pastry, node: missed.append(node))
    groups.run(3_000_000)
    assert groups.roots()
    assert missed == []


def test_a_node_that_misses_state_holders_reports_completeness_to_a_new_root_only_later():
    groups = Groups(members=8, topics=4, heartbeat_timeout_us=1_500_000, run_us=3_000_000)
    groups.isolate(3)
    asked, sender = groups.node("r0/member-1"), groups.addresses["r1/member-1"]
    topic = next(each for each in asked.trees.topics.values() if each.kept_for is not None)
    for _ in range(60):
        groups.run(100_000)
        if asked.trees.succession.may_be_divided(topic):
            break
    asked.trees.receive(sender, Fetch(topic.key, asked.pastry.own.id, sender, 1, ()))
    assert topic.untold == {sender}
    groups.cut(then_us=12_000_000)
    assert topic.untold == set()
