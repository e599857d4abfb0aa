"""The log's format: whatever was written is read back; from any prefix or damage only a true prefix is."""

import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.core.errors import StorageError
from node.core.log import (
    CRC,
    HEADER,
    HEADER_BYTES,
    MAGIC,
    LogRecordWriter,
    SegmentHeader,
    decode_frames,
    encode_segment,
    scan,
    scan_header,
)
from node.protocols.sprinkler.messages import CODEC, Hello, Role, Token

HEADER_OF_5 = SegmentHeader(5, 5)
messages = st.lists(
    st.one_of(
        st.builds(Token, st.integers(0, 2**64 - 1)),
        st.builds(Hello, st.sampled_from(Role), st.integers(0, 2**64 - 1), st.text(min_size=1, max_size=30)),
    ),
    max_size=12,
)


def written(sent) -> bytes:
    return encode_segment(CODEC, HEADER_OF_5, sent)


def read(data: bytes) -> list:
    return decode_frames(CODEC, scan(data).frames)


@given(messages)
def test_a_closed_segment_gives_its_messages_back(sent):
    found = scan(written(sent))
    assert found.header == HEADER_OF_5
    assert decode_frames(CODEC, found.frames) == sent
    assert (found.closed, found.problem, found.end) == (True, "", len(written(sent)))


@given(messages, st.data())
def test_any_prefix_of_bytes_gives_a_prefix_of_messages_and_is_not_closed(sent, data):
    whole = written(sent)
    size = data.draw(st.integers(0, len(whole) - 1))
    found = scan(whole[:size])
    got = decode_frames(CODEC, found.frames)
    assert got == sent[: len(got)]
    assert not found.closed
    assert found.end <= size
    assert (found.header is not None and found.end == size) == (found.problem == "")


@given(messages, st.data())
def test_any_flipped_bit_is_found_and_what_is_before_it_is_given(sent, data):
    whole = bytearray(written(sent))
    at = data.draw(st.integers(0, len(whole) - 1))
    whole[at] ^= 1 << data.draw(st.integers(0, 7))
    found = scan(bytes(whole))
    got = decode_frames(CODEC, found.frames)
    assert got == sent[: len(got)]
    assert found.problem
    assert found.end <= at


@given(messages, st.binary(min_size=1, max_size=100))
def test_records_after_the_end_mark_are_ignored(sent, more):
    found = scan(written(sent) + more)
    assert decode_frames(CODEC, found.frames) == sent
    assert found.problem == f"{len(more)} bytes after the end mark"


@given(messages, messages)
def test_records_of_another_segment_are_no_records_of_this_one(sent, others):
    header = HEADER_OF_5.encode()
    stale = encode_segment(CODEC, SegmentHeader(6, 6), others)[HEADER_BYTES:]
    found = scan(header + stale)
    assert (found.frames, found.end) == ([], HEADER_BYTES)
    assert found.problem


@given(messages)
def test_a_record_that_is_missing_in_the_middle_ends_the_good_part(sent):
    writer = LogRecordWriter(HEADER_OF_5)
    records = [b"".join(writer.encode(CODEC, message)) for message in sent]
    for missing in range(len(records) - 1):
        data = b"".join([HEADER_OF_5.encode(), *records[:missing], *records[missing + 1 :]])
        assert read(data) == sent[:missing]


def test_the_problem_says_which_record_and_where():
    whole = bytearray(written([Token(1), Token(2)]))
    whole[-30] ^= 1
    assert scan(bytes(whole)).problem.startswith("record 2 at byte 64 ")


def test_a_log_of_another_version_is_an_error_and_no_torn_tail():
    data = HEADER.pack(MAGIC, 2, 1, 1)
    with pytest.raises(StorageError, match="version 2"):
        scan_header(data + CRC.pack(zlib.crc32(data)))


def test_a_whole_record_that_is_no_message_is_an_error_and_never_skipped():
    whole = encode_segment(CODEC, HEADER_OF_5, [Token(1)])
    assert read(whole) == [Token(1)]
    with pytest.raises(StorageError, match="record 1 is no message"):
        decode_frames(CODEC, [memoryview(b"\0\0\0\4\1\xfa\0\0")])
