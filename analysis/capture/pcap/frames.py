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

from analysis.capture.pcap.files.byte_ranges import ByteRanges
from analysis.capture.pcap.files.format import Bytes, Integers, column, gather
from node.core.framing import FRAME_LIMIT_BYTES, HEADER, HEADER_BYTES, LENGTH_BYTES, VERSION

_EVER = np.iinfo(np.int64)
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
    """Walks the frames of one stream, which comes part by part. `position` is where the next frame begins."""

    def __init__(self, data: Bytes) -> None:
        self._data = data
        self._limit = 0  # frames that end beyond are not known well enough yet
        self._waits = False  # such a one is next
        self.position = 0
        self.stopped: str | None = None

    def frames(self, pieces: ByteRanges, *, ended: bool) -> Iterator[Frames]:
        """The next frames whose header is known, window by window.

        pieces: from `position` on, or from some way before. ended: nothing comes after them; otherwise a
        frame that may go on after the last piece is left for the next time.
        """
        if self.stopped or not pieces.start.size:
            return
        self._waits = False
        self._limit = int(_EVER.max if ended else pieces.end[-1])
        for first, last in runs(pieces):
            begin, end = int(pieces.start[first]), int(pieces.known_end[last])
            if self.position < begin:
                self.stopped = f"bytes {self.position} to {begin} are not in the capture"
            elif self.position < end:
                more_follow = not ended and end == self._limit
                yield from self._walk_run(pieces, first, last, more_follow=more_follow)
            if self.stopped or self._waits:
                return

    def _walk_run(self, pieces: ByteRanges, first: int, last: int, *, more_follow: bool) -> Iterator[Frames]:
        """Walk through pieces first to last, whose bytes follow each other without a hole."""
        first += int(np.searchsorted(pieces.end[first:last], self.position, side="right"))
        rest, rest_start = b"", int(pieces.start[first])
        for piece, following in windows(pieces, first, last):
            content = rest + copied(self._data, pieces, piece, following)
            final = following > last and not more_follow
            frames = self._chain(content, rest_start, final=final)
            if frames.start.size:
                yield frames
            if self.stopped or self._waits:
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
            if at + whole > end:
                self._waits = final and content_start + at + whole > self._limit
                if not final or self._waits:
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


def runs(pieces: ByteRanges) -> Iterator[tuple[int, int]]:
    """First and last piece of each run of bytes without a hole."""
    breaks = np.flatnonzero(pieces.known_end[:-1] != pieces.start[1:]) + 1
    bounds = [0, *breaks.tolist(), pieces.start.size]
    for first, following in pairwise(bounds):
        if following > first:
            yield first, following - 1


def windows(pieces: ByteRanges, first: int, last: int) -> Iterator[tuple[int, int]]:
    """Cut a run of pieces into stretches of about WINDOW_BYTES: (first piece, piece after the last)."""
    ends = pieces.end[first : last + 1]
    piece = first
    while piece <= last:
        limit = pieces.start[piece] + WINDOW_BYTES
        following = max(first + int(np.searchsorted(ends, limit, side="right")), piece + 1)
        yield piece, following
        piece = following


def copied(data: Bytes, pieces: ByteRanges, first: int, following: int) -> bytes:
    """Copy the captured bytes of some pieces, one after the other."""
    buffer = data.data
    begins = pieces.at[first:following]
    ends = (begins + pieces.captured[first:following]).tolist()
    return b"".join([buffer[begin:end] for begin, end in zip(begins.tolist(), ends, strict=True)])
