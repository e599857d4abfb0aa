"""etcd on real packets: the link between the leader and another member is down for a while."""

import json

import pytest

from experiments.records.rundir import RunDirectory
from tests.systems.on_packets import needs, run_on_packets

pytestmark = needs("etcd")

CUT_S = 4
EXPERIMENT = f"""\
name: led
topology: three-regions
system: etcd
parameters: {{leader: r1}}
roles: {{member: 1, publisher: 1, subscriber: 1}}
workload: {{event_size: 100B, rate: 50/s}}
duration: 14s
faults:
  - {{name: cut, at: 2s, cut: [r1, r2], for: {CUT_S}s}}
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> RunDirectory:
    return run_on_packets(tmp_path_factory.mktemp("etcd"), EXPERIMENT)


def test_nothing_is_lost_and_all_watchers_see_one_order(run):
    summary = run.read_summary()
    assert summary["events"]["published"] > 1800
    wrong = ("lost", "duplicated", "out_of_order", "stray", "corrupted", "unordered_publishers")
    assert [summary["events"][each] for each in wrong] == [0] * len(wrong)
    assert summary["recovery"]["cut"]["switch_s"] > CUT_S, "the member behind the link waits for it"


def test_packets_show_every_event_though_members_write_them_otherwise_than_clients(run):
    """Raw between members, where lines of HTTP's chunks cut them, and in base64 to and from clients."""
    agreement = run.read_summary()["agreement"]
    assert (agreement["held"], agreement["left_out"]) == (True, [])
    assert run.read_summary()["latency"]["p50_ms"] > 0


def test_the_region_that_was_asked_to_leads_until_the_link_is_back(run):
    said = [json.loads(line) for line in run.log("r2-member-0").read_text().splitlines()]
    since_ns = run.read_run().times.zero_ns
    elections = [
        json.loads(each["text"])["msg"]
        for each in said
        if each["t_ns"] > since_ns and " became " in each.get("text", "") and each["text"].startswith("{")
    ]
    assert any("became candidate" in message for message in elections), "it does not hear the leader"


def test_versions_are_kept(run):
    assert run.read_run().versions["etcd"].startswith("etcd Version: ")
