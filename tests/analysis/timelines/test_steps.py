"""The steps from table to table give what dumb counting over a small world gives."""

from collections import defaultdict
from dataclasses import replace
from ipaddress import ip_address

import pyarrow as pa
import pytest

from analysis.errors import AnalysisError
from analysis.schemas import MESSAGES, PACKETS
from analysis.timelines import agreement, events, latency, schemas, throughput
from analysis.timelines.arrays import ints
from analysis.timelines.delivery import deliveries
from analysis.timelines.delivery.expected import followed_spans
from analysis.timelines.delivery.stream_pieces import from_events, from_records
from analysis.timelines.links import fidelity
from analysis.timelines.links.traversals import sides, traversals
from analysis.timelines.recovering import recovery
from analysis.timelines.run_metadata import read_metadata
from node.core.deliveries import RecordKind
from tests.analysis.timelines.world import (
    BATCH,
    LAN,
    MS,
    WAN,
    ZERO,
    S,
    history_of,
    hop_ns,
    run_record,
    simulate,
)


@pytest.fixture(scope="module")
def world():
    return simulate()


@pytest.fixture(scope="module")
def metadata():
    return read_metadata(run_record())


def table(rows, schema):
    return pa.Table.from_pylist(rows, schema=schema)


def samples_of(rows, metadata):
    """All streams' latency samples from rows of events."""
    everything = table(rows, schemas.EVENTS)
    return pa.concat_tables(
        latency.samples(
            stream,
            from_events(everything.filter(ints(everything, "stream") == stream), metadata.clients),
            metadata,
        )
        for stream in range(4)
    )


def checked(rows, metadata):
    """All clients' rows of DELIVERIES from rows of records."""
    drivers = set(metadata.having("publisher"))
    published = table([row for row in rows if row["host"] in drivers], schemas.RECORDS)
    got = table([row for row in rows if row["host"] in metadata.clients], schemas.RECORDS)
    return deliveries.delivery_table(metadata.clients, published, got, metadata)


def message(host, direction, other, name, t_ms, **fields):
    """Return a row of MESSAGES, between addresses of the plan."""
    addresses = {place.name: place.address for place in read_metadata(run_record()).hosts.values()}
    src, dst = (addresses[end] for end in ((other, host) if direction == "in" else (host, other)))
    row = dict.fromkeys(MESSAGES.names) | {
        "capture": f"{host}-eth0", "host": host, "direction": direction, "src": src, "sport": 7000,
        "dst": dst, "dport": 4000, "connection": 0, "stream_offset": 0, "length": 100,
        "t_first_ns": ZERO + t_ms * MS, "t_complete_ns": ZERO + t_ms * MS, "type": name,
        "retransmitted": False, "payload_length": 80,
    }  # fmt: skip
    return row | fields


def events_of(rows, host, metadata):
    mine = [row for row in rows if row["host"] == host]
    return events.from_messages([table(mine, MESSAGES)], metadata.hosts[host], metadata).to_pylist()


def test_messages_become_events(metadata):
    batch = {"stream": 0, "kind": 0, "first_seq": 11, "count": 5}
    rows = [
        message("r0-proxy-0", "in", "r0-driver-0", "PUBLISH", 10, stream=0, kind=0, request=1, count=5),
        message(
            "r0-proxy-0", "out", "r0-driver-0", "PUBLISHED", 11, stream=0, request=1, first_seq=11, count=5
        ),
        message("r0-driver-0", "out", "r0-proxy-0", "PUBLISH", 9, stream=0, kind=0, request=1, count=5),
        message(
            "r0-driver-0", "in", "r0-proxy-0", "PUBLISHED", 12, stream=0, request=1, first_seq=11, count=5
        ),
        message("r0-proxy-0", "out", "r0-client-1", "EVENTS", 13, **batch),
        message("r0-client-1", "in", "r0-proxy-0", "EVENTS", 15, **batch),
        message("r0-proxy-0", "out", "r1-proxy-0", "EVENTS", 13, **batch),
        message("r0-proxy-0", "in", "r0-client-1", "ADVERTISEMENT", 20),
    ]
    found = [
        row
        for host in ("r0-proxy-0", "r0-driver-0", "r0-client-1")
        for row in events_of(rows, host, metadata)
    ]
    assert [
        (
            row["host"],
            row["role"],
            row["kind"],
            row["peer"],
            row["first_seq"],
            row["count"],
            row["t_ns"] - ZERO,
        )
        for row in found
    ] == [
        ("r0-proxy-0", "proxy", "published", "r0-driver-0", 11, 5, 10 * MS),
        ("r0-proxy-0", "proxy", "sent", "r0-client-1", 11, 5, 13 * MS),
        ("r0-proxy-0", "proxy", "sent", "r1-proxy-0", 11, 5, 13 * MS),
        ("r0-client-1", "client", "arrived", "r0-proxy-0", 11, 5, 15 * MS),
    ]


def test_a_repeated_publish_counts_from_its_first_arrival_and_a_new_process_generation_restarts(metadata):
    def publish(t_ms):
        return message(
            "r0-proxy-0", "in", "r0-driver-0", "PUBLISH", t_ms, stream=0, kind=0, request=1, count=5
        )

    def published(t_ms, first_seq):
        return message(
            "r0-proxy-0",
            "out",
            "r0-driver-0",
            "PUBLISHED",
            t_ms,
            stream=0,
            request=1,
            first_seq=first_seq,
            count=5,
        )

    rows = [
        publish(10),
        publish(20),
        published(21, 1),
        publish(30),
        published(31, 1),
        publish(40),
        published(41, 6),
    ]
    rows.append(publish(50))  # never answered
    found = events_of(rows, "r0-proxy-0", metadata)
    assert [(row["first_seq"], (row["t_ns"] - ZERO) // MS) for row in found] == [(1, 10), (6, 40)]


def test_an_incomplete_message_reached_no_receiver(metadata):
    batch = {"stream": 2, "kind": 0, "first_seq": 11, "count": 5}
    rows = [message("r3-proxy-0", "in", "r2-proxy-0", "EVENTS", 13, **batch, t_complete_ns=None)]
    assert events_of(rows, "r3-proxy-0", metadata) == []


def test_a_host_without_messages_has_no_events(metadata):
    assert events_of([], "r0-proxy-0", metadata) == []


def test_latency_is_until_the_last_client_has_it(world, metadata):
    binned = latency.table(samples_of(world.events, metadata), metadata).to_pylist()
    first = {row["origin"]: row for row in binned if row["start_s"] == 0.0}
    farthest = {
        region: max(hop_ns(region, other) for other in ("r0", "r1", "r2", "r3") if other != region)
        for region in first
    }
    assert {region: row["p50_ms"] for region, row in first.items()} == {
        region: (ns + 2 * LAN) / 1e6 for region, ns in farthest.items()
    }
    assert all(row["count"] == 10 * BATCH for row in first.values())
    assert sum(row["count"] for row in binned) == 4 * 700 * BATCH


def test_latency_percentiles_are_those_of_every_event(world, metadata):
    samples = samples_of(world.events, metadata)
    per_event = []
    for stream in range(4):
        came = defaultdict(list)
        published = {}
        for row in world.stream(stream).to_pylist():
            for seq in range(row["first_seq"], row["first_seq"] + row["count"]):
                if row["kind"] == "published":
                    published[seq] = row["t_ns"]
                elif row["role"] == "client":
                    came[seq].append(row["t_ns"])
        per_event += [max(came[seq]) - t for seq, t in published.items()]
    per_event.sort()
    wanted = {f"p{p}_ms": per_event[-(-p * len(per_event) // 100) - 1] / 1e6 for p in (50, 95, 99)}
    mean_ms = sum(per_event) / len(per_event) / 1e6
    wanted |= {"max_ms": per_event[-1] / 1e6, "mean_ms": pytest.approx(mean_ms)}
    assert latency.headline(samples) == wanted
    binned = latency.table(samples, metadata).to_pylist()
    assert sum(row["mean_ms"] * row["count"] for row in binned) == pytest.approx(sum(per_event) / 1e6)


def test_the_streams_of_a_region_share_its_bins(world, metadata):
    in_one = replace(metadata, owner={**metadata.owner, 1: metadata.owner[0]})
    whole, apart = (
        latency.table(samples_of(world.events, each), each).to_pylist() for each in (in_one, metadata)
    )
    bins = [(row["origin"], row["start_s"]) for row in whole]
    assert len(set(bins)) == len(bins)
    assert sum(row["count"] for row in whole) == sum(row["count"] for row in apart)


def test_an_event_that_one_client_never_got_has_no_latency(world, metadata):
    kept = [row for row in world.events if (row["host"], row["first_seq"]) != ("r1-client-0", 11)]
    samples = samples_of(kept, metadata)
    assert ints(samples, "count").sum() == 4 * 700 * BATCH - 4 * BATCH


def test_a_client_that_was_killed_does_not_end_latency(world):
    killed = read_metadata(run_record("faults=[{name: dead, at: 5s, kill: r1/client-0}]", "expect=[]"))
    kept = [row for row in world.events if row["host"] != "r1-client-0" or row["t_ns"] < ZERO + 5 * S]
    samples = samples_of(kept, killed)
    assert ints(samples, "count").sum() == 4 * 700 * BATCH


def test_throughput_counts_events_per_client_and_per_link(world, metadata):
    arrived = throughput.arrivals(world.events_table(), metadata)
    carried = table([{"link": "r0-r1", "direction": "forward", "bin": 2, "bytes": 1000}], schemas.WIRE)
    rows = throughput.table(arrived, carried, metadata).to_pylist()
    found = {(row["scope"], row["name"], row["direction"], round(row["start_s"], 1)): row for row in rows}
    assert found["region", "r0", None, 3.0]["events_per_s"] == 4 * 500
    assert found["stream", "s2", None, 3.0]["events_per_s"] == 500
    assert found["region", "r3", None, 5.4]["events_per_s"] == 3 * 500  # without the stream of r2
    assert found["link", "r2-r3", "forward", 3.0]["events_per_s"] == 500
    assert found["link", "r2-r3", "forward", 5.4]["events_per_s"] == 0
    assert found["link", "r1-r3", "forward", 7.0]["events_per_s"] == 1000
    assert found["link", "r0-r1", "forward", 0.4]["bytes_per_s"] == 5000
    assert found["link", "r0-r1", "forward", 0.6]["bytes_per_s"] == 0
    total = sum(
        row["events_per_s"] * row["bin_s"] for row in rows if (row["scope"], row["name"]) == ("region", "r3")
    )
    assert round(total) == 4 * 700 * BATCH


def test_pairs_are_listed_for_every_fault_stream_and_client(world, metadata):
    group = world.stream(2)
    history = history_of(group, metadata, 2)
    found = {(row["fault"], row["client"]): row for row in recovery.pairs(history).to_pylist()}
    assert len(found) == 2 * 8
    assert found["cut", "r3-client-0"]["switch_ns"] == 1_002 * MS


def test_deliveries_are_checked_per_stream_and_client(world, metadata):
    rows = [
        row
        for row in world.records
        if (row["host"], row["stream"], row["first_seq"]) != ("r2-client-1", 3, 21)
    ]
    found = checked(rows, metadata).to_pylist()
    assert len(found) == 4 * 8
    assert sum(row["lost"] for row in found) == BATCH
    assert all(row["corrupted"] == row["unverified"] == row["duplicated"] == 0 for row in found)
    assert {row["published"] for row in found} == {7000}


def coverage_of(world, metadata):
    return pa.concat_tables(
        agreement.coverage(stream, world.stream(stream), world.records_table(stream=stream), metadata)
        for stream in range(4)
    )


@pytest.mark.slow
def test_packets_and_records_agree_or_the_stream_is_named(world, metadata):
    found = agreement.compare(coverage_of(world, metadata), checked(world.records, metadata), metadata, {})
    assert (found.held, found.compared) == (True, 4 * 8 + 4)
    rows = [
        row
        for row in world.records
        if (row["host"], row["stream"], row["first_seq"]) != ("r2-client-1", 3, 21)
    ]
    found = agreement.compare(coverage_of(world, metadata), checked(rows, metadata), metadata, {})
    assert found.disagreements == ["stream s3: 7000 events r2-client-1 got by packets, 6990 by records"]
    assert found.held is False


def test_a_client_whose_capture_cannot_tell_is_left_out_by_name(world, metadata):
    rows = [
        row
        for row in world.records
        if (row["host"], row["stream"], row["first_seq"]) != ("r2-client-1", 3, 21)
    ]
    found = agreement.compare(
        coverage_of(world, metadata), checked(rows, metadata), metadata, {"r2-client-1": "torn"}
    )
    assert (found.held, found.compared, found.left_out) == (True, 4 * 7 + 4, ["r2-client-1: torn"])


def test_the_same_number_of_other_events_is_no_agreement(world, metadata):
    rows = [dict(row) for row in world.records]
    for row in rows:
        if (row["host"], row["stream"], row["first_seq"]) == ("r2-client-1", 3, 6991):
            row["first_seq"] = 7001
    found = agreement.compare(coverage_of(world, metadata), checked(rows, metadata), metadata, {})
    assert found.disagreements == [
        "stream s3: 7000 events r2-client-1 got by packets, 7000 by records but not the same ones"
    ]


@pytest.mark.slow
def test_an_interrupted_run_may_have_packets_that_no_client_had_time_to_take(world):
    interrupted = read_metadata(run_record(outcome="interrupted"))
    rows = [
        row
        for row in world.records
        if (row["host"], row["stream"], row["first_seq"]) != ("r2-client-1", 3, 6991)
    ]
    assert (
        agreement.compare(coverage_of(world, interrupted), checked(rows, interrupted), interrupted, {}).held
        is True
    )
    more = [*world.records, {**world.records[-1], "first_seq": 7001, "position": 10**6}]
    assert (
        agreement.compare(coverage_of(world, interrupted), checked(more, interrupted), interrupted, {}).held
        is False
    )


def packet(link, side, sender, taker, t_ns, **fields):
    """Return a row of PACKETS in a link's capture, from one region's proxy to another's."""
    row = dict.fromkeys(PACKETS.names, 0) | {
        "capture": f"{link}@{side}", "t_ns": t_ns, "length": 166, "wire_length": 166, "proto": 6, "flags": 16,
        "src_lo": (10 << 24) + (int(sender[1]) << 16) + 2, "dst_lo": (10 << 24) + (int(taker[1]) << 16) + 2,
        "sport": 7000, "dport": 4000, "payload_length": 100, "payload_offset": 66,
    }  # fmt: skip
    return row | fields


def test_links_are_measured_from_both_sides_whatever_pure_acks_do(metadata):
    delay = WAN["r0", "r2"] * MS
    rows = []
    for n in range(500):
        t = ZERO + n * 10 * MS
        key = {"seq": 1000 + 100 * n, "ip_id": n}
        rows.append(packet("r0-r2", "r0", "r0", "r2", t, **key))
        rows.append(packet("r0-r2", "r2", "r0", "r2", t + delay, **key))
        ack = {"payload_length": 0, "wire_length": 66, "seq": 5, "ip_id": 0}
        rows.append(packet("r0-r2", "r2", "r2", "r0", t, **ack))
        rows.append(packet("r0-r2", "r0", "r2", "r0", t + delay, **ack))
    packets = table(rows, PACKETS)
    found = {}
    for traversal in traversals(run_record().plan):
        near, far = sides(packets, traversal)
        found[traversal.direction] = fidelity.measure_direction(
            traversal.direction, near, far, metadata
        ).to_pylist()
        carried = {
            row["bin"]: row["bytes"]
            for row in throughput.wire(traversal.direction, far, metadata).to_pylist()
        }
        assert carried.get(3, 0) == {("r0-r2", "forward"): 20 * 166, ("r0-r2", "backward"): 20 * 66}.get(
            traversal.direction, 0
        )
    (row,) = found["r0-r2", "forward"]
    assert (row["delay_min_ms"], row["delay_p50_ms"], row["delay_p99_ms"]) == (40.0, 40.0, 40.0)
    assert (row["valid"], row["loss"], row["matched"]) == (True, 0.0, row["packets"])
    assert found["r0-r2", "backward"][0]["reason"] == "no packets"
    assert len(found) == 12
    assert len(found["r2-r3", "forward"]) == 3


STAR = """
name: star
regions: {hub: {}, n: {}, s: {}, w: {}}
links:
  - {between: [hub, n], delay: 10ms}
  - {between: [hub, s], delay: 10ms}
  - {between: [hub, w], delay: 10ms}
"""


def test_packets_cross_a_link_on_their_way_from_and_to_regions_further_away(tmp_path):
    (tmp_path / "star.yaml").write_text(STAR)
    run = run_record("faults=[]", "expect=[]", f"topology={tmp_path}/star.yaml")
    subnets = {region.name: region.subnet.split(".0.0/")[0] for region in run.plan.regions}
    names = {f"{subnet}.0.0": name for name, subnet in subnets.items()} | {"224.0.0.0": "groups"}
    found = {
        traversal.direction: {
            tuple(names[str(ip_address(low))] for low, _ in pair) for pair in traversal.pairs
        }
        for traversal in traversals(run.plan)
    }
    from_others = {(region, target) for region in ("hub", "n", "s") for target in ("w", "groups")}
    assert found["hub-w", "forward"] == from_others
    assert found["hub-w", "backward"] == {("w", "hub"), ("w", "n"), ("w", "s"), ("w", "groups")}
    metadata = read_metadata(run)
    assert metadata.delay_us(("n", "w"), ZERO) == 20_000
    assert metadata.crossed([("n", "w")]) == {("n", "hub"), ("hub", "w")}


def samples_of_records(world, metadata, taken=()):
    """Stream 0's samples from records alone."""
    published, got = (
        table([row for row in world.records if row["host"] in hosts and row["stream"] == 0], schemas.RECORDS)
        for hosts in (metadata.having("publisher"), metadata.clients)
    )
    cut = from_records(published, table(taken, schemas.RECORDS), got, metadata.clients)
    return latency.samples(0, cut, metadata)


def test_without_captures_the_records_replace_events(world, metadata):
    samples = samples_of_records(world, metadata)
    assert ints(samples, "count").sum() == 700 * BATCH
    farthest = WAN["r0", "r3"] * MS + 2 * LAN
    assert set(ints(samples, "latency_ns").tolist()) == {farthest}  # from the acknowledgement on


def test_a_proxys_record_of_what_it_took_dates_publications_better_than_acknowledgements(world, metadata):
    acknowledged = [row for row in world.records if row["host"] == "r0-driver-0"]
    taken = [row | {"host": "r0-proxy-0", "t_ns": row["t_ns"] - 2 * LAN} for row in acknowledged]
    never = taken[-1] | {"first_seq": 700 * BATCH + 1}  # lost with its head before any advertisement
    samples = samples_of_records(world, metadata, [*taken, never])
    assert ints(samples, "count").sum() == 700 * BATCH
    assert set(ints(samples, "latency_ns").tolist()) == {WAN["r0", "r3"] * MS + 4 * LAN}


def test_delivered_events_count_as_published_before_their_acknowledgement(world, metadata):
    slow = [
        row | {"t_ns": row["t_ns"] + 900 * MS} if row["host"] == "r0-driver-0" else row
        for row in world.records
    ]
    samples = samples_of_records(replace(world, records=slow), metadata)
    first_has_it = 2 * LAN  # the owner's own clients, after the proxy
    assert set(ints(samples, "latency_ns").tolist()) == {WAN["r0", "r3"] * MS + 4 * LAN - first_has_it}


@pytest.mark.parametrize("direction", ["in", "out"])
def test_events_of_an_unplanned_stream_in_packets_are_refused(metadata, direction):
    row = message("r0-proxy-0", direction, "r1-proxy-0", "EVENTS", 5, stream=99, first_seq=1, count=3)
    with pytest.raises(AnalysisError, match="r0-proxy-0 sent or received events of stream 99, which"):
        events_of([row], "r0-proxy-0", metadata)


def test_a_stream_counts_for_those_who_follow_it_in_the_bin(metadata):
    def asked(host, kind, t_ms):
        row = dict.fromkeys(schemas.RECORDS.names, 0)
        return row | {"host": host, "kind": int(kind), "stream": 2, "t_ns": ZERO + t_ms * MS}

    rows = [
        asked("r0-client-0", RecordKind.SUBSCRIBED, 0),
        asked("r1-client-0", RecordKind.SUBSCRIBED, 450),
        asked("r1-client-0", RecordKind.UNSUBSCRIBING, 850),
    ]
    found = followed_spans(pa.Table.from_pylist(rows, schema=schemas.RECORDS), metadata)
    arrived = [
        {"region": "r0", "at_client": True, "stream": 2, "bin": number, "events": 100} for number in range(6)
    ]
    arrived = pa.Table.from_pylist(arrived, schema=schemas.ARRIVALS)
    rates = [
        row["events_per_s"]
        for row in throughput.table(arrived, None, metadata, found).to_pylist()
        if row["name"] == "s2"
    ]
    assert rates == [500, 500, 250, 250, 250, 500]
