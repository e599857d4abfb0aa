"""Events in WebSocket connections are found behind masks; compressed messages are reported."""

import base64
import zlib
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.capture.markers import MarkerSearch
from analysis.capture.pcap import frames as frames_module
from analysis.capture.websocket import COMPRESSED
from node.core.marker import MAGIC, marked
from tests.analysis.capture.pcap.captures import ACK, START_NS, SYN, at_intervals, segment
from tests.analysis.capture.pcap.reading import search, seqs

SIZE = 40
TEXT, BINARY, PING = 1, 2, 9
ENDS: dict[str, Any] = {"src": ("10.0.0.1", 40000), "dst": ("10.0.0.2", 80)}
REQUEST = (
    b"GET /events HTTP/1.1\r\nHost: r0\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n"
)
ANSWER = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n\r\n"
)


def frame(
    content: bytes, key: bytes = b"", opcode: int = BINARY, *, last: bool = True, rsv1: int = 0
) -> bytes:
    """Return a frame (RFC 6455, section 5.2), masked with the key if there is one."""
    size = len(content)
    short, more = (
        (size, b"") if size < 126 else (126, size.to_bytes(2)) if size < 1 << 16 else (127, size.to_bytes(8))
    )
    head = bytes([last << 7 | rsv1 << 6 | opcode, bool(key) << 7 | short])
    body = bytes(byte ^ key[at % 4] for at, byte in enumerate(content)) if key else content
    return head + more + key + body


def event(seq: int) -> bytes:
    return marked(2, seq, SIZE, START_NS)


def searched(
    folder: Path, stream: bytes, cuts: Sequence[int] = (), lost: Sequence[int] = ()
) -> dict[str, pa.Table]:
    """Search a stream in segments that end at these offsets, without those of these numbers."""
    bounds = list(pairwise(sorted({0, len(stream), *cuts})))
    frames = [segment(99, flags=SYN, **ENDS)]
    frames += [
        segment(100 + first, stream[first:end], flags=ACK, **ENDS)
        for number, (first, end) in enumerate(bounds)
        if number not in lost
    ]
    return search(folder, at_intervals(frames), MarkerSearch(SIZE))


@given(st.data())
def test_events_are_found_in_any_framing_and_segmentation(tmp_path_factory, data):
    """Messages have some events in several frames with pings in between, in segments of any size."""
    chance = data.draw(st.randoms(use_true_random=False))
    opening, is_masked = data.draw(st.sampled_from([(b"", True), (REQUEST, True), (ANSWER, False)]))
    write = data.draw(st.sampled_from([bytes, base64.b64encode, lambda content: content.hex().encode()]))
    stream, seq = opening, 0

    def key() -> bytes:
        return chance.randbytes(4) if is_masked else b""

    for _ in range(data.draw(st.integers(0, 6))):
        events = range(seq, seq + chance.randrange(4))
        message = b"".join(b'{"' + write(event(each)) + b'"}' for each in events)
        seq = events.stop
        places = sorted(
            {0, len(message), *(chance.randrange(len(message) + 1) for _ in range(chance.randrange(4)))}
        )
        parts = [message[first:end] for first, end in pairwise(places)] or [b""]
        if not stream:
            parts = [message]  # without a handshake, the first message has to be in one frame
        for number, part in enumerate(parts):
            opcode = chance.choice([TEXT, BINARY]) if number == 0 else 0
            stream += frame(part, key(), opcode, last=number == len(parts) - 1)
            stream += frame(b"ping", key(), PING) * chance.randrange(2)
    cuts = [chance.randrange(len(stream) + 1) for _ in range(chance.randrange(30))]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(frames_module, "WINDOW_BYTES", data.draw(st.sampled_from([64, 256, 1 << 20])))
        found = searched(tmp_path_factory.mktemp("ws"), stream, cuts)
    assert seqs(found) == list(range(seq))
    assert all(row["stopped"] is None and row["malformed"] == 0 for row in found["decoding"].to_pylist())


def test_an_event_has_its_offset_in_the_stream(tmp_path: Path) -> None:
    messages = [b"x" * size + event(size) for size in (7, 125, 126, 70_000)]
    frames = [frame(b"hello", b"key1"), *(frame(each, b"key2") for each in messages), frame(b"bye", b"key3")]
    stream = b"".join(frames)
    found = searched(tmp_path, stream, range(0, len(stream), 1_000))["messages"]
    assert found.column("stream_offset").to_pylist() == [stream.index(each[-SIZE:]) for each in frames[1:-1]]
    assert set(found.column("length").to_pylist()) == {SIZE}


def compressed(*seqs: int) -> bytes:
    """RFC 7692, section 7.2.1."""
    deflate = zlib.compressobj(wbits=-15)
    content = deflate.compress(b"".join(map(event, seqs))) + deflate.flush(zlib.Z_SYNC_FLUSH)
    return content.removesuffix(b"\0\0\xff\xff")


@pytest.mark.parametrize(("opening", "key"), [(b"", b"mask"), (REQUEST, b"mask"), (ANSWER, b"")])
def test_compressed_messages_are_reported_and_others_are_read(
    tmp_path: Path, opening: bytes, key: bytes
) -> None:
    packed = compressed(2, 3)
    stream = opening + frame(event(1), key) + frame(packed[:9], key, last=False, rsv1=1)
    stream += frame(packed[9:], key, opcode=0) + frame(event(4), key) + frame(compressed(5), key, rsv1=1)
    found = searched(tmp_path, stream, range(0, len(stream), 10))
    assert seqs(found) == [1, 4]
    [counts] = found["decoding"].to_pylist()
    assert (counts["stopped"], counts["undecoded_bytes"]) == (COMPRESSED, len(packed) + len(compressed(5)))


def test_bytes_missing_in_a_payload_hide_only_its_events(tmp_path: Path) -> None:
    stream = b"".join(frame(event(seq), b"mask") for seq in range(1, 6))
    place = stream.index(frame(event(2), b"mask")) + 20
    assert seqs(searched(tmp_path, stream, [place, place + 10], lost=[1])) == [1, 3, 4, 5]


def test_after_a_missing_frame_header_the_rest_is_searched_unframed(tmp_path: Path) -> None:
    stream = ANSWER + b"".join(frame(event(seq)) for seq in range(1, 6))
    place = stream.index(event(2))
    found = searched(tmp_path, stream, [place - 2, place], lost=[1])
    assert seqs(found) == [1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "opening",
    [
        b"\x82\x85",  # as if a masked frame of five bytes began
        b"\x82\x85mask" + bytes(5) + b"\x83",
        b"\x82\xff" + bytes(12),
        b"\x82\x05no mask",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET ",
        b"GE",
        b"HTTP/1.1 200 OK\r\n\r\n",
        b"GET " + bytes(20_000),
    ],
)
def test_a_stream_that_only_resembles_websocket_is_searched_unframed(tmp_path: Path, opening: bytes) -> None:
    stream = opening + event(1) + event(2)
    found = searched(tmp_path, stream, range(0, len(stream), 7 if len(stream) < 500 else 1_000))
    assert seqs(found) == [1, 2]


def test_random_payloads_are_not_events(tmp_path: Path) -> None:
    noise = Random(1).randbytes(3_000) + MAGIC + bytes(100)
    found = searched(tmp_path, frame(noise, b"mask") + frame(event(1), b"mask"))
    assert seqs(found) == [1]
