"""iroh on real packets, which are encrypted: a connection survives a short cut and loses no event."""

from tests.systems.on_packets import needs, run_with_cut

pytestmark = needs("iroh")


def test_a_connection_survives_a_short_cut_and_loses_no_event(tmp_path):
    run = run_with_cut(tmp_path, "iroh", cut_s=5, duration=16)
    summary = run.read_summary()
    assert summary["events"]["published"] > 2000
    assert (
        summary["events"]["lost"] == summary["events"]["duplicated"] == summary["convergence"]["stalled"] == 0
    )
    assert summary["recovery"]["cut"]["switch_s"] > 5
    assert "connection to" not in run.log("r2-subscriber-0").read_text().split('"ready"', 1)[1]
