"""Background traffic is counted separately: the entry of each packet, and the generators' reports."""

import json
from dataclasses import replace
from ipaddress import ip_address

import pyarrow as pa
import pytest

from analysis.schemas import PACKETS
from analysis.timelines import schemas, throughput
from analysis.timelines.links import traffic
from analysis.timelines.run_metadata import RunMetadata, read_metadata
from experiments.loader import load_experiment
from experiments.records.run_record import RunRecord, Times
from experiments.records.rundir import RunDirectory
from testbed.planning import make_plan
from topologies.loader import load_topology

TCP, UDP, ICMP = 6, 17, 1
ZERO = 10**18
HEADERS = {TCP: 66, UDP: 42, ICMP: 34}
BACKUP = "{name: backup, from: hub, to: w, tcp: 2, at: 1s, for: 4s}"
VIDEO = "{name: video, from: w, to: hub, udp: 1mbit, up: 2s, down: 3s, for: 10s}"


@pytest.fixture(scope="module")
def metadata() -> RunMetadata:
    experiment = load_experiment("star-outages", [f"traffic=[{BACKUP}, {VIDEO}]"])
    plan = make_plan(experiment, load_topology(experiment.topology), seed=1, links_kind="relay")
    times = Times(started_ns=ZERO - 10**9, zero_ns=ZERO, stopped_ns=ZERO + 30 * 10**9)
    return read_metadata(RunRecord(plan, times=times))


def packets(metadata: RunMetadata, *given: tuple) -> pa.Table:
    """Of (proto, source, port, target, port, payload), 100 ms apart from time 0."""
    address = {name: int(ip_address(host.address)) for name, host in metadata.hosts.items()}
    rows = []
    for n, (proto, source, sport, target, dport, payload) in enumerate(given):
        own = {"t_ns": ZERO + n * 10**8, "ip_id": n, "seq": 1000 * n, "flags": 16}
        ends = {"src_lo": address[source], "dst_lo": address[target], "sport": sport, "dport": dport}
        size = {"payload_length": payload, "payload_offset": HEADERS[proto]}
        size |= {"wire_length": HEADERS[proto] + payload, "length": HEADERS[proto] + payload}
        rows.append({"capture": "hub-w@w", "proto": proto, **own, **ends, **size})
    zeros = {field.name: 0 for field in PACKETS}
    return pa.Table.from_pylist([zeros | row for row in rows], schema=PACKETS)


def of_hub_to_w(metadata: RunMetadata) -> pa.Table:
    """Return the packets at the far side of hub-w: the system's, both entries', and a probe to a traffic
    host.
    """
    return packets(
        metadata,
        (TCP, "hub-proxy-0", 7000, "w-proxy-0", 5201, 100),  # the same port, but other hosts
        (TCP, "hub-traffic", 40000, "w-traffic", 5201, 2896),  # an offloaded frame: two segments
        (TCP, "hub-traffic", 40001, "w-traffic", 5201, 500),
        (TCP, "hub-traffic", 5202, "w-traffic", 40000, 80),  # video's control connection, back
        (UDP, "hub-traffic", 5203, "w-traffic", 40000, 4),  # and what its server says to begin
        (ICMP, "hub-client-0", 0, "w-traffic", 0, 64),
        (TCP, "hub-traffic", 40000, "w-traffic", 9999, 70),  # an unused port
        (TCP, "w-proxy-0", 7000, "hub-client-0", 40000, 30),
    )


def test_packets_of_traffic_hosts_are_not_the_systems(metadata):
    own = traffic.system_packets(of_hub_to_w(metadata), metadata)
    assert own.column("payload_length").to_pylist() == [100, 30]
    (row,) = (r for r in throughput.wire(("hub-w", "forward"), own, metadata).to_pylist() if r["bin"] == 0)
    assert row["bytes"] == 166


def test_each_entry_has_its_bytes_on_the_wire_and_its_payload(metadata):
    found = traffic.carried_traffic(("hub-w", "forward"), of_hub_to_w(metadata), metadata).to_pylist()
    sums: dict[str, list[int]] = {}
    for row in found:
        assert (row["link"], row["direction"]) == ("hub-w", "forward")
        before = sums.setdefault(row["name"], [0, 0, 0])
        numbers = (row["packets"], row["bytes"], row["payload_bytes"])
        sums[row["name"]] = [one + more for one, more in zip(before, numbers, strict=True)]
    assert sums["backup"] == [3, 2896 + 500 + 3 * 66, 2896 + 500]
    assert sums["video"] == [2, 80 + 66 + 4 + 42, 0]  # towards its sender: no load


def test_a_retransmission_is_load_once_and_crosses_the_link_twice(metadata):
    seen = of_hub_to_w(metadata)
    place = seen.schema.get_field_index("ip_id")
    copy = seen.slice(2, 1).set_column(place, seen.schema.field(place), pa.array([77], pa.int32()))
    found = traffic.carried_traffic(
        ("hub-w", "forward"), pa.concat_tables([seen, copy]), metadata
    ).to_pylist()
    backup = [row for row in found if row["name"] == "backup"]
    assert sum(row["payload_bytes"] for row in backup) == 2896 + 500
    assert sum(row["bytes"] for row in backup) == 2896 + 2 * 500 + 4 * 66


def test_a_run_without_traffic_counts_every_packet(metadata):
    without = replace(metadata, traffic=())
    seen = of_hub_to_w(metadata)
    assert traffic.system_packets(seen, without) is seen
    assert traffic.carried_traffic(("hub-w", "forward"), seen, without).num_rows == 0


def test_links_show_traffic_beside_the_systems_bytes(metadata):
    seen, direction = of_hub_to_w(metadata), ("hub-w", "forward")
    wire = throughput.wire(direction, traffic.system_packets(seen, metadata), metadata)
    found = throughput.table(
        schemas.ARRIVALS.empty_table(),
        wire,
        metadata,
        None,
        traffic.carried_traffic(direction, seen, metadata),
    )
    shown = {
        (row["name"], row["direction"], row["start_s"]): (row["bytes_per_s"], row["traffic_bytes_per_s"])
        for row in found.to_pylist()
        if row["scope"] == "link"
    }
    assert shown["hub-w", "forward", 0.0] == (166 / 0.2, (2896 + 2 * 66) / 0.2)
    assert shown["hub-n", "forward", 0.0] == (0, 0)
    alone = throughput.table(schemas.ARRIVALS.empty_table(), wire, metadata).to_pylist()
    assert {row["traffic_bytes_per_s"] for row in alone} == {None}


def report(**end):
    return json.dumps({"start": {}, "intervals": [], "end": end})


def test_both_sides_of_a_burst_are_read(tmp_path):
    sender, receiver = tmp_path / "a.json", tmp_path / "a.server.json"
    sender.write_text(report(sum_sent={"bytes": 1000, "retransmits": 3}, sum_received={"bytes": 7}))
    receiver.write_text(report(sum_received={"bytes": 900}, sum={"lost_packets": 2, "packets": 10}))
    found = traffic.read_report(sender, receiver)
    assert found == traffic.BurstReport(1000, 900, 3, 2, 10)


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (None, "no report"),
        ("", "no report"),
        ("iperf3: oh dear\n", "no report"),
        ('{"start": {}, "end": {}, "error": "unable to connect to server"}', "unable to connect to server"),
        ('{"end": {"sum_sent": {"bytes": "many"}, "sum_received": [1]}}', ""),
        ('{"end": {"sum_sent": {"bytes": -5}, "sum_received": {"bytes": 1e300}}}', ""),
        ("[1, 2]", "no report"),
    ],
)
def test_figures_missing_in_a_report_are_unknown(tmp_path, said, problem):
    path = tmp_path / "a.json"
    if said is not None:
        path.write_text(said)
    assert traffic.read_report(path, tmp_path / "none.json") == traffic.BurstReport(problem=problem)


def test_an_interrupted_sender_does_not_know_the_arrivals(tmp_path):
    path = tmp_path / "a.json"
    ended = {"error": "interrupt", "end": {"sum_sent": {"bytes": 5}, "sum_received": {"bytes": 0}}}
    path.write_text(json.dumps(ended))
    found = traffic.read_report(path, tmp_path / "none.json")
    assert (found.sent_bytes, found.received_bytes, found.problem) == (5, None, "interrupt")


def test_the_headline_covers_all_bursts_and_the_last_links_payload(metadata):
    reports = {
        "backup": [traffic.BurstReport(4000, 3500, 7)],
        "video": [traffic.BurstReport(100, 90, None, 1, 10), traffic.BurstReport(problem="no report")],
    }
    crossed = traffic.carried_traffic(("hub-w", "forward"), of_hub_to_w(metadata), metadata)
    found = traffic.headline(reports, crossed, metadata)
    assert found["backup"] == {
        "asked_bits_per_s": None, "achieved_bits_per_s": round(3396 * 8 / 4), "sent_bytes": 4000,
        "received_bytes": 3500, "arrived_bytes": 3396, "retransmissions": 7, "loss": None, "wan_bytes": 3594,
    }  # fmt: skip
    assert (found["video"]["loss"], found["video"]["arrived_bytes"]) == (0.1, 0)
    unseen = traffic.headline(reports, None, metadata)
    assert unseen["backup"]["achieved_bits_per_s"] == 3500 * 8 / 4
    assert unseen["backup"]["wan_bytes"] is None
    assert list(traffic.notes(reports)) == ["traffic video: iperf3: no report (1 of 2 bursts)"]


def test_bursts_after_the_end_of_a_run_are_not_missed(metadata, tmp_path):
    ended = replace(metadata, stopped_ns=ZERO + 3 * 10**9)
    reports = traffic.read_reports(RunDirectory(tmp_path), ended)
    assert {name: len(bursts) for name, bursts in reports.items()} == {"backup": 1, "video": 1}
    found = traffic.headline({"backup": [traffic.BurstReport(0, 1000)], "video": []}, None, ended)
    assert found["backup"]["achieved_bits_per_s"] == 1000 * 8 / 2
