"""Events of programs are found in captures by their markers, for any framing and segmentation."""

import base64
import random
import struct
from collections.abc import Iterable, Sequence
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analysis.capture.markers import MarkerSearch
from analysis.capture.pcap import frames as frames_module
from node.core.marker import MAGIC, marked
from tests.analysis.capture.pcap.captures import ACK, START_NS, SYN, Record, at_intervals, segment
from tests.analysis.capture.pcap.reading import search, seqs

SIZE = 40
HOST, PEER = "10.0.0.2", "10.0.0.1"
Event = tuple[int, int]
events = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 2**40)), max_size=12)
around = st.binary(max_size=30) | st.sampled_from([MAGIC, MAGIC[:3], MAGIC + bytes(24), b""])
EVERY_EVENT = MarkerSearch(SIZE)
WINDOWS = st.sampled_from([16, 64, 1 << 20])


def found_in(folder, frames: Iterable[bytes], markers: MarkerSearch = EVERY_EVENT):
    return search(folder, at_intervals(frames), markers)


def found_in_windows(folder, pieces: Sequence[tuple[int, bytes]], window: int):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frames_module, "WINDOW_BYTES", window)
        return found_in(folder, connection(pieces))


def events_in(tables) -> list[Event]:
    rows = tables["messages"].select(["stream", "first_seq"]).to_pylist()
    return [(row["stream"], row["first_seq"]) for row in rows]


def payload(event: Event, size: int = SIZE) -> bytes:
    return marked(*event, size, START_NS)


def connection(pieces: Sequence[tuple[int, bytes]], port: int = 40000, isn: int = 2**32 - 50) -> list[bytes]:
    ends = {"src": (PEER, port), "dst": (HOST, 1883)}
    frames = [segment(isn, flags=SYN, **ends)]
    return frames + [segment(isn + 1 + offset, part, flags=ACK, **ends) for offset, part in pieces]


def cut(stream: bytes, cuts: Iterable[int]) -> list[tuple[int, bytes]]:
    return [(begin, stream[begin:end]) for begin, end in pairwise(sorted({0, len(stream), *cuts}))]


def datagram(content: bytes, sport: int = 5000, dport: int = 6000) -> bytes:
    addresses = bytes([10, 0, 0, 1, 10, 0, 0, 2])
    length = 28 + len(content)
    ip = struct.pack(">BBHHHBBH", 0x45, 0, length, 0, 0, 64, 17, 0) + addresses
    udp = struct.pack(">HHHH", sport, dport, 8 + len(content), 0)
    return bytes(12) + b"\x08\x00" + ip + udp + content


@given(events, st.data())
@example([(0, 1)], None)
def test_events_are_found_in_any_segmentation(tmp_path_factory, sent, data):
    draw = data.draw if data else lambda _: []
    noise = draw(st.lists(around, min_size=len(sent), max_size=len(sent))) or [b""]
    stream, at = b"", []
    for event, before in zip(sent, noise, strict=False):
        at.append(len(stream) + len(before))
        stream += before + payload(event)
    pieces = cut(stream, draw(st.lists(st.integers(0, len(stream)), max_size=30)))
    disorder = random.Random(1)
    pieces += disorder.sample(pieces, len(pieces) // 3)  # sent again
    if draw(st.booleans()):
        disorder.shuffle(pieces)
    found = found_in_windows(tmp_path_factory.mktemp("markers"), pieces, draw(WINDOWS) or 64)
    assert events_in(found) == sent
    assert found["messages"].column("stream_offset").to_pylist() == at
    assert set(found["messages"].column("length").to_pylist()) <= {SIZE}
    [counts] = found["decoding"].to_pylist()
    assert (counts["messages"], counts["stopped"]) == (len(sent), None)


def chunked(stream: bytes, cuts: Iterable[int]) -> bytes:
    """RFC 9112, 7.1."""
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(each), each) for _, each in cut(stream, cuts))
    return b"HTTP/1.1 200 OK\r\n\r\n" + chunks


@given(events.filter(len), st.data())
def test_http_chunk_lines_within_events_hide_none(tmp_path_factory, sent, data):
    stream = b"".join(b"\x12d" + payload(event) for event in sent)
    places = st.lists(st.integers(0, len(stream)), max_size=30)
    stream = chunked(stream, data.draw(places))
    pieces = cut(stream, data.draw(places))
    found = found_in_windows(tmp_path_factory.mktemp("chunks"), pieces, data.draw(WINDOWS))
    assert events_in(found) == sent
    assert found["decoding"].column("malformed").to_pylist() == [0]
    for row in found["messages"].to_pylist():
        assert stream[row["stream_offset"] :].startswith(MAGIC[:1])
        assert stream[: row["stream_offset"] + row["length"]].endswith(b"\0")


@pytest.mark.parametrize("behind", [b"", b"\r\n", b"-" * 9, b"\r\n5\r\n"])
def test_an_event_containing_an_apparent_chunk_line_is_found(tmp_path, behind):
    """Every possible cut of the stream is tried, each in its own connection."""
    own = int.from_bytes(b"\r\nab\r\n")
    stream = payload((7, own)) + payload((7, own)) + behind
    cuts = range(1, len(stream))
    frames = [frame for at in cuts for frame in connection(cut(stream, [at]), port=40_000 + at)]
    found = found_in(tmp_path, frames)
    assert events_in(found) == [(7, own)] * 2 * len(cuts)
    assert found["decoding"].column("messages").to_pylist() == [2] * len(cuts)


@pytest.mark.parametrize("size", [28, 40, 41])
def test_events_are_found_as_text(tmp_path, size):
    ways = (base64.b64encode, lambda raw: raw.hex().encode(), lambda raw: raw.hex().upper().encode())
    for write in ways:
        sent = [(2, seq) for seq in range(1, 30)]
        stream = b"".join(b'{"value": "' + write(payload(event, size)) + b'"}\n' for event in sent)
        found = found_in(tmp_path, connection(cut(stream, [333])), MarkerSearch(size))
        assert events_in(found) == sent


def test_a_connection_whose_beginning_was_not_captured_shows_its_events(tmp_path):
    _, *frames = connection(cut(b"x" * 7 + payload((1, 1)) + payload((1, 2)), [16]))
    assert events_in(found_in(tmp_path, frames)) == [(1, 1), (1, 2)]


def test_the_search_continues_after_missing_bytes(tmp_path):
    """The end of event 2 and the beginning of event 3 are missing."""
    stream = b"".join(payload((0, seq)) for seq in range(1, 6))
    found = found_in(tmp_path, connection([(0, stream[:50]), (90, stream[90:])]))
    assert events_in(found) == [(0, 1), (0, 4), (0, 5)]
    [counts] = found["decoding"].to_pylist()
    assert (counts["unfinished_bytes"], counts["missing_bytes"]) == (10, 40)
    whole = found["messages"].column("t_complete_ns").to_pylist()
    assert [t_ns is not None for t_ns in whole] == [True, False, False]


def test_an_event_with_a_wrong_crc_is_counted_and_not_emitted(tmp_path):
    damaged = payload((0, 1))[:-1] + b"\1"
    found = found_in(tmp_path, connection([(0, damaged + payload((0, 2)))]))
    assert events_in(found) == [(0, 2)]
    assert found["decoding"].column("malformed").to_pylist() == [1]


@pytest.mark.parametrize(
    ("markers", "kind"),
    [
        pytest.param(MarkerSearch(SIZE, {PEER: frozenset({0})}), "NEW_EVENT", id="of its publisher"),
        pytest.param(MarkerSearch(SIZE, {HOST: frozenset({0})}), "PASSED_EVENT", id="of another host"),
        pytest.param(MarkerSearch(SIZE, {PEER: frozenset({1})}), "PASSED_EVENT", id="of another stream"),
        pytest.param(
            MarkerSearch(SIZE, {PEER: frozenset({0})}, frozenset({HOST})),
            "PASSED_EVENT",
            id="to a subscriber",
        ),
    ],
)
def test_publishers_and_forwarders_are_distinguished(tmp_path, markers, kind):
    frames = [*connection([(0, payload((0, 1)))]), *connection([(0, payload((0, 2)))], port=40001)]
    found = found_in(tmp_path, frames, markers)["messages"]
    assert found.column("type").to_pylist() == [kind] * 2
    assert found.column("sport").to_pylist() == [40000, 40001]
    assert found.column("direction").to_pylist() == ["in", "in"]


def test_each_transmission_of_a_datagram_shows_its_events(tmp_path):
    batch = b"\x07header" + payload((0, 2)) + b"--" + payload((1, 1))
    sent = [payload((0, 1)), batch, payload((0, 4)), payload((0, 3)), payload((0, 1)), b"nothing", MAGIC]
    records = at_intervals(datagram(content) for content in sent)
    found = search(tmp_path, records, EVERY_EVENT)
    columns = ["connection", "stream", "first_seq", "stream_offset", "t_first_ns"]
    rows = [tuple(row.values()) for row in found["messages"].select(columns).to_pylist()]
    at = [record.t_ns for record in records]
    assert rows == [
        (0, 0, 1, 1, at[0]),
        (0, 0, 2, 2, at[1]),
        (0, 0, 3, 3, at[3]),
        (0, 0, 4, 4, at[2]),
        (1, 0, 1, 1, at[4]),
        (256, 1, 1, 1, at[1]),
    ]
    [counts] = found["decoding"].to_pylist()
    assert (counts["messages"], counts["segments"], counts["unfinished_bytes"]) == (6, 6, 4)


def test_datagrams_wait_as_long_as_segments(tmp_path):
    records = [
        Record(START_NS + number * 6_000_000_000, datagram(payload((0, seq))))
        for number, seq in enumerate((5, 6, 4))
    ]
    assert sorted(seqs(search(tmp_path, records, EVERY_EVENT))) == [4, 5, 6]
