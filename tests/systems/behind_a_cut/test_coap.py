"""CoAP observers on real packets: notifications wait for one confirmation at a time."""

from tests.systems.on_packets import needs, run_with_cut

pytestmark = needs("coap")


def test_a_cut_shorter_than_all_retries_loses_no_event(tmp_path):
    run = run_with_cut(tmp_path, "coap", parameters="{ack_timeout: 500ms}", cut_s=3, duration=16, rate=5)
    summary = run.read_summary()
    assert summary["events"]["published"] > 200
    assert summary["events"]["lost"] == summary["convergence"]["stalled"] == 0
    assert summary["agreement"]["held"] is True


def test_a_dropped_observer_gets_no_more_events_and_no_notice(tmp_path):
    parameters = "{ack_timeout: 500ms, max_retransmit: 1}"
    run = run_with_cut(tmp_path, "coap", parameters=parameters, cut_s=5, duration=10, rate=5)
    summary = run.read_summary()
    assert summary["convergence"]["stalled"] == 2
    assert "observation of" not in run.log("r1-subscriber-0").read_text().split('"ready"', 1)[1]
