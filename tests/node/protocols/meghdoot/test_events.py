"""Events reach each matching subscriber once and no other one; with confirmations also after losses."""

import itertools

import pytest

from node.protocols.meghdoot.layers import zone_id
from node.protocols.meghdoot.messages import Event, Load, Notify, RootConfirm
from node.protocols.meghdoot.publishing.publisher import FIRST
from node.protocols.meghdoot.region import affected
from node.protocols.reachability.nodes import NodeHandle
from tests.node.protocols.meghdoot.given import GivenPeers, wants


def everybody_subscribes(peers, each=3):
    asked = {}
    for address in peers.peers:
        for number in range(each):
            asked[address, number] = peers.any_ranges()
            peers.subscribe(address, number, asked[address, number])
    peers.run(1_000_000)
    return asked


def some_events(peers, asked, count=60):
    """By subscriber the events that it is to get."""
    due = {address: set() for address in peers.peers}
    addresses = sorted(peers.peers)
    for _ in range(count):
        values, publisher = peers.any_values(), peers.rng.choice(addresses)
        seq = peers.publish(publisher, values)
        for (address, _number), ranges in asked.items():
            if wants(ranges, values):
                due[address].add((publisher, seq))
        peers.run(20_000)
    return due


def held_against(peers, due):
    """Lost, stray, duplicated."""
    got = peers.delivered()
    lost = sum(len(due[address] - set(got[address])) for address in due)
    stray = sum(len(set(got[address]) - due[address]) for address in due)
    return lost, stray, sum(len(each) - len(set(each)) for each in got.values())


def visits(peers):
    counts = [peer.broker.propagation.counts for peer in peers.peers.values()]
    return sum(each.visits for each in counts), sum(each.repeats for each in counts)


@pytest.mark.parametrize("delivery", ["exactly-once", "best-effort"])
@pytest.mark.parametrize(("attributes", "zones"), [(1, 12), (2, 40), (3, 40)])
def test_each_event_comes_once_to_whom_it_is_for(delivery, attributes, zones):
    peers = GivenPeers(attributes, zones, seed=zones, delivery=delivery)
    asked = everybody_subscribes(peers)
    assert peers.confirmed() == len(asked)
    due = some_events(peers, asked)
    peers.run(2_000_000)
    assert sum(map(len, due.values())) > 100
    assert held_against(peers, due) == (0, 0, 0)
    assert visits(peers)[1] == 0
    assert all(peer.broker.publisher.is_silent for peer in peers.peers.values())


def test_the_basic_form_visits_zones_again_and_delivers_the_same():
    peers = GivenPeers(2, 40, seed=1, propagation="basic")
    asked = everybody_subscribes(peers)
    due = some_events(peers, asked)
    peers.run(2_000_000)
    assert held_against(peers, due) == (0, 0, 0)
    visited, repeated = visits(peers)
    assert repeated > 0.5 * visited


def test_replicas_of_a_zone_are_sent_events_in_turn():
    peers = GivenPeers(2, 20, seed=3, replicated=20)
    asked = everybody_subscribes(peers)
    assert peers.confirmed() == len(asked)
    due = some_events(peers, asked, count=200)
    peers.run(2_000_000)
    assert held_against(peers, due) == (0, 0, 0)
    for holders in peers.holders.values():
        of_each = [peers.peers[each].broker.propagation.counts.visits for each in holders]
        if len(holders) > 1 and sum(of_each) > 50:
            assert min(of_each[1:]) > 0.4 * max(of_each[1:])


@pytest.mark.parametrize("kind", [Event, Notify])
def test_lost_events_are_sent_again(kind):
    peers = GivenPeers(2, 30, seed=5)
    asked = everybody_subscribes(peers)
    usual, lost = peers.network._arrive, []

    def arrive(sent):
        """Every 40th message of this kind is lost."""
        if any(isinstance(each, kind) for each in sent[2]):
            lost.append(sent)
            if len(lost) % 40 == 0:
                return
        usual(sent)

    peers.network._arrive = arrive
    due = some_events(peers, asked)
    peers.run(60_000_000)
    assert len(lost) > 100
    assert held_against(peers, due) == (0, 0, 0)
    assert all(peer.broker.publisher.is_silent for peer in peers.peers.values())


def test_an_event_that_left_a_zone_out_is_not_taken_for_delivered():
    """A zone that passes nothing on answers all the same: only the sum of points tells."""
    peers = GivenPeers(2, 30, seed=6)
    asked = everybody_subscribes(peers)
    for peer in peers.peers.values():
        for held in peer.broker.held.by_id.values():
            usual = held.children
            held.children = lambda region, usual=usual, **form: usual(region, **form)[1:]
    due = some_events(peers, asked, count=20)
    peers.run(8_000_000)
    assert held_against(peers, due)[0] > 0
    left_out = [peer for peer in peers.peers.values() if not peer.broker.publisher.is_silent]
    assert left_out
    for peer in peers.peers.values():
        for held in peer.broker.held.by_id.values():
            del held.children
    peers.run(40_000_000)
    assert held_against(peers, due) == (0, 0, 0)
    assert all(peer.broker.publisher.is_silent for peer in peers.peers.values())


def test_a_dead_subscriber_delays_no_others():
    peers = GivenPeers(2, 30, seed=7, gone_us=20_000_000)
    asked = everybody_subscribes(peers)
    gone = max(peers.peers)
    [zone] = peers.zones_of[gone]
    peers.network.reaches = lambda a, b: gone not in (a, b)
    usual = peers.owner_of
    due = some_events(peers, asked, count=40)
    peers.network.reaches = lambda a, b: True
    peers.owner_of = usual
    peers.run(30_000_000)
    assert held_against(peers, due) == (0, 0, 0)
    assert zone_id(zone) in peers.peers[gone].broker.held.by_id


def test_events_stop_with_the_end_of_a_subscription():
    peers = GivenPeers(1, 8, seed=8)
    everything = ((0.0, 100.0),)
    first, other = sorted(peers.peers)[:2]
    peers.subscribe(first, 0, everything)
    peers.run(500_000)
    peers.publish(other, (5.0,))
    peers.run(500_000)
    peers.subscribe(first, 0, everything, on=False)
    peers.run(500_000)
    peers.publish(other, (5.0,))
    peers.run(2_000_000)
    assert peers.delivered()[first] == [(other, 1)]
    assert [kind.name for kind, _ in peers.peers[first].interests] == [
        "SUBSCRIBING", "SUBSCRIBED", "UNSUBSCRIBING", "UNSUBSCRIBED",
    ]  # fmt: skip
    assert not [1 for peer in peers.peers.values() for each in peer.broker.keeping.copies if each.is_on]


def test_zones_in_doubt_keep_events_pending_and_publishers_going():
    """Check that waiting for a confirmed zone does not block: more than the first window of events passes."""
    peers = GivenPeers(1, 8, seed=9)
    publisher = min(peers.peers)
    publication = peers.peers[publisher].broker.publisher
    for peer in peers.peers.values():
        peer.broker.recovery.doubts.count_in = lambda held, without=0: 1
    for _ in range(3 * FIRST):
        assert publication.has_room(publisher), "it waits"
        peers.publish(publisher, (50.0,))
        peers.run(50_000)
    assert not publication.is_silent


def test_an_answer_with_too_few_points_is_no_confirmation():
    peers = GivenPeers(1, 8, seed=9)
    publisher = min(peers.peers)
    publication = peers.peers[publisher].broker.publisher
    told = []
    peers.network.watch = lambda source, target, messages: told.extend(
        each for each in messages if isinstance(each, RootConfirm)
    )
    peers.publish(publisher, (50.0,))
    peers.run(1_000_000)
    assert publication.is_silent
    assert len(told) <= 1


def test_retries_without_an_answer_back_off():
    peers = GivenPeers(1, 8, seed=9)
    subscriber, said = min(peers.peers), []
    peers.owner_of = lambda point: max(peers.peers)
    peers.network.reaches = lambda a, b: False

    def watch(source, target, messages):
        if not all(isinstance(message, Load) for message in messages):
            said.append(peers.network.clock.now_us)

    peers.network.watch = watch
    peers.subscribe(subscriber, 0, ((0.0, 50.0),))
    peers.run(30_000_000)
    waits = [later - sooner for sooner, later in itertools.pairwise(said)]
    assert [round(wait / 1_000_000) for wait in waits] == [1, 2, 4, 8, 8]


def test_a_replica_is_in_doubt_until_its_owner_says_that_it_has_everything():
    peers = GivenPeers(1, 6, seed=3, replicated=1)
    [(zone, (owner, replica))] = [each for each in peers.holders.items() if len(each[1]) == 2]
    at = {address: peers.peers[address].broker for address in (owner, replica)}
    held = at[replica].held.by_id[zone_id(zone)]

    def doubts():
        return at[replica].recovery.doubts.count_in(held)

    assert doubts() == 1
    peers.call(owner, lambda broker: broker.changed())
    peers.run(1_500_000)
    assert doubts() == 0
    at[owner].recovery.doubts.taken_over(zone)
    peers.run(5_000_000)
    assert doubts() == 0, "the mirror had all of it"
    at[owner].keeping.stores.send = lambda *lot: 1  # from now on nothing that is sent arrives
    at[owner].keeping.copy_to(NodeHandle(replica, replica))
    peers.run(5_000_000)
    assert doubts() == 1


def test_requests_to_owners_reach_no_replica():
    peers = GivenPeers(1, 6, seed=3, replicated=3)
    region = affected((0.9, 0.1))
    for peer in list(peers.peers.values())[:6]:
        for held in peer.broker.held.by_id.values():
            for _ in range(3):
                for child, address in held.children(region, is_basic=False, is_for_owners=True):
                    (holders,) = [each for zone, each in peers.holders.items() if zone_id(zone) == child]
                    assert address == holders[0]
