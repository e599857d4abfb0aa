"""Streams longer than their sequence numbers, and segments far outside; `test_windows` has all else."""

import numpy as np

from analysis.capture.pcap.files.byte_ranges import TcpSegments
from analysis.capture.pcap.reassemble import WINDOW_BYTES_MAX
from tests.analysis.capture.pcap.captures import ACK, SYN
from tests.analysis.capture.pcap.complete_capture import reassemble

FILE_STEP = 100_000  # payloads of the segments stand this far apart in the imagined file


def segments(rows: list[tuple[int, int]], *, flags: list[int] | None = None) -> TcpSegments:
    """Segments (sequence number, length), one a nanosecond, the n-th payload at n * FILE_STEP."""
    count = len(rows)
    seq, length = (np.array([row[place] for row in rows], np.int64) for place in (0, 1))
    return TcpSegments(
        t_ns=np.arange(count),
        seq=seq % 2**32,
        flags=np.array(flags or [ACK] * count, np.int64),
        at=np.arange(count) * FILE_STEP,
        length=length,
        captured=length,
    )


def test_sequence_numbers_wrap_as_often_as_they_like() -> None:
    step = 1 << 28
    rows = [(n * step - 5, step) for n in range(100)]
    [stream] = reassemble(segments(rows))
    assert stream.settled.pieces.end[-1] == 100 * step
    assert stream.settled.missing[0].size == 0


def test_a_stray_of_an_earlier_connection_is_counted_and_left_out() -> None:
    rows = [(100, 0), (101, 4), (101 - 50_000, 20), (105 + WINDOW_BYTES_MAX + 5, 20), (105, 6)]
    [stream] = reassemble(segments(rows, flags=[SYN, ACK, ACK, ACK, ACK]))
    assert (stream.connection.stray_segments, stream.connection.segments, stream.settled.pieces.end[-1]) == (
        2,
        4,
        10,
    )
    assert stream.settled.missing[0].size == 0
