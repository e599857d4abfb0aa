"""iroh on real packets, which are encrypted: a connection outlives a short cut and loses nothing."""

from tests.systems.on_packets import needs, run_on_packets

pytestmark = needs("iroh")

EXPERIMENT = """\
name: connections
topology: three-regions
system: iroh
roles: {publisher: 1, subscriber: 1}
workload: {event_size: 100B, rate: 50/s}
duration: 16s
faults:
  - {name: cut, at: 2s, cut: [r1, r2], for: 5s}
"""


def test_a_connection_outlives_a_short_cut_and_loses_nothing(tmp_path):
    run = run_on_packets(tmp_path, EXPERIMENT)
    summary = run.read_summary()
    assert summary["events"]["published"] > 2000
    assert (
        summary["events"]["lost"] == summary["events"]["duplicated"] == summary["convergence"]["stalled"] == 0
    )
    assert summary["recovery"]["cut"]["switch_s"] > 5
    assert "connection to" not in run.log("r2-subscriber-0").read_text().split('"ready"', 1)[1]
