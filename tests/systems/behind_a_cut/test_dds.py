"""DDS on real packets: a cut within the lease loses no event; a longer one loses all its events."""

import pytest

from tests.systems.on_packets import needs, run_with_cut

pytestmark = needs("dds")


@pytest.mark.parametrize(("lease", "lost"), [("20s", range(30)), ("2s", range(400, 800))])
def test_a_cut_loses_its_events_only_if_it_outlasts_the_lease(tmp_path, lease, lost):
    parameters = f"{{lease: {lease}, announce: 1s}}"
    summary = run_with_cut(tmp_path, "dds", parameters=parameters, cut_s=6, duration=16).read_summary()
    assert summary["events"]["published"] > 2000
    assert summary["events"]["lost"] in lost
    assert summary["events"]["duplicated"] == summary["convergence"]["stalled"] == 0
    assert summary["agreement"]["held"] is True
