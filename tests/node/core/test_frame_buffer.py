"""Frames leave a connection's receive buffer as they were sent, however the bytes are divided."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.core.errors import RemoteProtocolError
from node.core.framing import FIRST_BYTES, FrameBuffer, encode_header

LIMIT_BYTES = 1 << 16


def frame(body, message_type=1):
    return encode_header(message_type, len(body), LIMIT_BYTES) + body


def large_frame(body):
    return encode_header(1, len(body), 1 << 20) + body


def fill(buffer, data, pieces):
    """Write `data` in pieces of these sizes, in turn, as far as there is room each time."""
    found, at, turn = [], 0, 0
    while at < len(data):
        room = buffer.room()
        assert len(room)
        count = min(len(room), pieces[turn % len(pieces)], len(data) - at)
        room[:count] = data[at : at + count]
        found += buffer.filled(count)
        at, turn = at + count, turn + 1
    return found


@given(
    st.lists(st.integers(0, 3 * FIRST_BYTES), min_size=1, max_size=8),
    st.lists(st.integers(1, 2 * FIRST_BYTES), min_size=1, max_size=5),
)
def test_frames_are_whole_and_stay_unchanged(sizes, pieces):
    bodies = [bytes([number + 1]) * size for number, size in enumerate(sizes)]
    buffer = FrameBuffer(LIMIT_BYTES)
    frames = fill(buffer, b"".join(map(frame, bodies)), pieces)
    assert [bytes(each.body) for each in frames] == bodies
    assert [bytes(each.whole) for each in frames] == [frame(body) for body in bodies]


@given(st.lists(st.binary(min_size=1, max_size=100), max_size=10))
def test_garbage_is_a_protocol_error_or_waits_for_more_within_the_limit(chunks):
    buffer = FrameBuffer(limit_bytes=256)
    try:
        for chunk in chunks:
            fill(buffer, chunk, [len(chunk)])
    except RemoteProtocolError:
        return
    assert len(buffer.room().obj) <= FIRST_BYTES


def test_frames_outlive_the_large_buffer_that_they_came_in():
    buffer, body = FrameBuffer(1 << 20), bytes(range(256)) * 3000
    frames = [only for _ in range(20) for only in fill(buffer, large_frame(body), [1 << 22])]
    assert [bytes(each.body) for each in frames] == [body] * 20


def test_memory_is_reused_only_if_no_frame_in_it_is_retained():
    buffer, body = FrameBuffer(1 << 20), bytes(700_000)
    kept = fill(buffer, large_frame(b"kept" + body) * 4, [1 << 22])[-1]
    places = set()
    for _ in range(60):
        fill(buffer, large_frame(body), [1 << 22])
        places.add(id(buffer.room().obj))
    assert len(places) < 15
    assert bytes(kept.body) == b"kept" + body


def test_a_large_frame_is_not_copied():
    body = bytes(range(256)) * 100
    buffer = FrameBuffer(LIMIT_BYTES)
    fill(buffer, frame(body)[: FIRST_BYTES // 2], [FIRST_BYTES])
    room = buffer.room()
    rest = frame(body)[FIRST_BYTES // 2 :]
    assert len(room) >= len(rest)
    room[: len(rest)] = rest
    [only] = buffer.filled(len(rest))
    room[len(rest) - 1 : len(rest)] = b"!"
    assert bytes(only.body[-1:]) == b"!"


def test_a_bad_header_is_the_peers_error_and_frames_before_it_count():
    header = b"\0\0\0\3\1\1\0\0"
    buffer = FrameBuffer(LIMIT_BYTES)
    data = frame(b"good") + header
    buffer.room()[: len(data)] = data
    frames = buffer.filled(len(data))
    assert bytes(next(frames).body) == b"good"
    with pytest.raises(RemoteProtocolError):
        next(frames)
