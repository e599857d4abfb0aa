"""When every stream flows again after the last change, and whether it keeps flowing."""

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from analysis.arrays import NEVER
from analysis.timelines.delivery.stream_pieces import ClientPieces
from analysis.timelines.recovering.convergence import SETTLED_NS, flows, headline
from analysis.timelines.recovering.delivery_history import DeliveryHistory
from analysis.timelines.recovering.failover_events import FailoverEvent, FailoverKind
from analysis.timelines.recovering.stalled import captured_hosts, notes
from analysis.timelines.run_metadata import RunMetadata, read_metadata
from analysis.timelines.summary import run_expectations
from tests.analysis.timelines.world import CUT, MS, ZERO, S, facts_of, run_record

ONLY_CUT = "[{name: cut, at: 5s, cut: [r2, r3]}]"


def with_faults(faults: str) -> RunMetadata:
    return facts_of(f"faults={faults}", "expect=[]")


def flows_of(cut: ClientPieces, metadata: RunMetadata) -> pa.Table:
    return flows(DeliveryHistory(metadata, 0, cut, {}))


def stream_of(came_ms: dict[str, list[int | None]], published_ms: list[int]) -> ClientPieces:
    """Return a stream of single events; times since time 0."""

    def at(times: list[int | None]) -> np.ndarray:
        return np.array([NEVER if ms is None else ZERO + ms * MS for ms in times], np.int64)

    count = len(published_ms)
    arrived = np.array([at(times) for times in came_ms.values()])
    return ClientPieces(
        np.arange(count), np.ones(count, np.int64), at([*published_ms]), tuple(came_ms), arrived
    )


@pytest.fixture
def metadata() -> RunMetadata:
    """Return metadata in which the cut is the last change."""
    return with_faults(ONLY_CUT)


def test_the_last_change_of_any_fault_counts_or_time_0():
    assert facts_of().last_change_ns == ZERO + 9 * S
    assert with_faults(ONLY_CUT).last_change_ns == ZERO + CUT
    flap = "[{name: flap, at: 4s, flap: [r2, r3], down: 1s, up: 500ms, for: 3s}]"
    assert with_faults(flap).last_change_ns == ZERO + 6_500 * MS
    assert with_faults("[{at: 3s, kill: r0/client-0}]").last_change_ns == ZERO + 3 * S
    assert with_faults("[]").last_change_ns == ZERO


def test_events_published_before_the_change_do_not_show_a_flowing_stream(metadata):
    cut = stream_of({"r0-client-0": [4_100, 6_000, 7_500, 7_600]}, [4_000, 4_900, 5_500, 7_000])
    (row,) = flows_of(cut, metadata).to_pylist()
    assert (row["flows_ns"], row["wait_ns"]) == (2_500 * MS, 2_000 * MS)


def test_a_stream_that_stalls_again_shows_in_its_longest_wait(metadata):
    cut = stream_of({"r0-client-0": [5_200, 5_300, 9_800]}, [5_100, 5_200, 6_000])
    (row,) = flows_of(cut, metadata).to_pylist()
    assert (row["flows_ns"], row["wait_ns"]) == (200 * MS, 3_800 * MS)


def test_a_stalled_pair_makes_the_run_unconverged(metadata):
    cut = stream_of({"r0-client-0": [5_200, 5_300], "r0-client-1": [None, None]}, [5_100, 5_200])
    found = headline(flows_of(cut, metadata), [], metadata)
    assert (found["stalled"], found["full_s"], found["wait_max_s"]) == (1, None, None)


def test_the_run_converges_with_its_last_pair(metadata):
    cut = stream_of({"r0-client-0": [5_200, 5_300], "r0-client-1": [5_900, 5_900]}, [5_100, 5_200])
    found = headline(flows_of(cut, metadata), [], metadata)
    assert (found["last_change_s"], found["stalled"]) == (5.0, 0)
    assert (found["full_s"], found["median_s"], found["wait_max_s"]) == (0.9, 0.55, 0.8)


def test_absent_clients_and_ended_streams_do_not_count(metadata):
    cut = stream_of({"r0-client-0": [5_200], "r0-client-1": [None]}, [5_100])
    gone = replace(metadata, gone=frozenset({"r0-client-1"}))
    assert headline(flows_of(cut, gone), [], gone)["stalled"] == 0
    before = stream_of({"r0-client-0": [4_200]}, [4_100])
    found = headline(flows_of(before, metadata), [], metadata)
    assert (found["stalled"], found["full_s"]) == (None, None)


def test_late_changes_of_source_are_counted_until_the_drain(metadata):
    since = metadata.last_change_ns + SETTLED_NS
    assert metadata.drained_ns is not None
    failover_events = [
        FailoverEvent(t_ns, what, "r0", "r1", 2)
        for t_ns, what in [
            (since - 1, FailoverKind.MOVED), (since, FailoverKind.MOVED), (since + S, FailoverKind.NOTICED),
            (since + S, FailoverKind.MOVED), (metadata.drained_ns, FailoverKind.MOVED),
        ]
    ]  # fmt: skip
    rows = flows_of(stream_of({"r0-client-0": [5_200]}, [5_100]), metadata)
    assert headline(rows, failover_events, metadata)["late_switches"] == 2


@pytest.mark.parametrize(
    ("faults", "joined"),
    [
        ("[]", True),
        ("[{at: 5s, cut: [r2, r3]}, {at: 6s, cut: [r0, r3]}]", True),
        ("[{at: 5s, isolate: r3}]", False),
        ("[{at: 5s, isolate: r3, direction: forward}]", False),
        ("[{at: 5s, isolate: r3, for: 2s}]", True),
    ],
)
def test_only_links_up_in_both_directions_connect_regions(faults, joined):
    metadata = with_faults(faults)
    assert headline(flows_of(stream_of({}, []), metadata), [], metadata)["connected"] is joined


def test_stalled_clients_are_named_with_the_last_packet_from_where_the_stream_came(metadata, tmp_path):
    came = {"r0-client-0": [4_100, None], "r0-client-1": [None, None], "r1-client-0": [4_100, 5_300]}
    rows = flows_of(stream_of(came, [4_000, 5_200]), metadata)
    hosts = captured_hosts(run_record(f"faults={ONLY_CUT}", "expect=[]").plan)
    address = {host.name: number for number, host in hosts.items()}
    mine, udp, igmp = address["r0-client-0"], 17, 2
    came_at = [
        (4_100, "r0-proxy-0", mine, udp),
        (6_250, "r0-proxy-0", 0xEF01_0203, udp),  # to a group
        (7_000, "r1-proxy-0", mine, udp),
        (7_100, "r0-proxy-0", 0xE000_0016, igmp),
        (7_200, "r0-client-0", 0xEF01_0203, udp),
    ]
    packets = pa.table(
        {
            "capture": ["r0-client-0-eth0"] * len(came_at),
            "t_ns": [ZERO + ms * MS for ms, *_ in came_at],
            "src_lo": [address[source] for _, source, *_ in came_at],
            "dst_lo": [target for *_, target, _ in came_at],
            "proto": [proto for *_, proto in came_at],
        }
    )
    pq.write_table(packets, tmp_path / "packets.parquet")
    event = {"kind": "arrived", "stream": 0, "t_ns": ZERO + 4_100 * MS, "peer": "r0-proxy-0", "via": None}
    pq.write_table(pa.Table.from_pylist([event]), tmp_path / "r0-client-0.parquet")
    said = list(notes(rows, tmp_path / "packets.parquet", tmp_path, hosts, metadata))
    assert said == [
        "stalled: r0-client-0 got no event of r0 after 4.10 s;"
        " the last packet from r0-proxy-0 reached it at 6.25 s",
        "stalled: r0-client-1 got no event of r0 at all",
    ]
    [without_events, _] = notes(rows, tmp_path / "packets.parquet", None, hosts, metadata)
    assert without_events.endswith("; the last packet of all, from r1-proxy-0, reached it at 7.00 s")


def test_every_run_with_reverted_faults_expects_flowing_streams():
    for faults, expected in (
        ("[{name: cut, at: 5s, cut: [r2, r3], for: 2s}]", True),
        ("[{name: slow, at: 5s, set: [r2, r3], delay: 90ms}]", True),
        ("[{name: slow, at: 3s, set: [r2, r3], delay: 90ms}, {at: 5s, cut: [r2, r3], for: 1s}]", True),
        ("[{at: 3s, kill: r0/client-0}, {at: 4s, restart: r0/client-0}]", True),
        ("[{at: 3s, block: r0/client-0, from: [r0/proxy-0], for: 2s}]", True),
        ("[{at: 3s, separate: r0/client-0, from: [r0/proxy-0], for: 2s}]", True),
        ("[{at: 3s, block: r0/client-0, from: [r0/proxy-0]}]", False),
        (ONLY_CUT, False),
        ("[{at: 3s, kill: r0/client-0}]", False),
    ):
        record = run_record(f"faults={faults}", "expect=[]")
        for stalled in (0, 3, None):
            wanted = run_expectations(record, read_metadata(record), 1, stalled)
            assert ("convergence.stalled == 0" in wanted) is (expected and stalled is not None), faults
