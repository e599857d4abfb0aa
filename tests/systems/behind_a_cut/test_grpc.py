"""gRPC on real packets: a stream survives a short cut, and ends if pings stay unanswered."""

import pytest

from tests.systems.on_packets import needs, output, run_with_cut

pytestmark = needs("grpc")


@pytest.mark.parametrize(
    ("parameters", "ends"),
    [("{}", False), ("{keepalive: 1s, servers_keepalive: 1s, patience: 1s, backoff: 1s}", True)],
    ids=["without pings", "with pings"],
)
def test_a_stream_ends_in_a_cut_only_with_pings_and_then_loses_events(tmp_path, parameters, ends):
    run = run_with_cut(tmp_path, "grpc", "server", parameters=parameters, cut_s=5, duration=14)
    summary = run.read_summary()
    assert any("ended: unavailable" in text for text in output(run, "r1-server-0")) is ends
    assert (summary["events"]["lost"] > 200) is ends
    assert summary["events"]["duplicated"] == summary["convergence"]["stalled"] == 0
    assert summary["agreement"]["held"] is True
