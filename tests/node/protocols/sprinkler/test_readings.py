"""The product's interpretation of the subscription rule holds, and each broken one fails (checklist, PLP)."""

import pytest

from node.protocols.sprinkler.sources import StreamSources
from tests.node.cluster import COARSE, Cluster, S
from tests.node.protocols.sprinkler.readings import (
    NeverReturns,
    StarvesSlowStreams,
    with_sources,
)

RATE_PER_S = 2000
CUT_US, HEAL_US, END_US = 6 * S, 10 * S, 13 * S
DEAF = {**COARSE, "silence_periods": 1000.0}  # nodes that do not notice silence: the rule alone has to do it


def steady_switches(seconds=6, **parameters):
    cluster = Cluster(rate_per_s=RATE_PER_S, parameters={**COARSE, **parameters})
    cluster.run(3 * S)
    cluster.run((3 + seconds) * S)
    return len(cluster.logged("source_switched", from_us=3 * S))


def sources_of_affected(cluster):
    """Return the last source of r2's stream at r3, and that of r3's stream at r2."""
    last = {(name, found["stream"]): found["to"] for _, name, found in cluster.logged("source_switched")}
    return last["r3/proxy-0", 2], last["r2/proxy-0", 3]


def after_a_cut(build):
    cluster = Cluster(build=build, rate_per_s=RATE_PER_S)
    cluster.run(CUT_US)
    cluster.network.cut("r2", "r3")
    cluster.run(HEAL_US)
    assert "r2/proxy-0" not in sources_of_affected(cluster)
    cluster.network.heal("r2", "r3")
    cluster.run(END_US)
    return cluster


@pytest.mark.slow
def test_no_source_changes_without_faults():
    assert steady_switches() == 0


@pytest.mark.parametrize("c", [0, 4 * RATE_PER_S])
@pytest.mark.slow
def test_by_the_printed_rule_streams_flap_at_every_c(c):
    assert steady_switches(subscription_rule="paper", c=float(c)) > 0


def test_streams_return_to_the_direct_path_after_the_link_heals():
    assert sources_of_affected(after_a_cut(with_sources(StreamSources))) == ("r2/proxy-0", "r3/proxy-0")


def test_without_preferring_shorter_paths_they_never_return():
    assert "r2/proxy-0" not in sources_of_affected(after_a_cut(with_sources(NeverReturns)))


def slow_stream_after_a_cut(sources):
    """Return the progress of r3's client on r2's stream of 1 event/s, 12 s after the cut, and the published
    count.
    """
    rates = {"r0": RATE_PER_S, "r1": RATE_PER_S, "r2": 1, "r3": RATE_PER_S}
    cluster = Cluster(build=with_sources(sources), rate_per_s=rates, parameters=DEAF)
    cluster.run(CUT_US)
    cluster.network.cut("r2", "r3")
    cluster.run(CUT_US + 12 * S)
    return cluster.delivered()["r3/client-0"][2], cluster.published()[2]


@pytest.mark.slow
def test_a_slow_stream_recovers_from_a_cut_by_the_rule_alone():
    delivered, published = slow_stream_after_a_cut(StreamSources)
    assert delivered >= published - 1


def test_one_c_for_all_streams_starves_a_slow_stream():
    delivered, published = slow_stream_after_a_cut(StarvesSlowStreams)
    assert delivered < published - 5
