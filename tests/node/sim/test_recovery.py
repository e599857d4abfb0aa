"""Cuts, crashes and stops over four regions in virtual time: streams recover, and nothing is lost."""

from statistics import median

import pytest

from tests.node.chained import play
from tests.node.cluster import COARSE, MESH, Cluster, S

SEEDS = range(4)
CUT_US, HEAL_US = 5 * S, 9 * S
AFFECTED = (("r3/client-0", 2), ("r2/client-0", 3))  # whose direct way is r2-r3


def cut_and_heal(seed):
    """Cut r2-r3 from 5 s to 9 s; return the cluster and the published counts at the cut."""
    cluster = Cluster(seed=seed, rate_per_s=1000, parameters={"flush_interval_us": 100_000})
    cluster.run(CUT_US)
    before = cluster.published()
    play(cluster, "5 cut r2 r3, 9 heal r2 r3, 12 run")
    cluster.drain(2 * S)
    return cluster, before


@pytest.mark.slow
def test_cuts_recover_within_two_seconds_and_return():
    switched_s, returned_s = [], []
    for seed in SEEDS:
        cluster, before = cut_and_heal(seed)
        assert cluster.logged("source_switched", from_us=2 * S, until_us=CUT_US) == []
        cluster.check_deliveries()
        for client, stream in AFFECTED:
            came = cluster.deliveries(client, stream)
            switched_s.append((next(us for us, seq in came if seq > before[stream]) - CUT_US) / S)
        after = cluster.logged("source_switched", from_us=HEAL_US)
        assert [fields["why"] for _, _, fields in after] == ["direct", "direct"]
        returned_s += [(time_us - HEAL_US) / S for time_us, _, _ in after]
    assert 0.8 < median(switched_s) < 1.3, median(switched_s)  # the checklist's reading: 0.99
    assert max(switched_s) <= 2.0, max(switched_s)
    assert max(returned_s) <= 1.5, max(returned_s)


def test_a_stopped_client_stalls_no_others_and_catches_up():
    cluster = Cluster(clients=2, rate_per_s=1000)
    play(cluster, "3 stop r1/client-0, 8 run")
    published = cluster.published()
    for client, reached in cluster.delivered().items():
        if client != "r1/client-0":
            assert all(reached[stream] > count - 500 for stream, count in published.items()), client
    cluster.network.resume("r1/client-0")
    cluster.drain()
    cluster.check_deliveries()


@pytest.mark.slow
def test_a_peer_that_catches_up_over_a_slow_link_does_not_delay_others():
    slow = type(MESH)(MESH.lan_us, MESH.wan_us, rate_bits_per_s=2_000_000)
    parameters = {**COARSE, "burst_limit_bytes": 20_000}
    cluster = Cluster(rate_per_s=3000, wires=slow, parameters=parameters)
    play(cluster, "3 stop r3/proxy-0, 13 resume r3/proxy-0, 14 run")
    published = cluster.published()
    for client in ("r0/client-0", "r1/client-0"):
        reached = cluster.delivered()[client]
        assert all(reached[stream] > published[stream] - 1500 for stream in (0, 1, 2)), (client, reached)
    cluster.drain(20 * S)
    cluster.check_deliveries()
