"""Events reach each matching subscriber once and no other one; with confirmations, also after losses."""

import itertools

import pytest

from node.core.deliveries import RecordKind
from node.protocols.can.messages import Route
from node.protocols.meghdoot.messages import Event, Notify
from node.protocols.meghdoot.publishing.publisher import FIRST
from node.protocols.meghdoot.region import affected
from node.protocols.meghdoot.zones.held_zones import zone_id
from tests.node.protocols.meghdoot.given import GivenPeers, wants


def everybody_subscribes(peers, each=3):
    asked = {(address, number): peers.any_ranges() for address in peers.nodes for number in range(each)}
    for (address, number), ranges in asked.items():
        peers.ask(address, number, ranges)
    peers.run(1_000_000)
    return asked


def published(peers, asked, events):
    """Let random peers publish; return by subscriber the events that are due to it."""
    due = {address: set() for address in peers.nodes}
    for values in events:
        publisher = peers.anyone()
        seq = peers.publish(publisher, values)
        for (address, _number), ranges in asked.items():
            if wants(ranges, values):
                due[address].add((publisher, seq))
        peers.run(20_000)
    return due


def some_events(peers, asked, count=60):
    return published(peers, asked, [peers.any_values() for _ in range(count)])


def held_against(peers, due):
    """Return lost, stray and repeated events."""
    got = peers.delivered
    lost = sum(len(due[address] - set(got[address])) for address in due)
    stray = sum(len(set(got[address]) - due[address]) for address in due)
    return lost, stray, sum(len(each) - len(set(each)) for each in got.values())


def assert_all_came(peers, due, us=2_000_000):
    """Check that after some time each event arrived once at its subscribers, and that publishers know it."""
    peers.run(us)
    assert held_against(peers, due) == (0, 0, 0)
    assert peers.is_silent()


def visits(peers):
    counts = [node.broker.propagation.counts for node in peers.nodes.values()]
    return sum(each.visits for each in counts), sum(each.repeats for each in counts)


def zones_of(peers):
    """Return the stored state of each zone."""
    return [held for node in peers.nodes.values() for held in node.broker.held.by_id.values()]


@pytest.mark.parametrize(
    ("attributes", "zones", "delivery"),
    [(1, 12, "exactly-once"), (2, 40, "best-effort"), (3, 40, "exactly-once")],
)
def test_each_event_arrives_once_at_its_subscribers(attributes, zones, delivery):
    peers = GivenPeers(attributes, zones, seed=zones, delivery=delivery)
    asked = everybody_subscribes(peers)
    assert [kind for _, kind in peers.interests].count(RecordKind.SUBSCRIBED) == len(asked)
    due = some_events(peers, asked)
    assert sum(map(len, due.values())) > 100
    assert_all_came(peers, due)
    assert visits(peers)[1] == 0


def test_the_printed_forms_visit_zones_again_and_deliver_the_same():
    repeated = {}
    for form in ("basic", "checked"):
        peers = GivenPeers(2, 40, seed=1, propagation=form)
        asked = everybody_subscribes(peers)
        assert_all_came(peers, some_events(peers, asked))
        visited, again = visits(peers)
        repeated[form] = again / visited
    assert repeated["basic"] > 0.5
    assert 0 < repeated["checked"] < repeated["basic"] / 2


def test_replicas_of_a_zone_are_sent_events_in_turn():
    peers = GivenPeers(2, 20, seed=3, replicated=20)
    asked = everybody_subscribes(peers)
    assert [kind for _, kind in peers.interests].count(RecordKind.SUBSCRIBED) == len(asked)
    assert_all_came(peers, some_events(peers, asked, count=120), 5_000_000)
    for holders in peers.holders().values():
        of_each = [peers.nodes[each].broker.propagation.counts.visits for each in holders]
        if len(holders) > 1 and sum(of_each) > 30:
            assert min(of_each[1:]) > 0.4 * max(of_each[1:])


@pytest.mark.parametrize("kind", [Event, Notify])
def test_lost_events_are_sent_again(kind):
    peers = GivenPeers(2, 30, seed=5)
    asked = everybody_subscribes(peers)
    usual, lost = peers.network._arrive, []

    def arrive(sent):
        """Process a message, but lose every 40th one of this kind."""
        if any(isinstance(each, kind) for each in sent[1].messages):
            lost.append(sent)
            if len(lost) % 40 == 0:
                return
        usual(sent)

    peers.network._arrive = arrive
    due = some_events(peers, asked)
    assert_all_came(peers, due, 60_000_000)
    assert len(lost) > 100


def test_an_event_that_missed_a_zone_is_not_considered_delivered():
    """Let a zone answer without forwarding: only the sum of points shows that zones were left out."""
    peers = GivenPeers(2, 30, seed=6)
    asked = everybody_subscribes(peers)
    for held in zones_of(peers):
        usual = held.children
        held.children = lambda region, usual=usual, **form: usual(region, **form)[1:]
    due = some_events(peers, asked, count=20)
    peers.run(8_000_000)
    assert held_against(peers, due)[0] > 0
    assert not peers.is_silent()
    for held in zones_of(peers):
        del held.children
    assert_all_came(peers, due, 40_000_000)


def test_a_dead_subscriber_delays_no_others():
    peers = GivenPeers(2, 30, seed=7, gone_us=20_000_000)
    asked = everybody_subscribes(peers)
    peers.network.reaches = lambda a, b: len(peers.nodes) not in (a, b)
    due = some_events(peers, asked, count=40)
    peers.network.reaches = lambda a, b: True
    assert_all_came(peers, due, 30_000_000)


def test_events_stop_with_the_end_of_a_subscription():
    peers, everything = GivenPeers(1, 8, seed=8), ((0.0, 100.0),)
    peers.ask(1, 0, everything)
    peers.run(500_000)
    peers.publish(2, (5.0,))
    peers.run(500_000)
    peers.ask(1, 0, everything, on=False)
    peers.run(500_000)
    peers.publish(2, (5.0,))
    peers.run(2_000_000)
    assert peers.delivered[1] == [(2, 1)]
    assert [kind.name for address, kind in peers.interests if address == 1] == [
        "SUBSCRIBING", "SUBSCRIBED", "UNSUBSCRIBING", "UNSUBSCRIBED",
    ]  # fmt: skip
    assert not [each for node in peers.nodes.values() for each in node.broker.keeping.copies if each.is_on]


def test_zones_in_doubt_keep_events_pending_without_blocking_publishers():
    """Check that waiting for a confirmed zone does not block: more than the first window of events passes."""
    peers = GivenPeers(1, 8, seed=9)
    publisher = peers.nodes[1].broker.publisher
    for node in peers.nodes.values():
        node.broker.recovery.doubts.count_in = lambda held, without=0: 1
    for _ in range(3 * FIRST):
        assert publisher.has_room(1), "it waits"
        peers.publish(1, (50.0,))
        peers.run(50_000)
    assert not publisher.is_silent


def test_retries_without_an_answer_back_off():
    peers, said_us = GivenPeers(1, 8, seed=9), []
    peers.network.reaches = lambda a, b: False

    def watch(source, target, messages):
        if any(isinstance(message, Route) for message in messages):
            said_us.append(peers.network.clock.now_us)

    peers.network.watch = watch
    [zone] = peers.nodes[8].can.zones
    peers.ask(1, 0, ((100 * zone.middle[0],) * 2,))
    peers.run(30_000_000)
    waits = [later - sooner for sooner, later in itertools.pairwise(said_us)]
    assert [round(wait / 1_000_000) for wait in waits] == [1, 2, 4, 8, 8]


def test_a_replica_is_in_doubt_until_its_owner_confirms_completeness():
    peers = GivenPeers(1, 6, seed=3, replicated=1)
    [(zone, (owner, replica))] = [each for each in peers.holders().items() if len(each[1]) == 2]
    at = {address: peers.nodes[address].broker for address in (owner, replica)}

    def doubts():
        return at[replica].recovery.doubts.count_in(at[replica].held.by_id[zone_id(zone)])

    peers.run(2_000)
    assert doubts() == 1
    peers.run(1_500_000)
    assert doubts() == 0
    at[owner].recovery.doubts.taken_over(zone)
    peers.run(5_000_000)
    assert doubts() == 0, "the mirror had all of it"
    at[owner].keeping.stores.send = lambda *lot: 1  # from now on nothing that is sent arrives
    at[owner].keeping.copy_to(peers.nodes[replica].can.own)
    peers.run(5_000_000)
    assert doubts() == 1


def test_requests_to_owners_reach_no_replica():
    peers = GivenPeers(1, 6, seed=3, replicated=3)
    peers.run(1_000_000)
    owners = {zone_id(zone): holders[0] for zone, holders in peers.holders().items()}
    for held in zones_of(peers):
        for _ in range(3):
            for child, address in held.children(affected((0.9, 0.1)), is_for_owners=True):
                assert address == owners[child]
