"""Messages in captures are those that the nodes' own reader takes from the same bytes, or are counted."""

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.capture.pcap import frames as frames_module
from analysis.capture.pcap.streams import HostCapture
from node.core.framing import HEADER, frames_in
from node.protocols.sprinkler.messages import (
    CODEC,
    Configuration,
    EventKind,
    Events,
    SparseEvents,
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
from tests.analysis.messages.examples import encoded, message

messages = st.lists(message(), min_size=1, max_size=12)
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
    return b"".join(map(encoded, sent))


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


def batches(count: int, size: int = 100) -> list[Events]:
    return [
        Events(EventKind.DATA, 0, 3, 1 + number * 10, 10, size // 10, 0, 0, bytes(size))
        for number in range(count)
    ]


WHOLE = encode(batches(5))
SIZE = len(WHOLE) // 5
ODD = HEADER.pack(4 + 3, 1, CODEC.by_name["SUBSCRIBE"].type, 0) + b"abc"
UNKNOWN = HEADER.pack(4 + 2, 1, 200, 0) + b"xy"


def without(first: int, end: int) -> list[tuple[int, bytes]]:
    """Return the segments of five messages without those of some bytes."""
    return [(0, WHOLE[:first]), (end, WHOLE[end:])]


@pytest.mark.parametrize(
    ("parts", "seqs", "counted", "stopped"),
    [
        pytest.param(
            without(SIZE + 50, 2 * SIZE), [1, 21, 31, 41],
            {"missing_bytes": SIZE - 50, "unfinished_bytes": 50}, None, id="a gap inside a message costs it",
        ),
        pytest.param(
            without(SIZE - 10, SIZE + 10), [],
            {"missing_bytes": 20, "unfinished_bytes": SIZE - 10, "undecoded_bytes": 4 * SIZE - 10},
            f"bytes {SIZE} to {SIZE + 10} are not in the capture", id="a gap over a header stops decoding",
        ),
        pytest.param(
            cut(ODD + encode(batches(1)) + UNKNOWN + encode(batches(2)), [33]), [1, 1, 11],
            {"malformed": 2}, None, id="a body that does not fit is malformed",
        ),
        *(
            pytest.param(
                cut(WHOLE + HEADER.pack(*header) + bytes(100), [60]), [1, 11, 21, 31, 41],
                {"undecoded_bytes": 108}, f"no frame header at byte {len(WHOLE)}",
                id=f"no header is {header}",
            )
            for header in ((3, 1, 5, 0), (1 << 24, 1, 5, 0), (40, 2, 5, 0), (40, 1, 5, 7))
        ),
        pytest.param(
            cut(WHOLE[:-20], [1000]), [1, 11, 21, 31], {"unfinished_bytes": SIZE - 20}, None,
            id="the last message is unfinished",
        ),
    ],
)  # fmt: skip
def test_what_cannot_be_decoded_is_counted(
    path: Path,
    parts: list[tuple[int, bytes]],
    seqs: list[int],
    counted: dict[str, int],
    stopped: str | None,
) -> None:
    capture(path, parts)
    tables = extract(path)
    assert [row["first_seq"] for row in tables["messages"].to_pylist()] == seqs
    [counts] = tables["decoding"].to_pylist()
    nothing = dict.fromkeys(("malformed", "missing_bytes", "unfinished_bytes", "undecoded_bytes"), 0)
    assert {name: counts[name] for name in nothing} == nothing | counted
    assert (counts["messages"], counts["stopped"]) == (len(seqs), stopped)


def test_behind_a_gap_no_message_is_complete(path: Path) -> None:
    """Nothing shows that the missing bytes came."""
    capture(path, without(SIZE + 50, 2 * SIZE))
    tables = extract(path)
    arrived = [row["t_complete_ns"] is not None for row in tables["messages"].to_pylist()]
    assert arrived == [True, False, False, False]
    [gap] = tables["gaps"].to_pylist()
    assert (gap["stream_offset"], gap["length"], gap["cause"]) == (SIZE + 50, SIZE - 50, "missing")


def test_a_connection_whose_beginning_is_missing_is_not_guessed_at(path: Path) -> None:
    write_pcap(path, at_intervals([segment(77, WHOLE)]))
    tables = extract(path)
    [counts] = tables["decoding"].to_pylist()
    assert (tables["messages"].num_rows, counts["undecoded_bytes"]) == (0, len(WHOLE))
    assert "beginning of the connection" in counts["stopped"]


def test_a_snapped_capture_still_gives_messages_whose_heads_it_has(path: Path) -> None:
    whole = encode(batches(5, 1000))
    records = capture(path, cut(whole, [len(whole) // 5]))
    write_pcap(path, [snapped(record, 128) for record in records])
    tables = extract(path)
    assert [row["first_seq"] for row in tables["messages"].to_pylist()] == [1, 11, 21, 31, 41]
    assert all(row["t_complete_ns"] for row in tables["messages"].to_pylist())
    assert {gap["cause"] for gap in tables["gaps"].to_pylist()} == {"snapped"}
