"""Framing: complete frames are returned; garbage is an error and never a crash."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.core.errors import LocalProtocolError, RemoteProtocolError
from node.core.framing import HEADER, HEADER_BYTES, VERSION, encode_header, frames_in

bodies = st.lists(st.tuples(st.integers(0, 255), st.binary(max_size=300)), max_size=12)


def frame(message_type: int, body: bytes) -> bytes:
    return encode_header(message_type, len(body)) + body


@given(bodies, st.integers(0, 4000))
def test_frames_are_returned_up_to_an_incomplete_one(sent, end):
    whole = [frame(*message) for message in sent]
    found = list(frames_in(b"".join(whole)[:end]))
    there = sum(sum(map(len, whole[: count + 1])) <= end for count in range(len(whole)))
    assert [bytes(each.whole) for each in found] == whole[:there]
    assert [(each.type, bytes(each.body)) for each in found] == sent[:there]


@pytest.mark.parametrize(
    ("header", "problem"),
    [
        (HEADER.pack(4, VERSION + 1, 1, 0), "version"),
        (HEADER.pack(4, VERSION, 1, 7), "flags"),
        (HEADER.pack(3, VERSION, 1, 0), "length 3"),
        (HEADER.pack(1 << 30, VERSION, 1, 0), "length 1073741824"),
    ],
)
def test_a_bad_header_is_an_error_before_its_body_arrives(header, problem):
    with pytest.raises(RemoteProtocolError, match=problem):
        list(frames_in(header))


def test_a_frame_of_the_limit_passes_and_one_byte_more_is_refused_on_both_sides():
    limit_bytes = 64
    body = bytes(limit_bytes - HEADER_BYTES)
    data = encode_header(1, len(body), limit_bytes) + body
    assert [each.type for each in frames_in(data, limit_bytes)] == [1]
    with pytest.raises(LocalProtocolError, match="65 bytes"):
        encode_header(1, len(body) + 1, limit_bytes)
    with pytest.raises(RemoteProtocolError):
        list(frames_in(data, limit_bytes - 1))
