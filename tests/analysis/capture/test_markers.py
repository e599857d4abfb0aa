"""Events of programs are found in captures by their markers, however a broker and TCP cut them up."""

import base64
import random
import struct
from collections.abc import Iterable, Sequence
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from analysis.capture.markers import MarkerSearch
from analysis.capture.pcap import frames as frames_module
from analysis.capture.pcap.streams import HostCapture
from node.core.marker import MAGIC, marked
from tests.analysis.capture.pcap import reading
from tests.analysis.capture.pcap.captures import ACK, START_NS, SYN, Record, at_intervals, segment, write_pcap

SIZE = 40
HOST, PEER = "10.0.0.2", "10.0.0.1"
Event = tuple[int, int]
events = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 2**40)), max_size=12)
around = st.binary(max_size=30) | st.sampled_from([MAGIC, MAGIC[:3], MAGIC + bytes(24), b""])


def extract(path: Path, markers: MarkerSearch) -> dict[str, pa.Table]:
    return reading.extract(HostCapture(str(path), "r0-broker-0", HOST, None), markers)


def events_in(tables: dict[str, pa.Table]) -> list[Event]:
    rows = tables["messages"].select(["stream", "first_seq"]).to_pylist()
    return [(row["stream"], row["first_seq"]) for row in rows]


def payload(event: Event, size: int = SIZE) -> bytes:
    return marked(*event, size, START_NS)


def framed(sent: Iterable[Event], noise: Iterable[bytes]) -> tuple[bytes, list[int]]:
    """Return a stream of these events with noise around each, and where each begins."""
    stream, at = b"", []
    for event, before in zip(sent, noise, strict=True):
        at.append(len(stream) + len(before))
        stream += before + payload(event)
    return stream, at


def connection(pieces: Sequence[tuple[int, bytes]], port: int = 40000, isn: int = 2**32 - 50) -> list[bytes]:
    ends = {"src": (PEER, port), "dst": (HOST, 1883)}
    frames = [segment(isn, flags=SYN, **ends)]
    return frames + [segment(isn + 1 + offset, part, flags=ACK, **ends) for offset, part in pieces]


def datagram(content: bytes, sport: int = 5000, dport: int = 6000) -> bytes:
    addresses = bytes([10, 0, 0, 1, 10, 0, 0, 2])
    length = 28 + len(content)
    ip = struct.pack(">BBHHHBBH", 0x45, 0, length, 0, 0, 64, 17, 0) + addresses
    udp = struct.pack(">HHHH", sport, dport, 8 + len(content), 0)
    return bytes(12) + b"\x08\x00" + ip + udp + content


@given(events, st.data())
@example([(0, 1)], None)
def test_events_are_found_however_their_bytes_come(tmp_path_factory, sent, data):
    path = tmp_path_factory.mktemp("markers") / "r0-broker-0.pcap"
    draw = data.draw if data else lambda _: [b""]
    stream, at = framed(sent, draw(st.lists(around, min_size=len(sent), max_size=len(sent))))
    cuts = sorted(
        {0, len(stream), *draw(st.lists(st.integers(0, len(stream)), max_size=30))} if data else [0, 40]
    )
    pieces = [(begin, stream[begin:end]) for begin, end in pairwise(cuts)]
    disorder = random.Random(1)
    again = disorder.sample(pieces, len(pieces) // 3)  # sent again
    pieces = [*pieces, *again]
    if data and draw(st.booleans()):
        disorder.shuffle(pieces)
    write_pcap(path, at_intervals(connection(pieces)))
    found = extract(path, MarkerSearch(SIZE))
    assert events_in(found) == sent
    assert found["messages"].column("stream_offset").to_pylist() == at
    assert set(found["messages"].column("length").to_pylist()) <= {SIZE}
    [counts] = found["decoding"].to_pylist()
    assert (counts["messages"], counts["stopped"]) == (len(sent), None)


def chunked(stream: bytes, cuts: Iterable[int]) -> bytes:
    """RFC 9112, 7.1."""
    bounds = sorted({0, len(stream), *cuts})
    chunks = [stream[begin:end] for begin, end in pairwise(bounds)]
    return b"HTTP/1.1 200 OK\r\n\r\n" + b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in chunks)


@given(st.data())
def test_chunks_of_http_in_the_midst_of_events_hide_none(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("chunks") / "r0-broker-0.pcap"
    sent = data.draw(st.lists(st.tuples(st.integers(0, 3), st.integers(1, 2**40)), min_size=1, max_size=12))
    stream, _ = framed(sent, [b"\x12d"] * len(sent))
    places = st.lists(st.integers(0, len(stream)), max_size=30)
    stream = chunked(stream, data.draw(places))
    cuts = sorted({0, len(stream), *data.draw(places)})
    pieces = [(begin, stream[begin:end]) for begin, end in pairwise(cuts)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frames_module, "WINDOW_BYTES", data.draw(st.sampled_from([16, 64, 4096])))
        found = extract(write_pcap(path, at_intervals(connection(pieces))), MarkerSearch(SIZE))
    assert events_in(found) == sent
    assert found["decoding"].column("malformed").to_pylist() == [0]
    for row in found["messages"].to_pylist():
        assert stream[row["stream_offset"] :].startswith(MAGIC[:1])
        assert stream[: row["stream_offset"] + row["length"]].endswith(b"\0")


@pytest.mark.parametrize("behind", [b"", b"\r\n", b"-" * 9, b"\r\n5\r\n"])
def test_an_event_that_has_what_looks_like_a_line_of_a_chunk_is_found(tmp_path, behind):
    own = int.from_bytes(b"\r\nab\r\n")
    stream = payload((7, own)) + payload((7, own)) + behind
    for cut in range(1, len(stream)):
        pieces = [(0, stream[:cut]), (cut, stream[cut:])]
        path = write_pcap(tmp_path / f"own{cut}.pcap", at_intervals(connection(pieces)))
        assert events_in(extract(path, MarkerSearch(SIZE))) == [(7, own)] * 2


@pytest.mark.parametrize("form", ["base64", "hexadecimal", "HEXADECIMAL"])
@pytest.mark.parametrize("size", [28, 40, 41])
def test_events_are_found_as_text(tmp_path, form, size):
    ways = {"base64": base64.b64encode, "hexadecimal": lambda content: content.hex().encode()}
    write = ways.get(form, lambda content: content.hex().upper().encode())
    sent = [(2, seq) for seq in range(1, 30)]
    stream = b"".join(b'{"value": "' + write(payload(event, size)) + b'"}\n' for event in sent)
    path = write_pcap(
        tmp_path / "text.pcap", at_intervals(connection([(0, stream[:333]), (333, stream[333:])]))
    )
    assert events_in(extract(path, MarkerSearch(size))) == sent


def test_a_connection_whose_beginning_was_not_captured_shows_its_events(tmp_path):
    first, second = payload((1, 1)), payload((1, 2))
    _, *frames = connection([(0, b"x" * 7 + first[:9]), (16, first[9:] + second)])
    path = write_pcap(tmp_path / "late.pcap", at_intervals(frames))
    assert events_in(extract(path, MarkerSearch(SIZE))) == [(1, 1), (1, 2)]


def test_behind_bytes_that_were_not_captured_the_search_goes_on(tmp_path):
    stream = b"".join(payload((0, seq)) for seq in range(1, 6))
    pieces = [
        (0, stream[:50]),
        (90, stream[90:]),
    ]  # the end of event 2 and the beginning of event 3 are missing
    found = extract(write_pcap(tmp_path / "hole.pcap", at_intervals(connection(pieces))), MarkerSearch(SIZE))
    assert events_in(found) == [(0, 1), (0, 4), (0, 5)]
    [counts] = found["decoding"].to_pylist()
    assert (counts["unfinished_bytes"], counts["missing_bytes"]) == (10, 40)
    whole = found["messages"].column("t_complete_ns").to_pylist()
    assert [t_ns is not None for t_ns in whole] == [True, False, False]


def test_an_event_with_wrong_bytes_is_counted_and_not_given_out(tmp_path):
    damaged = bytearray(payload((0, 1)))
    damaged[-1] ^= 1
    pieces = [(0, bytes(damaged) + payload((0, 2)))]
    found = extract(write_pcap(tmp_path / "bad.pcap", at_intervals(connection(pieces))), MarkerSearch(SIZE))
    assert events_in(found) == [(0, 2)]
    assert found["decoding"].column("malformed").to_pylist() == [1]


def test_windows_of_a_long_stream_lose_nothing_at_their_borders(tmp_path, monkeypatch):
    monkeypatch.setattr(frames_module, "WINDOW_BYTES", 64)
    sent = [(0, seq) for seq in range(1, 300)]
    stream, at = framed(sent, [b"." * (seq % 7) for _, seq in sent])
    pieces = [(begin, stream[begin : begin + 23]) for begin in range(0, len(stream), 23)]
    found = extract(write_pcap(tmp_path / "long.pcap", at_intervals(connection(pieces))), MarkerSearch(SIZE))
    assert (events_in(found), found["messages"].column("stream_offset").to_pylist()) == (sent, at)


def test_publishers_and_forwarders_are_distinguished(tmp_path):
    frames = [*connection([(0, payload((0, 1)))]), *connection([(0, payload((0, 2)))], port=40001)]
    path = write_pcap(tmp_path / "two.pcap", at_intervals(frames))
    cases = (
        (MarkerSearch(SIZE, {PEER: frozenset({0})}), "NEW_EVENT"),
        (MarkerSearch(SIZE, {HOST: frozenset({0})}), "PASSED_EVENT"),
        (MarkerSearch(SIZE, {PEER: frozenset({1})}), "PASSED_EVENT"),  # it passes on what another published
        (MarkerSearch(SIZE, {PEER: frozenset({0})}, frozenset({HOST})), "PASSED_EVENT"),  # to a subscriber
    )
    for markers, kind in cases:
        found = extract(path, markers)["messages"]
        assert found.column("type").to_pylist() == [kind] * 2
        assert found.column("sport").to_pylist() == [40000, 40001]
        assert found.column("direction").to_pylist() == ["in", "in"]


def test_datagrams_show_their_events_each_time_that_they_were_sent(tmp_path):
    batch = b"\x07header" + payload((0, 2)) + b"--" + payload((1, 1))
    sent = [payload((0, 1)), batch, payload((0, 4)), payload((0, 3)), payload((0, 1)), b"nothing", MAGIC]
    records = at_intervals(datagram(content) for content in sent)
    found = extract(write_pcap(tmp_path / "udp.pcap", records), MarkerSearch(SIZE))
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


def test_datagrams_wait_for_others_no_longer_than_segments(tmp_path):
    late_ns = 6_000_000_000
    records = [
        Record(START_NS, datagram(payload((0, 5)))),
        Record(START_NS + late_ns, datagram(payload((0, 6)))),
        Record(START_NS + 2 * late_ns, datagram(payload((0, 4)))),
    ]
    found = extract(write_pcap(tmp_path / "udp.pcap", records), MarkerSearch(SIZE))
    assert sorted(events_in(found)) == [(0, 4), (0, 5), (0, 6)]
