"""CoAP observers on real packets: notifications wait for one confirmation at a time."""

from tests.systems.on_packets import needs, run_with_cut

pytestmark = needs("coap")


def test_a_cut_shorter_than_all_tries_loses_nothing(tmp_path):
    run = run_with_cut(tmp_path, "coap", parameters="{ack_timeout: 500ms}", cut_s=3, duration=16, rate=5)
    summary = run.read_summary()
    assert summary["events"]["published"] > 200
    assert summary["events"]["lost"] == summary["convergence"]["stalled"] == 0
    assert summary["agreement"]["held"] is True


def test_an_observer_that_was_given_up_gets_nothing_any_more_and_is_not_told(tmp_path):
    parameters = "{ack_timeout: 500ms, max_retransmit: 1}"
    run = run_with_cut(tmp_path, "coap", parameters=parameters, cut_s=5, duration=10, rate=5)
    summary = run.read_summary()
    assert summary["convergence"]["stalled"] == 2
    assert "observation of" not in run.log("r1-subscriber-0").read_text().split('"ready"', 1)[1]
