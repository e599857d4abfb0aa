"""gRPC on real packets: a stream outlives a short cut, and ends when pings stay unanswered."""

import json

import pytest

from tests.systems.on_packets import needs, run_on_packets

pytestmark = needs("grpc")

EXPERIMENT = """\
name: streams
topology: three-regions
system: grpc
parameters: {parameters}
roles: {{server: 1, publisher: 1, subscriber: 1}}
workload: {{event_size: 100B, rate: 50/s}}
duration: 14s
faults:
  - {{name: cut, at: 2s, cut: [r1, r2], for: 5s}}
"""


@pytest.mark.parametrize(
    ("parameters", "ends"),
    [("{}", False), ("{keepalive: 1s, servers_keepalive: 1s, patience: 1s, backoff: 1s}", True)],
    ids=["without pings", "with pings"],
)
def test_a_stream_ends_in_a_cut_only_with_pings_and_then_loses_what_was_published(tmp_path, parameters, ends):
    run = run_on_packets(tmp_path, EXPERIMENT.format(parameters=parameters))
    summary = run.read_summary()
    said = [json.loads(line).get("text", "") for line in run.log("r1-server-0").read_text().splitlines()]
    assert any("ended: unavailable" in text for text in said) is ends
    assert (summary["events"]["lost"] > 200) is ends
    assert summary["events"]["duplicated"] == summary["convergence"]["stalled"] == 0
    assert summary["agreement"]["held"] is True
