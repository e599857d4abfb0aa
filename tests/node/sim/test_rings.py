"""If the detour around a cut leads through several regions, every stream flows again at any rate."""

from statistics import median

import pytest

from node.systems import build_machine
from tests.node.cluster import Cluster, S
from tests.node.networks import ring, size, wires

RING = ring(10, 25, 5, 60, 12, 33)
CUT_US, END_US = 4 * S, 10 * S


def after_a_cut(seed, *, rate_per_s=100, period_us=S, build=build_machine, link=("r0", "r1"), **more):
    """Cut a link of a ring of six permanently; return the cluster and the streams' counts at the cut."""
    parameters = {"flush_interval_us": 50_000, "advertisement_period_us": period_us, **more}
    cluster = Cluster(
        go_us=2 * S, build=build, wires=wires(RING), regions=size(RING), seed=seed,
        rate_per_s=rate_per_s, parameters=parameters,
    )  # fmt: skip
    cluster.run(CUT_US)
    before = cluster.published()
    cluster.network.cut(*link)
    cluster.run(END_US)
    return cluster, before


def flows_again_s(cluster, before):
    """Return the seconds from the cut until each client has a newer event of every stream."""
    firsts = [
        next(us for us, seq in cluster.deliveries(client, stream) if seq > cnt and us > CUT_US)
        for client in cluster.delivered()
        for stream, cnt in before.items()
    ]
    return (max(firsts) - CUT_US) / S


@pytest.mark.parametrize(("rate_per_s", "link"), [(1, ("r0", "r1")), (100, ("r3", "r4"))])
@pytest.mark.slow
def test_streams_of_any_rate_flow_again_soon_and_nothing_switches_after_that(rate_per_s, link):
    cluster, before = after_a_cut(1, rate_per_s=rate_per_s, link=link)
    assert cluster.logged("source_switched", from_us=CUT_US + 5 * S) == []
    assert flows_again_s(cluster, before) <= 2.5 + (1 / rate_per_s)
    cluster.drain(2 * S)
    cluster.check_deliveries()


@pytest.mark.slow
def test_recovery_time_is_proportional_to_the_advertisement_period():
    times_s = [flows_again_s(*after_a_cut(seed, period_us=S // 2)) for seed in range(2)]
    assert median(times_s) <= 1.5 * 0.5 + 0.15, times_s
    assert max(times_s) <= 2.5 * 0.5 + 0.15, times_s
