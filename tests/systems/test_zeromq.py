"""ZeroMQ's proxies on real packets: what waits for a link comes later, up to the high-water mark."""

import json

import pyarrow.parquet as pq
import pytest

from tests.systems.on_packets import needs, run_on_packets

pytestmark = needs("zeromq")

CUT_S = 6
EXPERIMENT = f"""\
name: proxies
topology: three-regions
system: zeromq
parameters: {{parameters}}
roles: {{{{proxy: 1, publisher: 1, subscriber: 1}}}}
workload: {{{{event_size: 2kB, rate: 100/s}}}}
duration: 16s
faults:
  - {{{{name: cut, at: 2s, cut: [r1, r2], for: {CUT_S}s}}}}
"""


@pytest.mark.parametrize(("high_water", "is_lossy"), [(10, True), (0, False)])
def test_events_over_the_high_water_mark_are_lost_behind_the_link(tmp_path, high_water, is_lossy):
    run = run_on_packets(tmp_path, EXPERIMENT.format(parameters=f"{{high_water: {high_water}}}"))
    summary = run.read_summary()
    events = summary["events"]
    assert events["published"] > 4500
    assert (summary["agreement"]["held"], summary["agreement"]["disagreements"]) == (True, [])
    assert events["duplicated"] == events["out_of_order"] == events["stray"] == 0
    rows = pq.read_table(run.table("deliveries")).to_pylist()
    lost = {(row["stream"], row["client"][:2]): row["lost"] for row in rows}
    behind = {(1, "r2"), (2, "r1")}
    assert all((lost[each] > 0) == is_lossy for each in behind)
    assert all(lost[each] == 0 for each in lost if each not in behind)


def test_heartbeats_give_a_silent_connection_up_and_what_waited_is_lost(tmp_path):
    parameters = "{high_water: 0, heartbeat: 500ms, patience: 1s}"
    run = run_on_packets(tmp_path, EXPERIMENT.format(parameters=parameters))
    said = [json.loads(line).get("text", "") for line in run.log("r1-proxy-0").read_text().splitlines()]
    assert any(text.startswith("disconnected") for text in said)
    assert run.read_summary()["events"]["lost"] > 100 * (CUT_S - 2)
