"""Decoded messages equal those of the nodes' own reader on the same bytes; others are counted."""

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
    """Cut a stream into segments of these sizes, repeated."""
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


@pytest.mark.parametrize("header", [(3, 1, 5, 0), (1 << 24, 1, 5, 0), (40, 2, 5, 0), (40, 1, 5, 7)])
def test_decoding_stops_at_an_invalid_header(path: Path, header: tuple[int, ...]) -> None:
    whole = encode([Events(EventKind.DATA, 0, 3, 1, 10, 10, 0, 0, bytes(100))])
    capture(path, cut(whole + HEADER.pack(*header) + bytes(100), [60]))
    tables = extract(path)
    [counts] = tables["decoding"].to_pylist()
    assert (tables["messages"].num_rows, counts["undecoded_bytes"]) == (1, 108)
    assert counts["stopped"] == f"no frame header at byte {len(whole)}"
