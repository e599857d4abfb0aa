"""Links with a round trip that is longer than a peer's silence limit."""

import pytest

from tests.node.cluster import Cluster, S
from tests.node.networks import ring, size, wires


@pytest.mark.parametrize(("period_us", "delay_ms"), [(100_000, 70), (500_000, 300)])
def test_connections_over_long_links_stay(period_us, delay_ms):
    links = ring(delay_ms, delay_ms, delay_ms)
    parameters = {"advertisement_period_us": period_us, "flush_interval_us": 50_000}
    cluster = Cluster(
        go_us=4 * S, wires=wires(links), regions=size(links), rate_per_s=50, parameters=parameters
    )
    cluster.run(8 * S)
    assert cluster.logged("peer_lost", from_us=2 * S) == []
    assert cluster.logged("source_switched", from_us=4 * S) == []
    cluster.drain(2 * S)
    cluster.check_deliveries()
