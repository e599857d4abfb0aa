"""Frames: whatever the chunks, the same frames come out; garbage is an error and never a crash."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.core.errors import LocalProtocolError, RemoteProtocolError
from node.core.framing import HEADER, HEADER_BYTES, VERSION, FrameReader, encode_header

bodies = st.lists(st.tuples(st.integers(0, 255), st.binary(max_size=300)), max_size=12)


def frame(message_type: int, body: bytes) -> bytes:
    return encode_header(message_type, len(body)) + body


def read(reader: FrameReader, chunks: list[bytes]) -> list[tuple[int, bytes, bytes]]:
    return [(f.type, bytes(f.body), bytes(f.whole)) for chunk in chunks for f in reader.feed(chunk)]


def cut(data: bytes, points: list[int]) -> list[bytes]:
    ends = sorted({min(point, len(data)) for point in points} | {len(data)})
    return [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]


@given(bodies, st.lists(st.integers(0, 4000), max_size=30))
def test_frames_come_out_whole_however_the_bytes_are_cut(sent, points):
    data = b"".join(frame(*message) for message in sent)
    assert read(FrameReader(), cut(data, points)) == [(kind, body, frame(kind, body)) for kind, body in sent]


@given(bodies)
def test_frames_come_out_whole_byte_by_byte(sent):
    data = b"".join(frame(*message) for message in sent)
    got = read(FrameReader(), [bytes([byte]) for byte in data])
    assert [(kind, body) for kind, body, _ in got] == sent


@given(st.lists(st.binary(max_size=100), max_size=10))
def test_garbage_is_a_protocol_error_or_waits_for_more_within_the_limit(chunks):
    reader = FrameReader(limit_bytes=256)
    try:
        for chunk in chunks:
            for _ in reader.feed(chunk):
                pass
            assert reader.held_bytes <= 256
    except RemoteProtocolError:
        return


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        (HEADER.pack(4, VERSION + 1, 1, 0), "version"),
        (HEADER.pack(4, VERSION, 1, 7), "flags"),
        (HEADER.pack(3, VERSION, 1, 0), "length 3"),
        (HEADER.pack(1 << 30, VERSION, 1, 0), "length 1073741824"),
    ],
)
def test_a_bad_header_is_named_before_its_body_comes(header, problem):
    with pytest.raises(RemoteProtocolError, match=problem):
        list(FrameReader().feed(header))


def test_frames_before_a_bad_one_still_come_out():
    frames = FrameReader().feed(frame(1, b"good") + HEADER.pack(0, 9, 9, 9))
    assert bytes(next(frames).body) == b"good"
    with pytest.raises(RemoteProtocolError):
        next(frames)


def test_a_frame_of_the_limit_passes_and_one_byte_more_is_refused_on_both_sides():
    limit_bytes = 64
    body = bytes(limit_bytes - HEADER_BYTES)
    data = encode_header(1, len(body), limit_bytes) + body
    assert [f.type for f in FrameReader(limit_bytes).feed(data)] == [1]
    with pytest.raises(LocalProtocolError, match="65 bytes"):
        encode_header(1, len(body) + 1, limit_bytes)
    with pytest.raises(RemoteProtocolError):
        list(FrameReader(limit_bytes - 1).feed(data))


def test_a_frame_within_a_chunk_is_a_view_of_it():
    chunk = frame(1, b"payload")
    (found,) = FrameReader().feed(chunk)
    assert found.body.obj is chunk
