"""Regions with several streams, some with publishers elsewhere, while processes die and restart."""

import pytest

from tests.node.chained import Chaos, chained, check, play
from tests.node.cluster import Cluster, S

ELSEWHERE = (("r0",), ("r1",), ("r0", "r1"), ("r1",), ("r1/driver-0", "r0/driver-0"), ("r0",))
"""Two regions of three streams: each publishes on some of its own and of the other's, on two both do."""


def several(**given):
    return chained(streams=3, publishers=ELSEWHERE, **given)


def test_a_drivers_load_is_shared_evenly_by_its_streams():
    cluster = Cluster(regions=2, streams=3, rate_per_s=900)
    cluster.run(5 * S)
    cluster.drain()
    published = cluster.published()
    assert sum(published.values()) == pytest.approx(2 * 900 * 4, abs=100)
    assert max(published.values()) - min(published.values()) <= 20
    cluster.check_deliveries()


def test_publishers_of_all_regions_share_a_stream_in_one_order():
    cluster = Cluster(regions=3, publishers=(("r0", "r1", "r2"), (), ()))
    cluster.run(4 * S)
    cluster.drain()
    assert list(cluster.published()) == [0]
    assert cluster.machine("r2/driver-0").loads[0].publisher.acknowledged > 5000
    cluster.check_deliveries()


@pytest.mark.slow
def test_a_cut_to_the_owner_delays_remote_publications_and_loses_none():
    cluster = several(rate_per_s=600)
    play(cluster, "2 cut r0 r1, 5 run")
    before = cluster.machine("r0/driver-0").loads[4].publisher.acknowledged
    cluster.run(6 * S)
    assert cluster.machine("r0/driver-0").loads[4].publisher.acknowledged == before
    play(cluster, "6 heal r0 r1, 9 run")
    assert cluster.machine("r0/driver-0").loads[4].publisher.acknowledged > before
    check(cluster)


@pytest.mark.slow
def test_no_event_of_any_stream_is_lost_through_random_faults():
    cluster = several(seed=1, rate_per_s=1000, parameters={"durable": True})
    Chaos(cluster, 1).run()
    check(cluster)
