"""The product interprets the subscription rule stably, and the printed rule does not (checklist)."""

import pytest

from tests.node.cluster import COARSE, Cluster, S

RATE_PER_S = 2000


def steady_switches(**parameters):
    cluster = Cluster(rate_per_s=RATE_PER_S, parameters={**COARSE, **parameters})
    cluster.run(9 * S)
    return len(cluster.logged("source_switched", from_us=3 * S))


@pytest.mark.slow
def test_no_source_changes_without_faults():
    assert steady_switches() == 0


@pytest.mark.parametrize("c", [0, 4 * RATE_PER_S])
@pytest.mark.slow
def test_by_the_printed_rule_streams_flap_at_every_c(c):
    assert steady_switches(subscription_rule="paper", c=float(c)) > 0
