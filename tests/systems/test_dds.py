"""DDS on real packets: within the lease a cut loses nothing; beyond it, all its events."""

import pytest

from tests.systems.on_packets import needs, run_on_packets

pytestmark = needs("dds")

EXPERIMENT = """\
name: writers
topology: three-regions
system: dds
parameters: {{lease: {lease}, announce: 1s}}
roles: {{publisher: 1, subscriber: 1}}
workload: {{event_size: 100B, rate: 50/s}}
duration: 16s
faults:
  - {{name: cut, at: 2s, cut: [r1, r2], for: 6s}}
"""


@pytest.mark.parametrize(("lease", "lost"), [("20s", range(30)), ("2s", range(400, 800))])
def test_a_cut_loses_its_events_only_if_it_outlasts_the_lease(tmp_path, lease, lost):
    summary = run_on_packets(tmp_path, EXPERIMENT.format(lease=lease)).read_summary()
    assert summary["events"]["published"] > 2000
    assert summary["events"]["lost"] in lost
    assert summary["events"]["duplicated"] == summary["convergence"]["stalled"] == 0
    assert summary["agreement"]["held"] is True
