"""Reassembly of TCP directions: from segments in capture order to a byte stream by reference.

A connection takes segments window by window and returns the settled parts of its stream: bytes without a gap
before them that arrived long enough ago that a retransmission would have been seen (`HORIZON_NS`). Bytes
after a gap wait until it is filled. A gap is abandoned when TCP itself could not fill it any more, or when
too many pieces wait. So memory holds out-of-order segments and the last seconds, never a whole stream.

Sequence numbers are unwrapped by their distance from the previous segment (RFC 9293, section 3.4), so a
stream may have any length. A byte that arrives more than once has the time of its first arrival. The time
when everything up to a byte had arrived is the running maximum of arrival times in stream order. A time stamp
far later than those of later bytes in the stream is wrong (`MISDATED_NS`); only its own bytes get it.

Bytes that are not in the capture remain a gap: neither acknowledgements of the other direction nor a FIN are
taken as proof that they were sent.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TypeVar

import numpy as np

from analysis.arrays import Ints
from analysis.capture.pcap.files.byte_ranges import (
    ByteRanges,
    TcpSegments,
    ascending,
    join,
    lay_out,
    no_pieces,
    no_ranges,
)

FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
WINDOW_BYTES_MAX = 1 << 30  # RFC 7323, section 2.3: no segment can be further ahead
HORIZON_NS = 5_000_000_000  # a first retransmission follows after about a second (RFC 6298, section 2)
MISDATED_NS = 3_600_000_000_000
"""No sender retransmits for this long (RFC 9293, section 3.8.3), so no gap is filled this much later."""
PIECES_MAX = 1 << 19  # limit of waiting pieces in one capture, 40 bytes each
_Number = TypeVar("_Number", int, Ints)
_EVER = np.iinfo(np.int64)


@dataclass(frozen=True, slots=True)
class SettledRange:
    """The next final part of a stream. Stream offset 0 is the first byte after SYN, or the lowest seen."""

    pieces: ByteRanges
    complete_ns: Ints  # per piece: when it and all seen bytes before it had arrived
    repeated: Ints  # retransmitted bytes as rows of (start, end), ascending; may begin before the part
    missing: tuple[Ints, Ints]  # starts and lengths of gaps in the capture


class Numbering:
    """Numbers the connections of one TCP direction. A SYN begins one unless it repeats the previous SYN.

    Segments before the first SYN are a connection too.
    """

    def __init__(self) -> None:
        self._syn = -1
        self._connection = -1

    def split(self, segments: TcpSegments) -> Iterator[tuple[int, TcpSegments]]:
        """Split the next segments by connection; yield each connection's number and segments."""
        syns = np.flatnonzero(segments.flags & SYN)
        begins = np.zeros(segments.seq.size, np.int64)
        if syns.size:
            numbers = segments.seq[syns]
            begins[syns] = numbers != np.concatenate(([self._syn], numbers[:-1]))
            self._syn = int(numbers[-1])
        if self._connection < 0 and begins.size:
            begins[0] = 1
        bounds = [0, *np.flatnonzero(begins).tolist(), begins.size]
        for first, following in pairwise(bounds):
            if following > first:
                self._connection += int(begins[first])
                yield self._connection, segments.take(slice(first, following))


class ReassembledConnection:
    """Reassembly of one direction of one connection."""

    def __init__(self, number: int, first: TcpSegments) -> None:
        """first: the first segments, at least one."""
        syn = bool(first.flags[0] & SYN)
        self.number = number
        self.synchronised = syn  # SYN was captured: offset 0 is the stream's first byte
        self.reset = False
        self.segments = 0  # with payload
        self.stray_segments = 0
        self.repeated_segments = 0
        self.bytes = self.repeated_bytes = self.missing_bytes = self.snapped_bytes = 0
        self._held = no_pieces()
        self._again = no_ranges()
        self._seq, self._position = int(first.seq[0]) + syn, 0  # of the previous segment
        self._ahead = 0
        self._lowest = 0 if syn else -WINDOW_BYTES_MAX
        self._given = 0  # everything before was returned
        self._complete_ns = int(_EVER.min)

    @property
    def waiting(self) -> int:
        """The number of pieces not yet returned."""
        return int(self._held.start.size)

    def add(self, segments: TcpSegments) -> None:
        """Take the connection's next segments, in capture order."""
        resets = segments.flags & RST != 0
        self.reset |= bool(resets.any())
        segments = segments.take((segments.length > 0) & ~resets)
        segments, positions = self._place(segments)
        if not positions.size:
            return
        ends = positions + segments.length
        pieces = ByteRanges(positions, segments.length, segments.captured, segments.at, segments.t_ns)
        late = np.flatnonzero(positions < self._given) if self._given else positions[:0]
        again = np.stack((positions[late], np.minimum(ends[late], self._given)), axis=1)
        pieces, rows = pieces.from_position(self._given) if late.size else (pieces, np.arange(ends.size))
        before, waiting = int(self._held.length.sum()), self.waiting
        self._held, more = lay_out(join((self._held, pieces)))
        again = np.concatenate((again, more[:, :2]))
        assert int(self._held.length.sum()) >= before, "bytes were lost"
        self.bytes += int(self._held.length.sum()) - before
        self.repeated_bytes += int((again[:, 1] - again[:, 0]).sum())
        self.repeated_segments += np.union1d(late, rows[more[:, 2] - waiting]).size
        self._again = ascending(np.concatenate((self._again, again)))

    def settle(self, before_ns: int, waiting_max: int) -> SettledRange | None:
        """Return what was complete before this time, and what exceeds the limits of waiting."""
        held = self._held
        if not held.start.size:
            return None
        complete_ns = _running_maximum(np.concatenate(([self._complete_ns], held.t_ns)))[1:]
        origin = self._given if self._known_origin else int(held.start[0])
        ends = np.concatenate(([origin], held.end))
        sound = (ends[:-1] == held.start) & (complete_ns < before_ns)
        count = held.start.size if sound.all() else int(np.argmin(sound))
        count = max(
            count,
            int(np.searchsorted(held.end, self._ahead - WINDOW_BYTES_MAX, side="right")),
            held.start.size - waiting_max,
        )
        return self._give(count, complete_ns[:count]) if count else None

    def end(self) -> SettledRange | None:
        """Return the rest, after the last segment."""
        return self.settle(int(_EVER.max), 0)

    @property
    def _known_origin(self) -> bool:
        return self._lowest == 0

    def _give(self, count: int, complete_ns: Ints) -> SettledRange:
        if not self._known_origin:
            self._begin_at(int(self._held.start[0]))
        pieces, self._held = self._held.take(slice(count)), self._held.take(slice(count, None))
        ends = np.concatenate(([self._given], pieces.end))
        assert (pieces.start >= ends[:-1]).all(), "returned twice, or out of order"
        holes = np.flatnonzero(pieces.start > ends[:-1])
        missing = ends[holes], pieces.start[holes] - ends[holes]
        self._given, self._complete_ns = int(ends[-1]), int(complete_ns[-1])
        complete_ns = np.where(
            pieces.t_ns > complete_ns, pieces.t_ns, complete_ns
        )  # a wrong time stays visible
        self.missing_bytes += int(missing[1].sum())
        self.snapped_bytes += int(pieces.snapped[1].sum())
        repeated = self._again[self._again[:, 0] < self._given]
        self._again = self._again[self._again[:, 1] > self._given]
        return SettledRange(pieces, complete_ns, repeated, missing)

    def _begin_at(self, origin: int) -> None:
        """Count stream offsets from the lowest byte seen before the first part was returned."""
        self._held = replace(self._held, start=self._held.start - origin)
        self._again = self._again - origin
        self._position -= origin
        self._ahead -= origin
        self._lowest = 0

    def _place(self, segments: TcpSegments) -> tuple[TcpSegments, Ints]:
        """Return the segments and their stream offsets. Those that cannot belong to it are only counted."""
        self.segments += segments.seq.size
        if not segments.seq.size:
            return segments, segments.seq
        numbers = segments.seq + (segments.flags & SYN != 0)  # SYN itself takes a sequence number
        steps = distance(np.diff(numbers, prepend=self._seq))
        positions = self._position + np.cumsum(steps)
        ahead = np.maximum.accumulate(np.concatenate(([self._ahead], positions + segments.length)))
        belongs = (positions >= self._lowest) & (positions <= ahead[:-1] + WINDOW_BYTES_MAX)
        if not belongs.all():
            rows, positions = self._place_one_by_one(numbers, segments.length)
            self.stray_segments += numbers.size - rows.size
            numbers, segments = numbers[rows], segments.take(rows)
        if positions.size:
            self._seq, self._position = int(numbers[-1]), int(positions[-1])
            self._ahead = max(self._ahead, int((positions + segments.length).max()))
        return segments, positions

    def _place_one_by_one(self, numbers: Ints, lengths: Ints) -> tuple[Ints, Ints]:
        """Place segments one by one if there are strays, which must not affect later segments."""
        seq, position, ahead = self._seq, self._position, self._ahead
        rows, positions = [], []
        for row, (number, length) in enumerate(zip(numbers.tolist(), lengths.tolist(), strict=True)):
            at = position + int(distance(number - seq))
            if self._lowest <= at <= ahead + WINDOW_BYTES_MAX:
                rows.append(row)
                positions.append(at)
                seq, position, ahead = number, at, max(ahead, at + length)
        return np.array(rows, np.int64), np.array(positions, np.int64)


def _running_maximum(t_ns: Ints) -> Ints:
    """Return the running maximum of arrival times in stream order, without wrong ones.

    A wrong time of the last segment cannot be recognised.
    """
    least_behind = np.minimum.accumulate(t_ns[::-1])[::-1]
    wrong = t_ns > least_behind + MISDATED_NS
    return np.maximum.accumulate(np.where(wrong, _EVER.min, t_ns))


def distance(steps: _Number) -> _Number:
    """Return the signed distance of sequence numbers from their differences: within 2 GiB, either way."""
    return (steps + 0x8000_0000) % 0x1_0000_0000 - 0x8000_0000
