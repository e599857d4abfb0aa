"""Decoding a capture in any parts equals decoding the whole capture."""

import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa
from hypothesis import example, given
from hypothesis import strategies as st

from analysis.capture.pcap.streams import HostCapture, extract_messages
from analysis.live.decoder import EventBatch, LiveDecoder
from analysis.timelines.run_metadata import Host
from experiments.declared import Declared, Trait
from experiments.records import capture_parts
from node.protocols.sprinkler.messages import (
    CODEC,
    Advertisement,
    Counter,
    Events,
    Publish,
    Published,
    SparseEvents,
)
from node.protocols.sprinkler.reading import READING
from node.systems import default_declaration
from tests.analysis.capture.pcap.captures import (
    START_NS,
    SYN,
    Record,
    at_intervals,
    segment,
    snapped,
    write_pcap,
)
from tests.analysis.live.parts import rows_in_turns, write_parts

PORT = 7000
PROXY, CLIENT, NEIGHBOUR = ("10.0.0.1", PORT), ("10.0.0.2", 40_000), ("10.0.0.3", PORT)
NAME = "r0-client-0-eth0.pcap"


def client() -> Host:
    return Host("r0-client-0", "r0", "client", CLIENT[0], (1000, 1000))


def batch(first_seq: int, count: int, event_bytes: int = 10) -> bytes:
    return encoded(Events(0, 0, 2, first_seq, count, event_bytes, 0, 0, bytes(count * event_bytes)))


def encoded(message: Any) -> bytes:
    return b"".join(CODEC.encode(message))


def streamed(content: bytes, sizes: list[int], isn: int = 1000) -> list[bytes]:
    """Return a connection from proxy to client in segments of these repeating sizes."""
    frames, at = [segment(isn, src=PROXY, dst=CLIENT, flags=SYN)], 0
    while at < len(content):
        size = sizes[len(frames) % len(sizes)]
        frames.append(segment(isn + 1 + at, content[at : at + size], src=PROXY, dst=CLIENT))
        at += size
    return frames


def decoder_of(captures: Path, host: Host | None = None, declared: Declared | None = None) -> LiveDecoder:
    hosts = {Path(NAME).stem: host or client()}
    return LiveDecoder(captures, hosts, CODEC, declared or default_declaration(), READING)


def read_live(captures: Path, decoder: LiveDecoder) -> Iterator[EventBatch]:
    """Decode part by part, as parts are closed."""
    for rows in rows_in_turns(captures, PORT):
        yield from decoder.feed(rows)


def in_parts(records: list[Record], cuts: set[int], host: Host | None = None) -> list[tuple[int, ...]]:
    with TemporaryDirectory() as folder:
        write_parts(Path(folder) / NAME, records, cuts)
        found = read_live(Path(folder), decoder_of(Path(folder), host))
        return [(b.stream, b.first_seq, b.count, b.events, b.t_ns) for b in found]


def at_once(records: list[Record]) -> list[tuple[int, ...]]:
    """Return the result of the analysis after the run for the complete capture."""
    tables: list[pa.RecordBatch] = []
    with TemporaryDirectory() as folder:
        path = write_pcap(Path(folder) / NAME, records)
        capture = HostCapture(str(path), "r0-client-0", CLIENT[0], PORT)
        extract_messages(
            capture, CODEC, lambda name, rows: tables.append(rows) if name == "messages" else None
        )
    rows = [row for table in tables for row in table.to_pylist()]
    return sorted(
        (row["stream"], row["first_seq"], row["covered"] or row["count"], row["count"], row["t_complete_ns"])
        for row in rows
        if row["type"] in {"EVENTS", "SPARSE_EVENTS"} and row["t_complete_ns"] and row["direction"] == "in"
    )


SPARSE = encoded(SparseEvents(0, 0, 2, 11, 2, 1, 0, 0, (4).to_bytes(4) + (3).to_bytes(4) + bytes(2)))
COUNTERS = encoded(Advertisement((Counter(0, 9),)))


@st.composite
def troubled(draw: st.DrawFn) -> list[Record]:
    """Draw a capture of a connection with losses, repetitions and disorder, and of the next on its ports."""
    content = b"".join(draw(st.permutations([batch(1, 5), batch(6, 40), COUNTERS, SPARSE])))
    frames = streamed(content, draw(st.lists(st.integers(1, 400), min_size=1, max_size=4)))
    others = [
        frames[draw(st.integers(1, len(frames) - 1))],
        segment(1000, b"out of the way", src=CLIENT, dst=NEIGHBOUR),
    ]
    for frame in draw(st.lists(st.sampled_from(others), max_size=3)):
        frames.insert(draw(st.integers(1, len(frames))), frame)
    if draw(st.booleans()):
        frames.insert(
            draw(st.integers(1, len(frames) - 1)), frames.pop(draw(st.integers(1, len(frames) - 1)))
        )
    if draw(st.booleans()):
        frames.pop(draw(st.integers(0, len(frames) - 1)))
    records = at_intervals([*frames, *streamed(batch(60, 2), [50], isn=77)])
    return [snapped(record, draw(st.sampled_from([200, 500]))) for record in records]


@given(records=troubled(), cuts=st.sets(st.integers(0, 40), max_size=6))
@example(records=at_intervals(streamed(batch(1, 5) * 3, [7])), cuts={0, 1, 2, 3})
def test_decoding_in_parts_gives_the_same_batches(records: list[Record], cuts: set[int]) -> None:
    cuts = {cut for cut in cuts if cut <= len(records)}
    found = in_parts(records, cuts)
    assert sorted(found) == at_once(records)
    assert found


def test_an_unreadable_direction_is_reported_once() -> None:
    with TemporaryDirectory() as folder:
        write_parts(Path(folder) / NAME, at_intervals(streamed(b"GET / HTTP/1.1\r\n\r\n", [50])))
        decoder = decoder_of(Path(folder))
        list(read_live(Path(folder), decoder))
        assert list(decoder.newly_stopped()) == [("r0-client-0", "no frame header at byte 0")]
        assert list(decoder.newly_stopped()) == []


def test_publications_are_numbered_by_the_answer_and_timed_by_the_first_attempt() -> None:
    driver = Host("r0-driver-0", "r0", "driver", CLIENT[0], (1000, 2000))
    ask = encoded(Publish(0, 0, 2, 1, 3, 10, 0, bytes(30)))
    answer = encoded(Published(2, 1, 41, 3))
    out, back = {"src": CLIENT, "dst": PROXY}, {"src": PROXY, "dst": CLIENT}
    frames = [
        segment(99, flags=SYN, **out),
        segment(199, flags=SYN, **back),
        segment(100, ask, **out),
        segment(100 + len(ask), ask, **out),
        segment(200, answer, **back),
        segment(200 + len(answer), answer, **back),  # a second answer has no question
    ]
    first_try_ns = START_NS + 2 * 1_000_000
    way_ns = 3_000_000  # over the driver's LAN link, and one like it
    assert in_parts(at_intervals(frames), {3, 5}, driver) == [(2, 41, 3, 3, first_try_ns + way_ns)]


def test_parts_joined_before_decoding_are_decoded(tmp_path: Path) -> None:
    cuts = {2, 5}
    parts = write_parts(tmp_path / NAME, at_intervals(streamed(batch(1, 5) + batch(6, 2), [30])), cuts)
    decoder = decoder_of(tmp_path)
    [first, *rest] = rows_in_turns(tmp_path, PORT)
    assert list(decoder.feed(first)) == []
    capture_parts.join(parts)
    found = [each.first_seq for rows in rest for each in decoder.feed(rows)]
    assert found == [1, 6]


def test_removed_parts_give_no_batches(tmp_path: Path) -> None:
    parts = write_parts(tmp_path / NAME, at_intervals(streamed(batch(1, 5), [500])))
    [rows] = rows_in_turns(tmp_path, PORT)
    shutil.rmtree(parts)
    assert list(decoder_of(tmp_path).feed(rows)) == []


def test_an_empty_or_foreign_part_has_no_segments(tmp_path: Path) -> None:
    parts = write_parts(tmp_path / NAME, [])
    for name, content in (("1.pcap", b""), ("2.pcap", b"not a capture at all, but text")):
        (parts / name).write_bytes(content)
    assert {rows.num_rows for rows in rows_in_turns(tmp_path, PORT)} == {0}


def test_a_subscribing_server_gets_no_events_stored_for_others(tmp_path: Path) -> None:
    """Its usual message counts, and another one that carries events is for those that it serves."""
    sparse = encoded(SparseEvents(0, 0, 2, 11, 1, 10, 0, 0, (1).to_bytes(4) + bytes(10)))
    write_parts(tmp_path / NAME, at_intervals(streamed(batch(1, 5) + sparse, [400])), {1})
    found = {}
    for declared in (
        default_declaration(),
        replace(default_declaration(), roles={"client": (Trait.SUBSCRIBER, Trait.SERVER)}),
    ):
        read = read_live(tmp_path, decoder_of(tmp_path, declared=declared))
        found[declared.by_host] = [each.first_seq for each in read]
    assert found == {False: [1, 11], True: [1]}
