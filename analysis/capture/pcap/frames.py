"""Frames in a reassembled stream: offsets and header fields.

Stream bytes are copied from the capture in windows of bounded size. The chain of frame lengths is followed
through each window, and the headers of all frames of a window are gathered at once. `node.core.framing`
defines the layout.

After a gap in the bytes (missing from the capture, or beyond its snap length) the walk continues only if the
gap lies inside one frame with a known header, because then the chain proves where the next frame begins.
Otherwise the walk stops and records the reason. It never searches for bytes that look like a frame.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from analysis.arrays import Bytes, Ints
from analysis.capture.pcap.files.byte_ranges import ByteRanges
from analysis.capture.pcap.files.format import column, gather
from node.core.framing import FRAME_LIMIT_BYTES, HEADER, HEADER_BYTES, LENGTH_BYTES, VERSION

_EVER = np.iinfo(np.int64)
WINDOW_BYTES = 8 * 1024 * 1024  # stream bytes copied at once; a frame is smaller


@dataclass(frozen=True, slots=True)
class MessageFrames:
    """The frames of one window, in stream order. content: their bytes, in which each begins at `at`."""

    start: Ints  # stream offset
    length: Ints  # of the whole frame
    type: Ints
    known: Ints  # bytes of it, from its start, that are in `content`
    at: Ints
    content: Bytes


class FrameWalk:
    """Walks the frames of one stream, given in parts. `position` is the stream offset of the next frame."""

    def __init__(self, data: Bytes) -> None:
        self._data = data
        self._limit = 0  # frames that end beyond it must wait for the next part
        self._waits = False  # the next frame must wait
        self.position = 0
        self.stopped: str | None = None

    def frames(self, pieces: ByteRanges, *, ended: bool) -> Iterator[MessageFrames]:
        """Yield the next frames with a known header, window by window.

        pieces: must begin at or before `position`. ended: no piece follows; otherwise a frame that may
        continue after the last piece is left for the next call.
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

    def _walk_run(
        self, pieces: ByteRanges, first: int, last: int, *, more_follow: bool
    ) -> Iterator[MessageFrames]:
        """Walk through the pieces from first to last, which have no gap between them."""
        for content, start, is_last in contents(self._data, pieces, first, last, lambda: self.position):
            frames = self._chain(content, start, final=is_last and not more_follow)
            if frames.start.size:
                yield frames
            if self.stopped or self._waits:
                return

    def _chain(self, content: bytes, content_start: int, *, final: bool) -> MessageFrames:
        """Follow frame lengths from `position`. A frame that continues after the window is left for the next.

        In the final window of a run it is included, with the bytes that are known.
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


def _gather_frames(content: bytes, content_start: int, at: Ints) -> MessageFrames:
    buffer = np.frombuffer(content, np.uint8)
    headers = gather(buffer, at, HEADER_BYTES)
    length = column(headers, 0, ">u4") + LENGTH_BYTES
    known = np.minimum(length, buffer.size - at)
    return MessageFrames(
        at + content_start, length, column(headers, LENGTH_BYTES + 1, "u1"), known, at, buffer
    )


def runs(pieces: ByteRanges) -> Iterator[tuple[int, int]]:
    """Yield the first and last piece of each run without a gap."""
    breaks = np.flatnonzero(pieces.known_end[:-1] != pieces.start[1:]) + 1
    bounds = [0, *breaks.tolist(), pieces.start.size]
    for first, following in pairwise(bounds):
        if following > first:
            yield first, following - 1


def contents(
    data: Bytes, pieces: ByteRanges, first: int, last: int, position: Callable[[], int]
) -> Iterator[tuple[bytes, int, bool]]:
    """Yield the bytes of a run of pieces in windows of about WINDOW_BYTES: bytes, the stream offset of the
    first, and whether this window is the last.

    position: returns the stream offset up to which the bytes yielded so far were used; the others are yielded
    again, before those of the next window.
    """
    piece = first + int(np.searchsorted(pieces.end[first:last], position(), side="right"))
    ends = pieces.end[: last + 1]
    content, start = b"", int(pieces.start[piece])
    while piece <= last:
        limit = pieces.start[piece] + WINDOW_BYTES
        following = max(int(np.searchsorted(ends, limit, side="right")), piece + 1)
        content += copy_pieces(data, pieces, piece, following)
        yield content, start, following > last
        used = min(max(position() - start, 0), len(content))
        content, start, piece = content[used:], start + used, following


def copy_pieces(data: Bytes, pieces: ByteRanges, first: int, following: int) -> bytes:
    """Copy and concatenate the captured bytes of some pieces."""
    buffer = data.data
    begins = pieces.at[first:following]
    ends = (begins + pieces.captured[first:following]).tolist()
    return b"".join([buffer[begin:end] for begin, end in zip(begins.tolist(), ends, strict=True)])
