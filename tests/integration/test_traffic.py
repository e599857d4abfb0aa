"""Background traffic on real packets: as configured, counted apart from the system's, and by packets as
much as its generators say; links are judged by all packets.
"""

import json
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

from experiments.records.rundir import RunDirectory
from testbed.cli import main

TOPOLOGY = """
name: one-narrow-link
regions:
  r0: {lan: {delay: 1ms, rate: 1gbit}}
  r1: {lan: {delay: 1ms, rate: 1gbit}}
links:
  - {between: [r0, r1], delay: 10ms, rate: 4mbit}
"""
EXPERIMENT = """
name: shared
topology: ./one-narrow-link.yaml
system: sprinkler
roles: {proxy: 1, driver: 1, client: 1}
workload: {event_size: 100B, rate: 100/s}
duration: 6s
drain: 30s
congestion_control: reno
traffic:
  - {name: backup, from: r0, to: r1, tcp: 2, at: 1s, for: 4s}
  - {name: bursts, from: r1, to: r0, udp: 1mbit, at: 1s, for: 5s, up: 1s, down: 2s}
"""
pytestmark = pytest.mark.network


@dataclass(frozen=True)
class Shared:
    """The run, whatever its verdict: the machine may be busy with other things."""

    directory: RunDirectory
    record: dict[str, Any]
    summary: dict[str, Any]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Shared:
    folder = tmp_path_factory.mktemp("shared")
    (folder / "one-narrow-link.yaml").write_text(TOPOLOGY)
    (folder / "shared.yaml").write_text(EXPERIMENT)
    given = ["run", str(folder / "shared.yaml"), "--links", "relay", "--out", str(folder / "runs")]
    assert main.run(given) in {0, 1}
    [path] = (folder / "runs").iterdir()
    run = RunDirectory.open(path)
    return Shared(run, json.loads(run.run_json.read_text()), run.read_summary())


def test_packets_show_as_much_as_the_generators_say(shared: Shared) -> None:
    backup, bursts = (shared.summary["traffic"][name] for name in ("backup", "bursts"))
    assert backup["received_bytes"] > 500_000, "two flows fill most of 4 Mbit/s for 4 s"
    least, most = backup["received_bytes"], backup["sent_bytes"]
    assert least * 0.99 <= backup["arrived_bytes"] <= most * 1.01, "what was under way at the end came late"
    assert backup["arrived_bytes"] == pytest.approx(least, rel=0.15)
    assert bursts["sent_bytes"] == pytest.approx(2 * 125_000, rel=0.05)
    assert bursts["arrived_bytes"] == pytest.approx(bursts["received_bytes"], rel=0.05)
    assert bursts["loss"] is not None
    assert bursts["retransmissions"] is None
    reports = {path.name for path in shared.directory.traffic.iterdir()}
    assert reports == {
        f"{burst}{side}.json" for burst in ("backup-0", "bursts-0", "bursts-1") for side in ("", ".server")
    }
    assert shared.record["versions"]["iperf3"].startswith("iperf 3")


def test_traffic_is_silent_in_its_pauses(shared: Shared) -> None:
    rows = pq.read_table(shared.directory.table("traffic")).to_pylist()
    load = [row["bin"] * 0.2 for row in rows if row["name"] == "bursts" and row["payload_bytes"] > 2000]
    assert min(load) >= 0.8
    assert not [t for t in load if 2.6 <= t < 3.8], "a burst begins some round trips late, and lasts a second"
    assert [t for t in load if 4 <= t < 5.6]


def test_no_figure_of_the_system_has_it_in_it(shared: Shared) -> None:
    plan = shared.record["plan"]
    own = [int(ip_address(host["address"])) for host in plan["hosts"] if host["role"] != "traffic-host"]
    packets = pq.read_table(shared.directory.table("packets"))
    table = {name: packets.column(name).to_numpy() for name in ("src_lo", "dst_lo", "wire_length")}
    side = packets.column("capture").to_numpy(zero_copy_only=False)
    there = {"r0-r1@r1": "10.0.", "r0-r1@r0": "10.1."}  # what came from the other region
    expected = 0
    for capture, prefix in there.items():
        others = [each for each in own if str(ip_address(each)).startswith(prefix)]
        mine = (side == capture) & np.isin(table["src_lo"], others) & np.isin(table["dst_lo"], own)
        expected += int(table["wire_length"][mine].sum())
    assert shared.summary["wan"]["bytes"] == expected
    everything = sum(count["bytes"] for count in shared.record["counters"] if count["link"] == "r0-r1")
    assert sum(entry["wan_bytes"] for entry in shared.summary["traffic"].values()) > expected
    assert everything > expected
    throughput = pq.read_table(shared.directory.table("throughput")).to_pylist()
    on_link = [row for row in throughput if row["scope"] == "link"]
    assert sum(row["bytes_per_s"] * row["bin_s"] for row in on_link) <= expected
    assert sum(row["traffic_bytes_per_s"] * row["bin_s"] for row in on_link) > 500_000


def test_links_are_judged_by_all_packets(shared: Shared) -> None:
    (forward,) = (
        row
        for row in pq.read_table(shared.directory.table("fidelity")).to_pylist()
        if row["direction"] == "forward"
    )
    assert forward["packets"] * 1400 > shared.summary["traffic"]["backup"]["arrived_bytes"]
    assert forward["rate_part"] is not None, "it was used up, by others"
    assert shared.summary["events"]["lost"] == 0
