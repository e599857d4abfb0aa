"""Societies of peers over CAN: every event reaches its subscribers once, whatever fails meanwhile."""

from dataclasses import replace
from random import Random

import pytest

from node.core import machine as m
from node.core.deliveries import RecordKind
from node.protocols.meghdoot.node import MeghdootNode
from tests.node.protocols.meghdoot.societies import Society

pytestmark = pytest.mark.slow


def logs(society):
    return [(time_us, name, (log.event, log.fields)) for time_us, name, log in society.logs]


def nothing_is_wrong(society):
    lost, stray, repeated, delivered = society.judged()
    assert (lost, stray, repeated) == (0, 0, 0)
    assert delivered > 200
    assert society.silent()


@pytest.fixture(scope="module")
def undisturbed():
    """Run a society without failures to its end; tests only read it."""
    society = Society()
    society.run(6_000_000)
    society.finish(5_000_000)
    return society


def test_events_come_once_to_whom_they_are_for(undisturbed):
    nothing_is_wrong(undisturbed)


def test_progress_tells_how_many_events_came(undisturbed):
    told = {name: sum(node.progress().delivered.values()) for name, node in undisturbed.nodes().items()}
    came = {
        name: sum(record.kind == RecordKind.DELIVERED for _, record in undisturbed.records[name])
        for name in told
    }
    assert told == came
    assert sum(told.values()) > 200


def test_nothing_is_lost_when_peers_die_and_come_back():
    """Two at different times; their zones are recovered from the mirror, long before subscribers refresh."""
    society = Society(12, seed=3, rate_per_s=10)
    society.run(5_000_000)
    first, other = society.rng.sample([name for name in society.specs if "subscriber" in name], 2)
    society.kill(first)
    society.run(8_000_000)
    society.kill(other)
    society.run(8_000_000)
    society.restart(first)
    society.restart(other)
    society.run(5_000_000)
    society.finish(40_000_000)
    nothing_is_wrong(society)
    recovered = [fields["how"] for _, _, (event, fields) in logs(society) if event == "recovered"]
    assert recovered.count("mirror") >= 2


def test_a_cut_link_makes_relays_and_no_takeovers():
    society = Society(12, seed=4)
    society.run(5_000_000)
    society.cut((2, 3))
    society.run(10_000_000)
    society.cut()
    society.run(5_000_000)
    society.finish()
    nothing_is_wrong(society)
    events = {event for _, _, (event, _) in logs(society)}
    assert "relay" in events
    assert "takeover" not in events


def test_events_do_not_wait_for_the_end_of_a_cut():
    """Zones answer publishers, and notify subscribers, which they do not reach and are no neighbours of."""
    society = Society(28, attributes=1, seed=1, rate_per_s=5)
    society.run(5_000_000)
    society.cut((2, 3))
    society.run(20_000_000)
    waiting = [
        (name, pending.seq)
        for name, node in society.nodes().items()
        for publication in node.broker.publisher.publications.values()
        for pending in publication.pending.values()
        if society.now_us - pending.published_us > 7_000_000
    ]
    assert not waiting
    society.finish()
    nothing_is_wrong(society)


def test_zones_that_join_at_once_are_not_in_doubt():
    """Zones are given on before their giver has said that there is nothing more."""
    society = Society(16, gap_us=500)
    society.run(6_000_000)
    assert [each for node in society.nodes().values() for each in node.broker.recovery.doubts] == []
    society.finish(5_000_000)
    nothing_is_wrong(society)


def test_a_partition_longer_than_subscribers_are_silent_loses_nothing():
    """Check taken-over zones, which do not know the subscribers on the other side of the partition."""
    society = Society(8, seed=2, rate_per_s=1, each=2)
    society.run(5_000_000)
    society.cut((0, 2), (0, 3), (1, 2), (1, 3))
    society.run(50_000_000)
    society.cut()
    society.run(15_000_000)
    society.finish(30_000_000)
    nothing_is_wrong(society)


def test_a_region_that_was_apart_loses_nothing_once_it_is_back():
    """Either side takes the other's zones over, and gives them back."""
    society = Society(12, seed=2, rate_per_s=5)
    society.run(5_000_000)
    society.cut((0, 1), (0, 2), (0, 3))
    society.run(12_000_000)
    society.cut()
    society.run(15_000_000)
    society.finish(60_000_000)
    nothing_is_wrong(society)
    assert "takeover" in {event for _, _, (event, _) in logs(society)}
    zones = [zone for node in society.nodes().values() for zone in node.can.zones]
    assert sum(zone.volume for zone in zones) == pytest.approx(1.0)


def test_a_peer_that_leaves_hands_over_all_that_it_has():
    society = Society(12, seed=5, rate_per_s=10)
    society.run(5_000_000)
    nodes = {name: node for name, node in society.nodes().items() if "subscriber" in name}
    leaving = max(nodes, key=lambda name: len(nodes[name].broker.keeping.subscriptions))
    assert len(nodes[leaving].broker.keeping.subscriptions) > 5
    society.network.give(society.addresses[leaving], m.Finish())
    society.run(3_000_000)
    assert society.network.nodes[society.addresses[leaving]].is_finished
    society.kill(leaving)
    assert [each for node in society.nodes().values() for each in node.broker.recovery.doubts] == []
    society.run(5_000_000)
    society.finish(5_000_000)
    nothing_is_wrong(society)


def test_each_process_generation_has_its_own_id():
    spec = next(iter(Society(2).specs.values()))
    ids = {MeghdootNode(replace(spec, start=start), Random(spec.seed)).can.own.id for start in range(3)}
    assert len(ids) == 3


def test_a_peer_that_is_back_before_it_was_missed_has_nothing_of_what_it_had():
    """Cut it off before it dies, so that its death is not announced; its zone is taken over and recovered."""
    society = Society(9, seed=2, rate_per_s=10)
    society.run(5_000_000)
    victim = society.rng.choice([name for name in society.specs if "subscriber" in name])
    region = int(society.members[victim].region[1:])
    society.cut(*((region, other) for other in range(4) if other != region))
    society.kill(victim)
    society.run(200_000)
    society.cut()
    society.restart(victim)
    society.run(15_000_000)
    society.finish(40_000_000)
    nothing_is_wrong(society)
    zones = [zone for node in society.nodes().values() for zone in node.can.zones]
    assert sum(zone.volume for zone in zones) == pytest.approx(1.0)
