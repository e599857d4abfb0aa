"""Societies of peers over CAN: every event reaches its subscribers once, whatever fails meanwhile."""

from dataclasses import replace
from math import prod
from random import Random

import pytest

from node.core.deliveries import RecordKind
from node.protocols.meghdoot.node import MeghdootNode
from tests.node.protocols.meghdoot.societies import Society, assert_whole

pytestmark = pytest.mark.slow


def test_events_arrive_once_at_their_subscribers_and_progress_counts_them():
    """Check that zones granted again before their giver has confirmed completeness are not in doubt."""
    society = Society(12, gap_us=500, run_us=6_000_000)
    assert not any(list(node.broker.recovery.doubts) for node in society.nodes().values())
    assert_whole(society, settle_us=5_000_000)
    for name, node in society.nodes().items():
        came = society.recorded(name, RecordKind.DELIVERED)
        assert sum(node.progress().delivered.values()) == len(came)


def test_no_event_is_lost_when_peers_die_and_restart():
    """Kill two peers at different times; their zones are recovered from the mirror long before a refresh."""
    society = Society(10, seed=3, rate_per_s=5, run_us=5_000_000)
    first, other = society.rng.sample(society.subscribers(), 2)
    society.kill(first, then_us=8_000_000)
    society.kill(other, then_us=8_000_000)
    society.restart(first)
    society.restart(other, then_us=5_000_000)
    assert_whole(society, settle_us=30_000_000)
    recovered = [log.fields["how"] for *_, log in society.logs if log.event == "recovered"]
    assert recovered.count("mirror") >= 2


@pytest.mark.parametrize("seed", [1, 2])
def test_a_subscription_lost_with_its_mirror_image_is_restored_by_its_refresh(seed):
    """Kill all peers that store it at once; publishers keep their events until it is repeated."""
    society = Society(12, seed=seed, rate_per_s=2, refresh_us=10_000_000, gone_us=20_000_000)
    society.run(5_000_000)
    holders = {}
    for name, node in society.nodes().items():
        for store in (node.broker.keeping.subscriptions, node.broker.keeping.copies):
            for update in store:
                holders.setdefault(replace(update, refreshed_us=0), set()).add(name)
    assert min(map(len, holders.values())) > 1
    subscribers = set(society.subscribers())
    addressed = {address: name for name, address in society.addresses.items()}
    lost, killed = max(
        (
            (update, names)
            for update, names in holders.items()
            if names <= subscribers - {addressed[update.subscriber]} and len(names) == 2
        ),
        key=lambda found: prod(high - low for low, high in found[0].ranges),  # many events are for it
    )
    for name in sorted(killed):
        society.kill(name)
    society.run(8_000_000)
    assert addressed[lost.subscriber] in society.stayed()
    assert_whole(society, least=100, settle_us=60_000_000)


def test_a_cut_link_causes_relays_and_no_takeovers_and_events_do_not_wait():
    """Check that zones answer publishers and notify subscribers that they neither reach directly nor
    neighbour.
    """
    society = Society(20, attributes=1, seed=1, rate_per_s=5, run_us=5_000_000)
    society.cut((2, 3), then_us=14_000_000)
    pending = [
        each
        for node in society.nodes().values()
        for publication in node.broker.publisher.publications.values()
        for each in publication.pending.values()
    ]
    assert not [each for each in pending if society.now_us - each.published_us > 7_000_000]
    society.cut(then_us=2_000_000)
    assert_whole(society, settle_us=10_000_000)
    assert "relay" in society.events()
    assert "takeover" not in society.events()


def test_a_partition_longer_than_the_refresh_interval_loses_no_event():
    """Let each side take over the other's zones, without its subscribers, and give them back."""
    society = Society(8, seed=2, rate_per_s=1, each=2, run_us=5_000_000)
    society.divide(then_us=50_000_000)
    assert "takeover" in society.events()
    society.cut(then_us=15_000_000)
    assert_whole(society, settle_us=30_000_000)


def test_each_process_generation_has_its_own_id():
    spec = next(iter(Society(2).specs.values()))
    ids = {MeghdootNode(replace(spec, start=start), Random(spec.seed)).can.own.id for start in range(3)}
    assert len(ids) == 3


def test_a_peer_that_restarts_unnoticed_has_no_former_zones():
    """Cut the peer off before it dies, so that its death is not announced; its zone is taken over and
    recovered.
    """
    society = Society(9, seed=2, rate_per_s=10, run_us=5_000_000)
    victim = society.rng.choice(society.subscribers())
    society.isolate(int(victim[1]))
    society.kill(victim, then_us=200_000)
    society.cut()
    society.restart(victim, then_us=10_000_000)
    assert_whole(society, settle_us=30_000_000)
