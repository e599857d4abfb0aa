"""TCP directions come together as a byte-by-byte reassembler puts them together."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analysis.capture.pcap.files.byte_ranges import TcpSegments
from analysis.capture.pcap.reassemble import WINDOW_BYTES_MAX
from tests.analysis.capture.pcap.captures import ACK, RST, SYN
from tests.analysis.capture.pcap.complete_capture import Stream, reassemble

FILE_STEP = 100_000  # payloads of the segments stand this far apart in the imagined file


def segments(
    rows: list[tuple[int, int]], *, flags: list[int] | None = None, snap: int = 1 << 20
) -> TcpSegments:
    """Segments (sequence number, length), one a nanosecond, the n-th payload at n * FILE_STEP."""
    count = len(rows)
    seq, length = (np.array([row[place] for row in rows], np.int64) for place in (0, 1))
    return TcpSegments(
        t_ns=np.arange(count),
        seq=seq % 2**32,
        flags=np.array(flags or [ACK] * count, np.int64),
        at=np.arange(count) * FILE_STEP,
        length=length,
        captured=np.minimum(length, snap),
    )


def only(streams: list[Stream]) -> Stream:
    assert len(streams) == 1
    return streams[0]


def byte_by_byte(rows: list[tuple[int, int]]) -> tuple[dict[int, int], set[int]]:
    """Which segment brought each position first, and which positions came again."""
    first: dict[int, int] = {}
    again: set[int] = set()
    for number, (start, length) in enumerate(rows):
        for position in range(start, start + length):
            if position in first:
                again.add(position)
            first.setdefault(position, number)
    return first, again


def covered(starts: np.ndarray, ends: np.ndarray) -> set[int]:
    return {x for start, end in zip(starts.tolist(), ends.tolist(), strict=True) for x in range(start, end)}


overlapping_rows = st.lists(st.tuples(st.integers(0, 80), st.integers(1, 15)), min_size=1, max_size=30)


@given(rows=overlapping_rows, isn=st.integers(0, 2**32 - 1), syn=st.booleans())
def test_every_byte_counts_when_it_came_first(rows: list[tuple[int, int]], isn: int, syn: bool) -> None:
    sent = [(isn + 1 + start, length) for start, length in rows]
    lowest = 0 if syn else min(start for start, _ in rows)
    if syn:
        stream = only(reassemble(segments([(isn, 0), *sent], flags=[SYN] + [ACK] * len(rows))))
    else:
        stream = only(reassemble(segments(sent)))
    first, again = byte_by_byte([(start - lowest, length) for start, length in rows])
    pieces = stream.settled.pieces
    found: dict[int, int] = {}
    for start, length, at, t_ns in zip(pieces.start, pieces.length, pieces.at, pieces.t_ns, strict=True):
        number, skipped = divmod(int(at), FILE_STEP)
        assert t_ns == number
        assert start + lowest == rows[number - syn][0] + skipped  # the right bytes of the right segment
        found |= {int(start) + n: number - syn for n in range(length)}
    assert found == first
    assert int(pieces.length.sum()) == len(first)  # no byte twice
    assert covered(*stream.settled.repeated.T) == again
    starts, lengths = stream.settled.missing
    assert covered(starts, starts + lengths) == set(range(max(first))) - set(first)


@given(rows=overlapping_rows)
def test_a_byte_is_complete_when_all_before_it_have_come(rows: list[tuple[int, int]]) -> None:
    sent = [(0, 0), *[(1 + start, length) for start, length in rows]]
    stream = only(reassemble(segments(sent, flags=[SYN] + [ACK] * len(rows))))
    first, _ = byte_by_byte(rows)
    for start, complete in zip(
        stream.settled.pieces.start.tolist(), stream.settled.complete_ns.tolist(), strict=True
    ):
        assert complete == max(number for position, number in first.items() if position <= start) + 1


def test_sequence_numbers_wrap_as_often_as_they_like() -> None:
    step = 1 << 28
    rows = [(n * step - 5, step) for n in range(100)]
    stream = only(reassemble(segments(rows)))
    assert stream.settled.pieces.end[-1] == 100 * step
    assert stream.settled.missing[0].size == 0


def test_a_syn_with_another_number_is_another_connection() -> None:
    flags = [SYN, ACK, ACK, SYN, ACK]
    rows = [(100, 0), (101, 10), (111, 5), (90_000, 0), (90_001, 7)]
    first, second = reassemble(segments(rows, flags=flags))
    assert (first.connection.number, first.settled.pieces.end[-1]) == (0, 15)
    assert (second.connection.number, second.settled.pieces.end[-1], second.connection.synchronised) == (
        1,
        7,
        True,
    )


def test_a_repeated_syn_is_the_same_connection() -> None:
    stream = only(reassemble(segments([(100, 0), (100, 0), (101, 3)], flags=[SYN, SYN, ACK])))
    assert stream.settled.pieces.end[-1] == 3


def test_data_before_the_first_syn_is_a_separate_connection() -> None:
    first, second = reassemble(segments([(7, 3), (100, 0), (101, 4)], flags=[ACK, SYN, ACK]))
    assert (first.connection.synchronised, first.settled.pieces.end[-1]) == (False, 3)
    assert (second.connection.synchronised, second.settled.pieces.end[-1]) == (True, 4)


def test_a_stray_of_an_earlier_connection_is_counted_and_left_out() -> None:
    rows = [(100, 0), (101, 4), (101 - 50_000, 20), (105 + WINDOW_BYTES_MAX + 5, 20), (105, 6)]
    stream = only(reassemble(segments(rows, flags=[SYN, ACK, ACK, ACK, ACK])))
    assert (stream.connection.stray_segments, stream.connection.segments, stream.settled.pieces.end[-1]) == (
        2,
        4,
        10,
    )
    assert stream.settled.missing[0].size == 0


def test_data_on_a_syn_begins_the_stream_and_text_on_a_reset_is_none() -> None:
    stream = only(reassemble(segments([(100, 4), (105, 6), (111, 9)], flags=[SYN, ACK, RST | ACK])))
    assert (stream.settled.pieces.start.tolist(), stream.settled.pieces.end.tolist()) == ([0, 4], [4, 10])


def test_cut_off_payload_is_a_gap_of_its_own_kind() -> None:
    stream = only(reassemble(segments([(0, 100), (100, 30), (200, 50)], snap=40)))
    assert [part.tolist() for part in stream.snapped] == [[40, 240], [60, 10]]
    assert [part.tolist() for part in stream.settled.missing] == [[130], [70]]


def test_nothing_at_all_is_no_stream() -> None:
    assert reassemble(segments([])) == []
