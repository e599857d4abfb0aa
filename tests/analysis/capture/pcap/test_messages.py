"""Messages in captures are those that the nodes' own reader takes from the same bytes, or are counted."""

import itertools
import random
import struct
from collections.abc import Iterable, Sequence
from dataclasses import asdict, fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.capture.pcap import frames as frames_module
from analysis.capture.pcap.streams import HostCapture
from analysis.schemas import MESSAGES
from node.core.framing import HEADER, frames_in
from node.protocols.sprinkler.messages import (
    CODEC,
    Advertisement,
    Answered,
    Configuration,
    Counter,
    EventKind,
    Events,
    Follow,
    Hello,
    Joined,
    Neighbour,
    Notify,
    Publication,
    Publish,
    Published,
    Refused,
    Replica,
    Request,
    SparseEvents,
    Status,
    Stored,
    Subscribe,
    Token,
    Unsubscribe,
    View,
    event_sizes,
)
from tests.analysis.capture.pcap import reading
from tests.analysis.capture.pcap.captures import (
    ACK,
    PSH,
    START_NS,
    SYN,
    Record,
    at_intervals,
    segment,
    snapped,
    write_pcap,
)

u32, u64 = st.integers(0, 2**31 - 1), st.integers(1, 2**62)
batch = st.builds(
    lambda count, size: (count, size, bytes(count * size)), st.integers(1, 20), st.integers(1, 9)
)
counters = st.lists(st.builds(Counter, u32, u64), max_size=4).map(tuple)
message = st.one_of(
    st.builds(Hello, st.integers(0, 2), u64, st.text("abc/-0", min_size=1)),
    st.builds(Advertisement, counters),
    st.builds(Subscribe, u32, u64),
    st.builds(Unsubscribe, u32),
    st.builds(lambda s, seq, b: Events(EventKind.DATA, 0, s, seq, b[0], b[1], 0, 0, b[2]), u32, u64, batch),
    st.builds(lambda s, seq, n: Events(EventKind.TOMBSTONE, 0, s, seq, n, 1, 0, 0, b""), u32, u64, u32),
    st.builds(lambda s, seq, b: Publish(EventKind.DATA, 0, s, seq, b[0], b[1], 0, b[2]), u32, u64, batch),
    st.builds(Published, u32, u64, u64, st.integers(1, 1000)),
    st.builds(Refused, st.integers(1, 5), u32, u64, st.text("xyz ")),
    st.builds(
        lambda stream, seq, reaches: SparseEvents(
            EventKind.DATA, 0, stream, seq, len(reaches), 3, 0, 0,
            struct.pack(f">{len(reaches)}I", *reaches) + bytes(3 * len(reaches)),
        ),
        u32, u64, st.lists(st.integers(1, 2**31), min_size=1, max_size=20),
    ),
    st.builds(View, st.lists(st.builds(Neighbour, u32, u32), max_size=4).map(tuple)),
    st.builds(Notify, counters),
    st.builds(lambda stream, start, more: Request(stream, start, start + more), u32, u64, u32),
    st.builds(Answered, u32, u64, u64, u64),
    st.builds(Publication, u32, u64, u32, u64, u64, st.text("abc/-0", min_size=1)),
    st.builds(Follow, u64, counters),
    st.builds(Stored, counters),
    st.builds(Token, u64),
    st.builds(
        Configuration,
        **{field.name: u64 for field in fields(Configuration) if field.name != "replicas"},
        replicas=st.lists(st.builds(Replica, u32, st.integers(0, 1), u64), max_size=4).map(tuple),
    ),
    st.builds(Joined, u64),
    st.builds(Status, u64, u64, st.integers(0, 1)),
)  # fmt: skip
messages = st.lists(message, min_size=1, max_size=12)
COLUMNS = {"first_request": "request", "number": "configuration"}


def members(one: Any) -> list[int] | None:
    if isinstance(one, View):
        return [neighbour.member for neighbour in one.neighbours]
    return [replica.index for replica in one.replicas] if isinstance(one, Configuration) else None


def covered(one: Any) -> int | None:
    if isinstance(one, SparseEvents):
        return sum(event_sizes(one.count, one.payload))
    return one.count if isinstance(one, Events) else None


def encode(sent: Iterable[Any]) -> bytes:
    return b"".join(bytes(part) for one in sent for part in CODEC.encode(one))


def extract(path: Path) -> dict[str, pa.Table]:
    """Return the tables of one capture of host 10.0.0.2."""
    return reading.extract(HostCapture(str(path), "r0-proxy-0", "10.0.0.2", 7000), CODEC)


def capture(path: Path, parts: Sequence[tuple[int, bytes]], isn: int = 4_294_967_000) -> list[Record]:
    """Write a connection's set-up and its segments (stream offset, payload) to `path`."""
    frames = [segment(isn, flags=SYN)]
    frames += [segment(isn + 1 + offset, payload, flags=ACK | PSH) for offset, payload in parts]
    records = at_intervals(frames)
    write_pcap(path, records)
    return records


def cut(data: bytes, sizes: Iterable[int]) -> list[tuple[int, bytes]]:
    """Cut a stream into segments of these sizes, over and over."""
    parts, offset = [], 0
    for size in itertools.cycle(sizes):
        if offset >= len(data):
            return parts
        parts.append((offset, data[offset : offset + size]))
        offset += size
    return parts


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("messages") / "r0-proxy-0-eth0.pcap"


@given(
    sent=messages,
    sizes=st.lists(st.integers(1, 300), min_size=1, max_size=5),
    window=st.sampled_from([64, 1 << 20]),
)
def test_messages_are_found_however_segments_cut_them(
    path: Path, sent: list[Any], sizes: list[int], window: int
) -> None:
    whole = encode(sent)
    parts = cut(whole, sizes)
    capture(path, parts)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frames_module, "WINDOW_BYTES", window)
        tables = extract(path)
    rows = tables["messages"].to_pylist()
    frames = list(frames_in(whole))
    assert [row["type"] for row in rows] == [CODEC.by_type[frame.type].name for frame in frames]
    offset = 0
    for row, one, frame in zip(rows, sent, frames, strict=True):
        layout = CODEC.by_type[frame.type]
        assert (row["stream_offset"], row["length"]) == (offset, len(frame.whole))
        assert row["payload_length"] == len(frame.body) - layout.head.size
        for field in (
            "stream", "kind", "first_seq", "count", "first_request", "request", "cnt", "next", "last",
            "configuration", "number",
        ):  # fmt: skip
            if hasattr(one, field):
                assert row[COLUMNS.get(field, field)] == getattr(one, field)
        told = getattr(one, "counters", None)
        assert row["advertised"] == (None if told is None else [asdict(counter) for counter in told])
        hops = getattr(one, "hops", None)
        assert row["hops"] == (None if hops is None else [asdict(hop) for hop in hops])
        assert row["members"] == members(one)
        assert row["covered"] == covered(one)
        first, last = (
            next(n for n, (at, part) in enumerate(parts, 1) if at <= position < at + len(part))
            for position in (offset, offset + row["length"] - 1)
        )
        assert (row["t_first_ns"], row["t_complete_ns"]) == (
            START_NS + first * 10**6,
            START_NS + last * 10**6,
        )
        offset += row["length"]
    [counts] = tables["decoding"].to_pylist()
    assert (counts["messages"], counts["malformed"], counts["undecoded_bytes"]) == (len(sent), 0, 0)
    assert (counts["unfinished_bytes"], counts["stopped"], tables["gaps"].num_rows) == (0, None, 0)


@given(sent=messages, seed=st.integers(0, 10**6))
@pytest.mark.slow
def test_disorder_and_repetition_change_times_but_no_message(path: Path, sent: list[Any], seed: int) -> None:
    parts = cut(encode(sent), [17, 5, 60])
    capture(path, parts)
    in_order = extract(path)["messages"]
    shuffled = random.Random(seed).sample([*parts, *parts[::2]], len(parts) + len(parts[::2]))
    capture(path, shuffled)
    tables = extract(path)
    same = [name for name in MESSAGES.names if name not in {"t_first_ns", "t_complete_ns", "retransmitted"}]
    assert tables["messages"].select(same) == in_order.select(same)
    repeated = [range(offset, offset + len(part)) for offset, part in parts[::2]]
    for row in tables["messages"].to_pylist():
        mine = range(row["stream_offset"], row["stream_offset"] + row["length"])
        assert row["retransmitted"] == any(
            max(a.start, mine.start) < min(a.stop, mine.stop) for a in repeated
        )
        assert row["t_first_ns"] <= row["t_complete_ns"]


def batches(count: int, size: int = 100) -> list[Events]:
    return [
        Events(EventKind.DATA, 0, 3, 1 + number * 10, 10, size // 10, 0, 0, bytes(size))
        for number in range(count)
    ]


def test_a_gap_inside_a_message_costs_that_message_and_no_other(path: Path) -> None:
    whole = encode(batches(5))
    size = len(whole) // 5
    capture(path, [part for part in cut(whole, [50, size - 50]) if part[0] != size + 50])
    tables = extract(path)
    rows = tables["messages"].to_pylist()
    assert [row["first_seq"] for row in rows] == [1, 21, 31, 41]
    arrived = [row["t_complete_ns"] is not None for row in rows]
    assert arrived == [True, False, False, False]  # nothing shows that the missing bytes came
    [gap] = tables["gaps"].to_pylist()
    assert (gap["stream_offset"], gap["length"], gap["cause"]) == (size + 50, size - 50, "missing")
    [counts] = tables["decoding"].to_pylist()
    assert (counts["messages"], counts["missing_bytes"], counts["unfinished_bytes"]) == (4, size - 50, 50)
    assert counts["stopped"] is None


def test_a_gap_over_a_frame_header_stops_decoding_and_is_counted(path: Path) -> None:
    whole = encode(batches(5))
    size = len(whole) // 5
    capture(
        path, [part for part in cut(whole, [size - 10, 20, 1000]) if part[1] != whole[size - 10 : size + 10]]
    )
    tables = extract(path)
    [counts] = tables["decoding"].to_pylist()
    assert tables["messages"].num_rows == 0
    assert counts["undecoded_bytes"] == len(whole) - size - 10
    assert counts["unfinished_bytes"] == size - 10
    assert f"bytes {size} to {size + 10} are not in the capture" in counts["stopped"]


def test_a_snapped_capture_still_gives_messages_whose_heads_it_has(path: Path) -> None:
    whole = encode(batches(5, 1000))
    records = capture(path, cut(whole, [len(whole) // 5]))
    write_pcap(path, [snapped(record, 128) for record in records])
    tables = extract(path)
    assert [row["first_seq"] for row in tables["messages"].to_pylist()] == [1, 11, 21, 31, 41]
    assert all(row["t_complete_ns"] for row in tables["messages"].to_pylist())
    assert {gap["cause"] for gap in tables["gaps"].to_pylist()} == {"snapped"}


def test_a_snapped_head_is_counted_and_not_guessed(path: Path) -> None:
    records = capture(path, cut(encode(batches(3)), [10_000]))
    write_pcap(path, [snapped(record, 14 + 40 + 12) for record in records])
    tables = extract(path)
    [counts] = tables["decoding"].to_pylist()
    assert (tables["messages"].num_rows, counts["messages"], counts["malformed"]) == (0, 0, 0)
    assert counts["undecoded_bytes"] > 0


def test_a_body_that_does_not_fit_is_malformed_and_the_next_is_read(path: Path) -> None:
    odd = HEADER.pack(4 + 3, 1, CODEC.by_name["SUBSCRIBE"].type, 0) + b"abc"
    unknown = HEADER.pack(4 + 2, 1, 200, 0) + b"xy"
    capture(path, cut(odd + encode(batches(1)) + unknown + encode(batches(2)), [33]))
    tables = extract(path)
    [counts] = tables["decoding"].to_pylist()
    assert (tables["messages"].num_rows, counts["malformed"], counts["stopped"]) == (3, 2, None)


@pytest.mark.parametrize("header", [(3, 1, 5, 0), (1 << 24, 1, 5, 0), (40, 2, 5, 0), (40, 1, 5, 7)])
def test_an_invalid_frame_header_stops_decoding(path: Path, header: tuple[int, int, int, int]) -> None:
    good = encode(batches(2))
    capture(path, cut(good + HEADER.pack(*header) + bytes(100), [60]))
    tables = extract(path)
    [counts] = tables["decoding"].to_pylist()
    assert (tables["messages"].num_rows, counts["undecoded_bytes"]) == (2, 108)
    assert f"no frame header at byte {len(good)}" in counts["stopped"]


def test_a_connection_whose_beginning_is_missing_is_not_guessed_at(path: Path) -> None:
    write_pcap(path, at_intervals([segment(77, encode(batches(2)))]))
    tables = extract(path)
    [counts] = tables["decoding"].to_pylist()
    assert (tables["messages"].num_rows, counts["undecoded_bytes"]) == (0, len(encode(batches(2))))
    assert "beginning of the connection" in counts["stopped"]


def test_an_unfinished_message_is_counted(path: Path) -> None:
    whole = encode(batches(2))
    capture(path, cut(whole[:-20], [1000]))
    [counts] = extract(path)["decoding"].to_pylist()
    assert (counts["messages"], counts["unfinished_bytes"]) == (1, len(whole) // 2 - 20)


def test_each_connection_on_the_same_ports_is_decoded_by_itself(path: Path) -> None:
    frames = []
    for isn in (1000, 500_000):
        frames += [segment(isn, flags=SYN), segment(isn + 1, encode(batches(2))[:-5])]
    write_pcap(path, at_intervals(frames))
    tables = extract(path)
    found = [(row["connection"], row["stream_offset"]) for row in tables["messages"].to_pylist()]
    assert found == [(0, 0), (1, 0)]


def test_directions_are_named_from_the_host_outwards(path: Path) -> None:
    there, back = ("10.0.0.1", 40000), ("10.0.0.2", 7000)
    frames = [
        segment(1, flags=SYN, src=there, dst=back),
        segment(2, encode([Subscribe(1, 2)]), src=there, dst=back),
    ]
    frames += [
        segment(8, flags=SYN, src=back, dst=there),
        segment(9, encode(batches(1)), src=back, dst=there),
    ]
    frames += [segment(9, b"other traffic", src=("10.0.0.2", 22), dst=there)]
    write_pcap(path, at_intervals(frames))
    rows = extract(path)["messages"].to_pylist()
    assert {(row["type"], row["direction"], row["src"], row["sport"]) for row in rows} == {
        ("SUBSCRIBE", "in", "10.0.0.1", 40000),
        ("EVENTS", "out", "10.0.0.2", 7000),
    }
    assert [row["cnt"] for row in rows if row["type"] == "SUBSCRIBE"] == [2]


@given(
    st.lists(st.tuples(st.integers(0, 300), st.binary(min_size=1, max_size=80)), max_size=20),
    st.integers(54, 200),
)
def test_hostile_streams_are_counted_to_the_last_byte(
    path: Path, parts: list[tuple[int, bytes]], snap: int
) -> None:
    """Whatever stands in the segments: no crash, and every byte that came is in exactly one count."""
    head = encode(batches(1))
    records = capture(path, [(0, head), *((len(head) + offset, part) for offset, part in parts)])
    write_pcap(path, [records[0], records[1], *(snapped(record, snap) for record in records[2:])])
    tables = extract(path)
    [counts] = tables["decoding"].to_pylist()
    decoded = sum(row["length"] for row in tables["messages"].to_pylist())
    assert tables["messages"].num_rows == counts["messages"] >= 1
    assert decoded + counts["unfinished_bytes"] + counts["undecoded_bytes"] <= counts["bytes"]
    if not counts["malformed"]:
        assert decoded + counts["unfinished_bytes"] + counts["undecoded_bytes"] == counts["bytes"]
