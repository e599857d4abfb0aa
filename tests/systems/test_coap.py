"""CoAP observers on real packets: notifications wait for one confirmation at a time."""

from tests.systems.on_packets import needs, run_on_packets

pytestmark = needs("coap")

EXPERIMENT = """\
name: observers
topology: three-regions
system: coap
parameters: {parameters}
roles: {{publisher: 1, subscriber: 1}}
workload: {{event_size: 100B, rate: 5/s}}
duration: {duration}s
faults:
  - {{name: cut, at: 2s, cut: [r1, r2], for: {cut}s}}
"""


def test_a_cut_shorter_than_all_tries_loses_nothing(tmp_path):
    experiment = EXPERIMENT.format(parameters="{ack_timeout: 500ms}", duration=16, cut=3)
    summary = run_on_packets(tmp_path, experiment).read_summary()
    assert summary["events"]["published"] > 200
    assert summary["events"]["lost"] == summary["convergence"]["stalled"] == 0
    assert summary["agreement"]["held"] is True


def test_an_observer_that_was_given_up_gets_nothing_any_more_and_is_not_told(tmp_path):
    experiment = EXPERIMENT.format(parameters="{ack_timeout: 500ms, max_retransmit: 1}", duration=10, cut=5)
    run = run_on_packets(tmp_path, experiment)
    summary = run.read_summary()
    assert summary["convergence"]["stalled"] == 2
    assert "observation of" not in run.log("r1-subscriber-0").read_text().split('"ready"', 1)[1]
