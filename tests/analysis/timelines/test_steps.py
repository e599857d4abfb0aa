"""The steps from table to table equal simple counting over a small simulated run."""

from dataclasses import replace
from ipaddress import ip_address

import pyarrow as pa
import pytest

from analysis.arrays import ints
from analysis.errors import AnalysisError
from analysis.schemas import MESSAGES
from analysis.timelines import agreement, events, latency, schemas, throughput
from analysis.timelines.delivery import deliveries
from analysis.timelines.delivery.expected import followed_spans
from analysis.timelines.delivery.stream_pieces import from_events
from analysis.timelines.links.traversals import traversals
from analysis.timelines.run_metadata import read_metadata
from node.core.deliveries import RecordKind
from tests.analysis.timelines.record_rows import record, records_table
from tests.analysis.timelines.world import BATCH, MS, ZERO, run_record, simulate


@pytest.fixture
def world():
    return simulate()


@pytest.fixture(scope="module")
def metadata():
    return read_metadata(run_record())


def table(rows, schema):
    return pa.Table.from_pylist(rows, schema=schema)


def samples_of(rows, metadata):
    """Return all streams' latency samples from rows of events."""
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
    """Return all clients' rows of DELIVERIES from rows of records."""
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


def test_a_repeated_publish_counts_from_its_first_arrival_and_a_new_process_generation_restarts(metadata):
    def publish(t_ms):
        more = {"stream": 0, "kind": 0, "request": 1, "count": 5}
        return message("r0-proxy-0", "in", "r0-driver-0", "PUBLISH", t_ms, **more)

    def published(t_ms, first_seq):
        more = {"stream": 0, "request": 1, "count": 5, "first_seq": first_seq}
        return message("r0-proxy-0", "out", "r0-driver-0", "PUBLISHED", t_ms, **more)

    rows = [publish(10), publish(20), published(21, 1), publish(30), published(31, 1), publish(40)]
    rows += [published(41, 6), publish(50)]  # the last one is never answered
    found = events_of(rows, "r0-proxy-0", metadata)
    assert [(row["first_seq"], (row["t_ns"] - ZERO) // MS) for row in found] == [(1, 10), (6, 40)]


def test_an_incomplete_message_reached_no_receiver(metadata):
    batch = {"stream": 2, "kind": 0, "first_seq": 11, "count": 5}
    rows = [message("r3-proxy-0", "in", "r2-proxy-0", "EVENTS", 13, **batch, t_complete_ns=None)]
    assert events_of(rows, "r3-proxy-0", metadata) == []


def test_the_streams_of_a_region_share_its_bins(world, metadata):
    in_one = replace(metadata, owner={**metadata.owner, 1: metadata.owner[0]})
    whole, apart = (
        latency.table(samples_of(world.events, each), each).to_pylist() for each in (in_one, metadata)
    )
    bins = [(row["origin"], row["start_s"]) for row in whole]
    assert len(set(bins)) == len(bins)
    assert sum(row["count"] for row in whole) == sum(row["count"] for row in apart)


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


def coverage_of(world, metadata):
    return pa.concat_tables(
        agreement.coverage(stream, world.stream(stream), world.records_table(stream=stream), metadata)
        for stream in range(4)
    )


@pytest.mark.slow
def test_packets_and_records_agree_or_the_stream_is_named(world, metadata):
    coverage = coverage_of(world, metadata)
    found = agreement.compare(coverage, checked(world.records, metadata), metadata, {})
    assert (found.held, found.compared) == (True, 4 * 8 + 4)
    rows = [row for row in world.records if (row["host"], row["first_seq"]) != ("r2-client-1", 6991)]
    fewer = checked(rows, metadata)
    found = agreement.compare(coverage, fewer, metadata, {})
    assert found.held is False
    assert found.disagreements[3] == "stream s3: 7000 events r2-client-1 got by packets, 6990 by records"
    interrupted = replace(metadata, outcome="interrupted")  # clients had no time to take the last ones
    assert agreement.compare(coverage, fewer, interrupted, {}).held is True
    more = checked([*world.records, {**world.records[-1], "first_seq": 7001, "position": 10**6}], metadata)
    assert agreement.compare(coverage, more, interrupted, {}).held is False


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


@pytest.mark.parametrize("direction", ["in", "out"])
def test_events_of_an_unplanned_stream_in_packets_are_refused(metadata, direction):
    row = message("r0-proxy-0", direction, "r1-proxy-0", "EVENTS", 5, stream=99, first_seq=1, count=3)
    with pytest.raises(AnalysisError, match="r0-proxy-0 sent or received events of stream 99, which"):
        events_of([row], "r0-proxy-0", metadata)


def test_throughput_of_a_stream_counts_its_followers_in_the_bin(metadata):
    rows = [
        record(host, kind, 2, t_ns=ZERO + t_ms * MS)
        for host, kind, t_ms in (
            ("r0-client-0", RecordKind.SUBSCRIBED, 0),
            ("r1-client-0", RecordKind.SUBSCRIBED, 450),
            ("r1-client-0", RecordKind.UNSUBSCRIBING, 850),
        )
    ]
    found = followed_spans(records_table(rows), metadata)
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
