"""TCP directions put together again: from segments in the order of capture to a byte stream by reference.

A stream is a list of pieces in stream order that do not overlap: where each stands in the stream, where its
bytes stand in the capture file, and when they came. Payload is not touched. Sequence numbers are unwrapped
by their distance from the segment before (RFC 9293, section 3.4), so a stream may be of any length; a byte
that came more than once counts when it came first; the time by which everything up to a byte was there is
the running maximum of arrival times in stream order.

All of it is whole-array work, but for segments that partly overlap each other: these are painted one by one.

What is not in the capture is a gap, and stays one: neither acknowledgements of the other direction nor a
FIN are taken as proof that something was sent.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, fields

import numpy as np
import numpy.typing as npt

from analysis.pcap.format import Integers

SYN, RST = 0x02, 0x04
WINDOW_BYTES_MAX = 1 << 30  # RFC 7323, section 2.3: nothing can be further ahead


@dataclass(frozen=True, slots=True)
class Segments:
    """Segments of one TCP direction, in the order of capture. All arrays have the same length."""

    t_ns: Integers
    seq: Integers
    flags: Integers
    at: Integers  # where the payload stands in the file
    length: Integers  # payload bytes on the wire
    captured: Integers  # of which the file has this many

    def take(self, where: Integers | npt.NDArray[np.bool_] | slice) -> "Segments":
        """Some of them."""
        return Segments(*(getattr(self, field.name)[where] for field in fields(self)))


@dataclass(frozen=True, slots=True)
class Pieces:
    """Parts of a stream, ascending and without overlap. All arrays have the same length."""

    start: Integers  # in the stream
    length: Integers
    captured: Integers  # bytes from `start` on whose content the file has
    at: Integers  # where they stand in the file
    t_ns: Integers  # when they came

    @property
    def end(self) -> Integers:
        """Where each ends in the stream."""
        return self.start + self.length


@dataclass(frozen=True, slots=True)
class Stream:
    """One direction of one connection. Stream offset 0 is the first byte after SYN, or the lowest that was
    seen."""

    connection: int
    pieces: Pieces
    complete_ns: Integers  # per piece: when it and all seen bytes before it were there
    synchronised: bool  # SYN was captured, so offset 0 is the beginning
    segments: int  # with payload
    repeated_start: Integers  # bytes that came again, ascending by start
    repeated_end: Integers
    stray_segments: int

    @property
    def missing(self) -> tuple[Integers, Integers]:
        """Starts and lengths of what is in no record, between bytes that are."""
        ends = np.concatenate(([0], self.pieces.end))[:-1]
        holes = np.flatnonzero(self.pieces.start > ends)
        return ends[holes], self.pieces.start[holes] - ends[holes]

    @property
    def snapped(self) -> tuple[Integers, Integers]:
        """Starts and lengths of what came but was cut off by the snap length."""
        cut = self.pieces.length - self.pieces.captured
        where = np.flatnonzero(cut > 0)
        return self.pieces.start[where] + self.pieces.captured[where], cut[where]


def reassemble(segments: Segments) -> Iterator[Stream]:
    """Put one TCP direction together: a stream for each connection that used these ports, in order."""
    numbers = _number_connections(segments)
    for connection in range(int(numbers[-1]) + 1 if numbers.size else 0):
        alone = numbers[-1] == 0
        yield _assemble(connection, segments if alone else segments.take(numbers == connection))


def _number_connections(segments: Segments) -> Integers:
    """Number each segment's connection. A SYN begins one unless it repeats the SYN before it."""
    syns = np.flatnonzero(segments.flags & SYN)
    begins = np.zeros(segments.seq.size, np.int64)
    if syns.size:
        numbers = segments.seq[syns]
        begins[syns] = np.concatenate(([True], numbers[1:] != numbers[:-1]))
        begins[0] = 0  # what comes before the first SYN is a connection too
    return np.cumsum(begins)


def _assemble(connection: int, segments: Segments) -> Stream:
    syn = segments.flags & SYN != 0
    synchronised = bool(syn.any())
    positions = _unwrap(segments.seq + syn)  # SYN itself takes a sequence number
    if synchronised:
        positions -= positions[np.argmax(syn)]
    payload = (segments.length > 0) & (segments.flags & RST == 0)
    segments, positions = segments.take(payload), positions[payload]
    if not synchronised and positions.size:
        positions -= positions.min()
    ahead = np.maximum.accumulate(np.concatenate(([0], positions + segments.length)))[:-1]
    belongs = (positions >= 0) & (positions <= ahead + WINDOW_BYTES_MAX)
    stray = int(belongs.size - belongs.sum())
    if stray:
        segments, positions = segments.take(belongs), positions[belongs]
    pieces, repeated = _order(segments, positions)
    return Stream(
        connection=connection,
        pieces=pieces,
        complete_ns=np.maximum.accumulate(pieces.t_ns),
        synchronised=synchronised,
        segments=positions.size + stray,
        repeated_start=repeated[:, 0],
        repeated_end=repeated[:, 1],
        stray_segments=stray,
    )


def _unwrap(seq: Integers) -> Integers:
    """Positions relative to the first: each is within 2 GiB of the one before, whichever way."""
    steps = (np.diff(seq, prepend=seq[:1]) + 0x8000_0000) % 0x1_0000_0000 - 0x8000_0000
    return np.cumsum(steps)


def _order(segments: Segments, positions: Integers) -> tuple[Pieces, Integers]:
    """Lay segments out in stream order. Returns the pieces, and the ranges that came again as rows of
    (start, end)."""
    pieces = Pieces(positions, segments.length, segments.captured, segments.at, segments.t_ns)
    nothing = np.zeros((0, 2), np.int64)
    if (pieces.start[1:] >= pieces.end[:-1]).all():  # in order: the usual case
        return pieces, nothing
    order = np.lexsort((pieces.length, pieces.start))  # stable: equal ones stay in the order of capture
    start, end = pieces.start[order], pieces.end[order]
    again = np.concatenate(([False], (start[1:] == start[:-1]) & (end[1:] == end[:-1])))
    repeated = np.stack((start[again], end[again]), axis=1)
    order, start, end = order[~again], start[~again], end[~again]
    reach = np.maximum.accumulate(end)
    clusters = np.cumsum(np.concatenate(([True], start[1:] >= reach[:-1])))
    overlapping = np.bincount(clusters)[clusters] > 1
    source, first, last = order[~overlapping], start[~overlapping], end[~overlapping]
    if overlapping.any():
        painted, covered = _paint(np.sort(order[overlapping]), pieces)
        source, first, last = (
            np.concatenate(pair) for pair in zip((source, first, last), painted.T, strict=True)
        )
        repeated = np.concatenate((repeated, covered))
    sort = np.argsort(first)
    return _cut(pieces, source[sort], first[sort], last[sort]), repeated[np.argsort(repeated[:, 0])]


def _paint(order: Integers, pieces: Pieces) -> tuple[Integers, Integers]:
    """Lay segments down in the order of capture, each keeping what was still free.

    Returns rows of (segment, start, end) for what was kept, and of (start, end) for what was there already.
    """
    starts: list[int] = []  # covered so far: disjoint, ascending, neighbours joined
    ends: list[int] = []
    kept: list[tuple[int, int, int]] = []
    covered: list[tuple[int, int]] = []
    rows = zip(order.tolist(), pieces.start[order].tolist(), pieces.end[order].tolist(), strict=True)
    for segment, start, end in rows:
        low, high = bisect_left(ends, start), bisect_right(starts, end)
        position = start
        for begin, stop in zip(starts[low:high], ends[low:high], strict=True):
            if begin > position:
                kept.append((segment, position, begin))
            if min(stop, end) > max(begin, start):
                covered.append((max(begin, start), min(stop, end)))
            position = max(position, stop)
        if position < end:
            kept.append((segment, position, end))
        starts[low:high] = [min([start, *starts[low:high]])]
        ends[low:high] = [max([end, *ends[low:high]])]
    return np.array(kept, np.int64).reshape(-1, 3), np.array(covered, np.int64).reshape(-1, 2)


def _cut(pieces: Pieces, source: Integers, start: Integers, end: Integers) -> Pieces:
    """The parts [start, end) of the pieces `source`."""
    skipped, length = start - pieces.start[source], end - start
    return Pieces(
        start=start,
        length=length,
        captured=np.clip(pieces.captured[source] - skipped, 0, length),
        at=pieces.at[source] + skipped,
        t_ns=pieces.t_ns[source],
    )
