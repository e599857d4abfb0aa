"""Zenoh's routers on real packets: a link fails for longer than their lease, and they give it up."""

import json

import pyarrow.parquet as pq
import pytest

from experiments.records.rundir import RunDirectory
from tests.systems.on_packets import needs, run_on_packets

pytestmark = needs("zenoh", always=True)

CUT_S = 8
EXPERIMENT = f"""\
name: routers
topology: three-regions
system: zenoh
parameters: {{lease: 1s}}
roles: {{router: 1, publisher: 1, subscriber: 1}}
workload: {{event_size: 100B, rate: 50/s}}
duration: 13s
faults:
  - {{name: cut, at: 2s, cut: [r1, r2], for: {CUT_S}s}}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> RunDirectory:
    return run_on_packets(tmp_path_factory.mktemp("zenoh"), EXPERIMENT)


@pytest.mark.parametrize("router", ["r1-router-0", "r2-router-0"])
def test_both_ends_give_the_link_up_and_link_again(run, router):
    said = [json.loads(line).get("text", "") for line in run.log(router).read_text().splitlines()]
    linked = [text.partition(":")[0] for text in said if "linked:" in text]
    assert linked[-3:] == ["all linked", "linked", "all linked"]


def test_only_events_across_the_link_are_lost(run):
    """How long differs: some runs lose the events of a lease, others all of one direction until the heal."""
    summary = run.read_summary()
    events = summary["events"]
    assert events["published"] > 1500
    lost = {
        (row["client"], row["stream"]): row["lost"]
        for row in pq.read_table(run.table("deliveries")).to_pylist()
        if row["lost"]
    }
    over_the_link = {("r1-subscriber-0", 2), ("r2-subscriber-0", 1)}
    assert set(lost) >= over_the_link
    if summary["fidelity"]["valid"]:  # where others have the processors, other leases end, too
        assert set(lost) == over_the_link
    assert sum(lost.values()) == events["lost"]
    assert events["stray"] == events["corrupted"] == events["published_twice"] == 0
    assert run.read_summary()["agreement"]["held"] is True
