"""Parts of a TCP direction by reference: segments in capture order, and byte ranges in stream order."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from analysis.arrays import Ints, ParallelArrays


@dataclass(frozen=True, slots=True)
class TcpSegments(ParallelArrays):
    """Segments of one TCP direction, in capture order. All arrays have the same length."""

    t_ns: Ints
    seq: Ints
    flags: Ints
    at: Ints  # offset of the payload in the file
    length: Ints  # payload bytes on the wire
    captured: Ints  # payload bytes in the file


@dataclass(frozen=True, slots=True)
class ByteRanges(ParallelArrays):
    """Parts of a stream. After `lay_out` they ascend and do not overlap. All arrays have the same length."""

    start: Ints  # stream offset
    length: Ints
    captured: Ints  # bytes from `start` on whose content the file has
    at: Ints  # their offset in the file
    t_ns: Ints  # arrival time

    @property
    def end(self) -> Ints:
        """One past each range's last byte in the stream."""
        return self.start + self.length

    @property
    def known_end(self) -> Ints:
        """One past each range's last byte whose content the file has."""
        return self.start + self.captured

    @property
    def snapped(self) -> tuple[Ints, Ints]:
        """Starts and lengths of bytes that arrived but were cut off by the snap length."""
        cut = self.length - self.captured
        where = np.flatnonzero(cut > 0)
        return self.known_end[where], cut[where]

    def from_position(self, position: int) -> tuple["ByteRanges", Ints]:
        """Return the parts of the ranges at `position` or later, and the indices of their ranges."""
        if not self.start.size or int(self.start.min()) >= position:
            return self, np.arange(self.start.size)
        rows = np.flatnonzero(self.end > position)
        return _cut(self, rows, np.maximum(self.start[rows], position), self.end[rows]), rows


def no_pieces() -> ByteRanges:
    """Return empty byte ranges."""
    return ByteRanges(*(np.zeros(0, np.int64) for _ in fields(ByteRanges)))


def no_ranges() -> Ints:
    """Return no rows of (start, end)."""
    return np.zeros((0, 2), np.int64)


def join(parts: Sequence[ByteRanges]) -> ByteRanges:
    """Concatenate byte ranges in the order given."""
    filled = [part for part in parts if part.start.size]
    return filled[0] if len(filled) == 1 else ByteRanges.joined(filled or [no_pieces()])


def lay_out(pieces: ByteRanges) -> tuple[ByteRanges, Ints]:
    """Arrange pieces, given in order of arrival, in stream order without overlaps.

    Returns these, and the retransmitted ranges as rows of (start, end, piece that repeated them).
    """
    if (pieces.start[1:] >= pieces.end[:-1]).all():  # in order: the usual case
        return pieces, np.zeros((0, 3), np.int64)
    order = np.lexsort((pieces.length, pieces.start))  # stable: equal ones stay in capture order
    start, end = pieces.start[order], pieces.end[order]
    again = np.concatenate(([False], (start[1:] == start[:-1]) & (end[1:] == end[:-1])))
    repeated = np.stack((start[again], end[again], order[again]), axis=1)
    order, start, end = order[~again], start[~again], end[~again]
    reach = np.maximum.accumulate(end)
    clusters = np.cumsum(np.concatenate(([True], start[1:] >= reach[:-1])))
    overlapping = np.bincount(clusters)[clusters] > 1
    source, first, last = order[~overlapping], start[~overlapping], end[~overlapping]
    if overlapping.any():
        inside = np.lexsort((order[overlapping], clusters[overlapping]))
        painted, covered = _paint(order[overlapping][inside], clusters[overlapping][inside], pieces)
        source, first, last = (
            np.concatenate(pair) for pair in zip((source, first, last), painted.T, strict=True)
        )
        repeated = np.concatenate((repeated, covered))
    sort = np.argsort(first)
    return _cut(pieces, source[sort], first[sort], last[sort]), repeated


def ascending(ranges: Ints) -> Ints:
    """Sort rows of (start, end) by start."""
    return ranges[np.argsort(ranges[:, 0], kind="stable")]


def _paint(order: Ints, clusters: Ints, pieces: ByteRanges) -> tuple[Ints, Ints]:
    """Place pieces in this order, each only where no earlier piece is. Clusters do not touch each other.

    Returns rows of (piece, start, end) for the placed parts, and rows of (start, end, piece) for the parts
    that were already covered.
    """
    starts: list[int] = []  # covered so far in this cluster: disjoint, ascending, neighbours joined
    ends: list[int] = []
    kept: list[tuple[int, int, int]] = []
    covered: list[tuple[int, int, int]] = []
    columns = (clusters, order, pieces.start[order], pieces.end[order])
    now = -1
    for cluster, piece, start, end in zip(*(column.tolist() for column in columns), strict=True):
        if cluster != now:
            starts, ends, now = [], [], cluster
        low, high = bisect_left(ends, start), bisect_right(starts, end)
        position = start
        for begin, stop in zip(starts[low:high], ends[low:high], strict=True):
            if begin > position:
                kept.append((piece, position, begin))
            if min(stop, end) > max(begin, start):
                covered.append((max(begin, start), min(stop, end), piece))
            position = max(position, stop)
        if position < end:
            kept.append((piece, position, end))
        starts[low:high] = [min([start, *starts[low:high]])]
        ends[low:high] = [max([end, *ends[low:high]])]
    return np.array(kept, np.int64).reshape(-1, 3), np.array(covered, np.int64).reshape(-1, 3)


def _cut(pieces: ByteRanges, source: Ints, start: Ints, end: Ints) -> ByteRanges:
    """Return the parts [start, end) of the pieces `source`."""
    skipped, length = start - pieces.start[source], end - start
    return ByteRanges(
        start=start,
        length=length,
        captured=np.clip(pieces.captured[source] - skipped, 0, length),
        at=pieces.at[source] + skipped,
        t_ns=pieces.t_ns[source],
    )
