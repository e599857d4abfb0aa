"""Frames in a reassembled stream: where each begins, and what its head says.

Stream bytes are copied out of the capture in windows of bounded size, the chain of frame lengths is followed
through each, and heads are gathered for all frames of a window at once. The layout of a frame is that of
`node.core.framing`; nothing about it stands here a second time.

A hole in the bytes (missing from the capture, or beyond its snap length) is survived only if the chain
proves where the next frame begins: the hole must lie inside one frame whose header is known. Otherwise the
walk stops for good and says why. There is no searching for something that looks like a frame.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from analysis.pcap.format import Bytes, Integers, column, gather
from analysis.pcap.reassemble import Pieces
from node.core.framing import FRAME_LIMIT_BYTES, HEADER, HEADER_BYTES, LENGTH_BYTES, VERSION

WINDOW_BYTES = 8 * 1024 * 1024  # of stream bytes copied at once; a frame is smaller


@dataclass(frozen=True, slots=True)
class Frames:
    """The frames of one window, in stream order. `content` holds their bytes; each begins in it at `at`."""

    start: Integers  # in the stream
    length: Integers  # of the whole frame
    type: Integers
    known: Integers  # bytes of it, from its start, that are in `content`
    at: Integers
    content: Bytes


class FrameWalk:
    """Walks the frames of one stream, once. Afterwards `position`, `stopped` and `end` say how it went."""

    def __init__(self, data: Bytes, pieces: Pieces) -> None:
        self._data = data
        self._pieces = pieces
        self.position = 0  # where the next frame begins
        self.end = int(pieces.end[-1]) if pieces.start.size else 0
        self.stopped: str | None = None

    def frames(self) -> Iterator[Frames]:
        """All frames whose header is known, window by window."""
        for first, last in _runs(self._pieces):
            begin, end = int(self._pieces.start[first]), _known_end(self._pieces, last)
            if self.position < begin:
                self.stopped = f"bytes {self.position} to {begin} are not in the capture"
            if self.stopped:
                return
            if self.position < end:
                yield from self._walk_run(first, last)

    def _walk_run(self, first: int, last: int) -> Iterator[Frames]:
        """Walk through pieces first to last, whose bytes follow each other without a hole."""
        rest, rest_start = b"", int(self._pieces.start[first])
        for piece, following in _windows(self._pieces, first, last):
            content = rest + _copy(self._data, self._pieces, piece, following)
            frames = self._chain(content, rest_start, final=following > last)
            if frames.start.size:
                yield frames
            if self.stopped:
                return
            kept = min(max(self.position - rest_start, 0), len(content))
            rest, rest_start = content[kept:], rest_start + kept

    def _chain(self, content: bytes, content_start: int, *, final: bool) -> Frames:
        """Follow frame lengths from `position`. A frame that goes on after the window is left for the next
        one.

        In the final window of a run it is taken too, as far as its bytes are known.
        """
        begins: list[int] = []
        read = HEADER.unpack_from
        at, end = self.position - content_start, len(content)
        while at + HEADER_BYTES <= end:
            length, version, _, flags = read(content, at)
            whole = length + LENGTH_BYTES
            if version != VERSION or flags or not HEADER_BYTES <= whole <= FRAME_LIMIT_BYTES:
                self.stopped = f"no frame header at byte {content_start + at}"
                break
            if at + whole > end and not final:
                break
            begins.append(at)
            at += whole
        self.position = content_start + at
        return _gather_frames(content, content_start, np.array(begins, np.int64))


def _gather_frames(content: bytes, content_start: int, at: Integers) -> Frames:
    buffer = np.frombuffer(content, np.uint8)
    headers = gather(buffer, at, HEADER_BYTES)
    length = column(headers, 0, ">u4") + LENGTH_BYTES
    known = np.minimum(length, buffer.size - at)
    return Frames(at + content_start, length, column(headers, LENGTH_BYTES + 1, "u1"), known, at, buffer)


def _known_end(pieces: Pieces, piece: int) -> int:
    return int(pieces.start[piece] + pieces.captured[piece])


def _runs(pieces: Pieces) -> Iterator[tuple[int, int]]:
    """First and last piece of each run of bytes without a hole."""
    known_ends = pieces.start + pieces.captured
    breaks = np.flatnonzero(known_ends[:-1] != pieces.start[1:]) + 1
    bounds = [0, *breaks.tolist(), pieces.start.size]
    for first, following in pairwise(bounds):
        if following > first:
            yield first, following - 1


def _windows(pieces: Pieces, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Cut a run of pieces into stretches of about WINDOW_BYTES: (first piece, piece after the last)."""
    ends = pieces.end[first : last + 1]
    piece = first
    while piece <= last:
        limit = pieces.start[piece] + WINDOW_BYTES
        following = max(first + int(np.searchsorted(ends, limit, side="right")), piece + 1)
        yield piece, following
        piece = following


def _copy(data: Bytes, pieces: Pieces, first: int, following: int) -> bytes:
    """Copy the captured bytes of some pieces, one after the other."""
    buffer = data.data
    begins = pieces.at[first:following]
    ends = (begins + pieces.captured[first:following]).tolist()
    return b"".join([buffer[begin:end] for begin, end in zip(begins.tolist(), ends, strict=True)])
