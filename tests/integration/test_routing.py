"""Gateways that route by OSPF with BFD, on real packets: a cut that the network heals by itself."""

from ipaddress import ip_network

import numpy as np
import pyarrow.parquet as pq
import pytest

from analysis.arrays import ints
from analysis.timelines.links.fidelity import VIOLATED
from experiments.records.rundir import RunDirectory
from testbed.cli import main
from testbed.network.routing.daemons import PROGRAMS
from testbed.sandbox.requirements import user_namespace_needed

EXPERIMENT = """
name: triangle
topology:
  name: triangle
  regions: {r0: {}, r1: {}, r2: {}}
  links:
    - {between: [r0, r1], delay: 10ms}
    - {between: [r0, r2], delay: 10ms}
    - {between: [r1, r2], delay: 10ms}
  routing: {protocol: ospf, hello: 1s, dead: 4s, bfd: {interval: 100ms}}
system: tcp
roles: {r1: {publisher: 1}, r2: {subscriber: 1}}
workload: {event_size: 100B, rate: 50/s}
duration: 8s
faults: [{name: cut, at: 2s, cut: [r1, r2]}]
"""
pytestmark = [
    pytest.mark.network,
    pytest.mark.slow,
    pytest.mark.skipif(not (PROGRAMS / "ospfd").exists(), reason="frr is not installed: apt-get install frr"),
    pytest.mark.skipif(user_namespace_needed(), reason="FRR's daemons change their user, which needs root"),
]


@pytest.fixture(scope="module")
def healed(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    folder = tmp_path_factory.mktemp("routing")
    (folder / "triangle.yaml").write_text(EXPERIMENT)
    assert main.run(["run", str(folder / "triangle.yaml"), "--out", str(folder / "runs")]) in {0, 1}
    [path] = (folder / "runs").iterdir()
    return RunDirectory.open(path)


def test_deliveries_go_on_by_the_other_way(healed):
    summary, record = healed.read_summary(), healed.read_run()
    assert summary["events"]["published"] > 300
    assert summary["events"]["lost"] == summary["convergence"]["stalled"] == 0
    [cut_ns] = {each.applied_ns for _, each in record.changes_applied if each.index == 0}
    before = [each for each in record.routes if each.region == "r1" and each.t_ns < cut_ns]
    after = [each for each in record.routes if each.region == "r1" and each.t_ns > cut_ns]
    assert [each.link for each in before if each.target == "r2"][-1] == "r1-r2"
    assert [each.link for each in after if each.target == "r2"][-1] == "r0-r1"

    packets = pq.read_table(healed.table("packets"), columns=["capture", "t_ns", "src_lo", "dst_lo"])
    regions = {each.name: ip_network(each.subnet) for each in record.plan.regions}
    ends = np.ones(packets.num_rows, np.bool_)
    for name, region in (("src_lo", regions["r1"]), ("dst_lo", regions["r2"])):
        ends &= (ints(packets, name) >= int(region[0])) & (ints(packets, name) <= int(region[-1]))
    captures = packets.column("capture").to_numpy(zero_copy_only=False)
    crossed = {str(name) for name in captures[ends & (ints(packets, "t_ns") > cut_ns + 10**9)]}
    assert {"r0-r1@r1", "r0-r1@r0", "r0-r2@r0", "r0-r2@r2"} <= crossed


def test_links_are_proven_by_the_packets_that_crossed_them(healed):
    rows = pq.read_table(healed.table("fidelity")).to_pylist()
    forward = {row["link"]: row for row in rows if row["direction"] == "forward" and row["from_s"] is None}
    assert forward["r0-r2"]["matched"] > 100, "packets from r1 to r2 went through r0"
    leaked = [row["reason"] for row in rows if row["verdict"] == VIOLATED and row["leaked"]]
    assert not leaked


def test_the_messages_of_the_protocol_are_shown(healed, capsys):
    capsys.readouterr()
    assert main.run(["packets", str(healed.path), "--routing", "--link", "r0-r1"]) == 0
    shown = capsys.readouterr().out
    assert "OSPF          Hello Packet" in shown
    assert "BFD Control" in shown
    assert "LS Update" in shown
