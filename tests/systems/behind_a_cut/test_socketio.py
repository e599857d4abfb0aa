"""Socket.IO on real packets: a connection that is closed in a cut loses its events, others lose none."""

import pytest

from tests.systems.on_packets import needs, run_with_cut

pytestmark = needs("socketio")


@pytest.mark.parametrize(
    ("parameters", "is_lossy"),
    [("{}", False), ("{ping_interval: 1s, ping_timeout: 1s}", True)],
    ids=["pings every 25 s", "pings every second"],
)
def test_only_short_ping_intervals_close_a_connection_in_a_short_cut(tmp_path, parameters, is_lossy):
    run = run_with_cut(tmp_path, "socketio", "server", parameters=parameters, cut_s=5, duration=14)
    summary = run.read_summary()
    assert ("connection to 10.1.0.2 ended" in run.log("r2-server-0").read_text()) is is_lossy
    assert (summary["events"]["lost"] > 200) is is_lossy
    assert summary["events"]["duplicated"] == summary["convergence"]["stalled"] == 0
    assert summary["agreement"]["held"] is True
