"""Decodes TCP directions segment by segment, as `analysis.capture.pcap` decodes whole captures.

A direction keeps the offset of its next byte, the head of its current frame, and copies of out-of-order
segments; payload is skipped. It yields the same messages with the same times as the complete analysis: a byte
has the time of its first arrival, a message is complete when it and everything before it has arrived, and
lost bytes end the direction. Lost bytes cannot be recognised here, so a direction is abandoned when it holds
more than HELD_BYTES_MAX after a gap. A frame header beyond the snap length ends a direction too.
"""

from bisect import insort
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from analysis.capture.pcap.reassemble import RST, SYN, WINDOW_BYTES_MAX
from node.core.framing import FRAME_LIMIT_BYTES, HEADER, HEADER_BYTES, LENGTH_BYTES, VERSION
from node.core.message_layout import MessageLayout

HELD_BYTES_MAX = 16 << 20
REACH_BYTES = 4
_SEQUENCE = 1 << 32
_COVERED = "covered"


@dataclass(frozen=True, slots=True)
class CapturedSegment:
    """A segment of one direction. content: the captured part of its payload."""

    t_ns: int
    seq: int
    flags: int
    length: int
    content: memoryview


@dataclass(frozen=True, slots=True)
class DecodedMessage:
    """A complete message: its fixed head, and for sparse batches the number of covered sequence numbers."""

    name: str
    t_complete_ns: int
    head: Mapping[str, int]
    covered: int | None = None


class LiveDirection:
    """Decodes one direction between two ports, which may have several connections in succession."""

    def __init__(self, wanted: Mapping[int, MessageLayout]) -> None:
        self._wanted = wanted
        self._isn: int | None = None  # the SYN's sequence number; segments before it cannot be decoded
        self._begin(0)
        self.stopped: str | None = "the beginning of the connection is not in the capture"

    def _begin(self, isn: int) -> None:
        self._last_seq = (isn + 1) % _SEQUENCE
        self._last_position = 0
        self._there = 0  # contiguous bytes of the stream that have arrived
        self._t_ns = 0  # arrival time of the last of them
        self._held: list[tuple[int, int, bytes]] = []  # start, end, captured bytes; disjoint
        self._held_bytes = 0
        self._frame_at = 0
        self._head = bytearray()
        self._head_bytes = HEADER_BYTES  # wanted bytes of the frame's beginning
        self._frame_end: int | None = None
        self._layout: MessageLayout | None = None
        self.stopped = None

    def feed(self, segment: CapturedSegment) -> Iterator[DecodedMessage]:
        """Yield the messages that a segment completes. Segments must be in capture order."""
        seq = segment.seq
        if segment.flags & SYN:
            if self._isn != seq:
                self._isn = seq
                self._begin(seq)
            seq = (seq + 1) % _SEQUENCE
        if self.stopped:
            return
        start = self._unwrap(seq)
        end = start + segment.length
        if not segment.length or segment.flags & RST or end <= self._there or start < 0:
            return
        if start > self._there:
            self._hold(start, end, segment)
            return
        self._t_ns = max(self._t_ns, segment.t_ns)
        while not self.stopped and self._there < end:
            until = min(end, self._held[0][0]) if self._held else end  # held bytes arrived earlier
            yield from self._take(start, until, segment.content[: until - start])
            while self._held and self._held[0][0] == self._there and not self.stopped:
                first, following, content = self._held.pop(0)
                self._held_bytes -= len(content)
                yield from self._take(first, following, memoryview(content))

    def _unwrap(self, seq: int) -> int:
        """Return the stream offset, within 2 GiB of the previous one (RFC 9293, section 3.4)."""
        step = (seq - self._last_seq + (_SEQUENCE >> 1)) % _SEQUENCE - (_SEQUENCE >> 1)
        self._last_seq, self._last_position = seq, self._last_position + step
        return self._last_position

    def _hold(self, start: int, end: int, segment: CapturedSegment) -> None:
        if start > self._there + WINDOW_BYTES_MAX:
            return
        at = start
        for first, following, _ in [*self._held, (end, end, b"")]:  # only bytes that are not held yet
            if at < min(first, end):
                content = bytes(segment.content[at - start : min(first, end) - start])
                self._held_bytes += len(content)
                insort(self._held, (at, min(first, end), content))
            at = max(at, following)
        if self._held_bytes > HELD_BYTES_MAX:
            self._stop(f"bytes {self._there} to {self._held[0][0]} are not in the capture")

    def _stop(self, why: str) -> None:
        self.stopped = why
        self._held.clear()
        self._held_bytes = 0

    def _take(self, start: int, end: int, content: memoryview) -> Iterator[DecodedMessage]:
        """Read bytes [start, end); those before `_there` were read already."""
        while True:
            if self._frame_end is not None and len(self._head) == self._head_bytes:
                if end < self._frame_end:
                    break
                if self._layout is not None:
                    yield self._message(self._layout)
                self._next_frame(self._frame_end)
            position = self._frame_at + len(self._head)
            if position >= end:
                break
            at = position - start
            piece = content[at : at + self._head_bytes - len(self._head)]
            if not piece:
                if self._frame_end is None:
                    self._stop(f"bytes from {position} on are beyond the snap length")
                    return
                self._go_without_rest()
                continue
            self._head += piece
            if len(self._head) == self._head_bytes and not self._read_head():
                return
        self._there = end

    def _go_without_rest(self) -> None:
        """Continue after the snap length truncated a frame; without its head the frame has no message."""
        head_bytes = HEADER_BYTES + self._layout.head.size if self._layout is not None else HEADER_BYTES
        if len(self._head) < head_bytes:
            self._layout, head_bytes = None, HEADER_BYTES
        del self._head[head_bytes:]
        self._head_bytes = head_bytes

    def _next_frame(self, at: int) -> None:
        self._frame_at = at
        self._head.clear()
        self._head_bytes = HEADER_BYTES
        self._frame_end, self._layout = None, None

    def _read_head(self) -> bool:
        """Read the wanted bytes, and determine the next ones. Returns False if this is not a frame."""
        if self._frame_end is None:
            length, version, kind, flags = HEADER.unpack_from(self._head)
            whole = length + LENGTH_BYTES
            if version != VERSION or flags or not HEADER_BYTES <= whole <= FRAME_LIMIT_BYTES:
                self._stop(f"no frame header at byte {self._frame_at}")
                return False
            self._frame_end = self._frame_at + whole
            layout = self._wanted.get(kind)
            if layout is not None and whole >= HEADER_BYTES + layout.head.size:
                self._layout = layout
                self._head_bytes = HEADER_BYTES + layout.head.size
        elif self._layout is not None and self._layout.summed(_COVERED):
            count = self._fields(self._layout)["count"]
            wanted = HEADER_BYTES + self._layout.head.size + REACH_BYTES * count
            if wanted <= self._frame_end - self._frame_at:
                self._head_bytes = wanted
        return True

    def _fields(self, layout: MessageLayout) -> dict[str, int]:
        values = layout.head.unpack_from(self._head, HEADER_BYTES)
        fields = zip(layout.fields, values, strict=True)
        return {column: value for field, value in fields for column in field.columns}

    def _message(self, layout: MessageLayout) -> DecodedMessage:
        fields, covered = self._fields(layout), None
        reaches = memoryview(self._head)[HEADER_BYTES + layout.head.size :]
        if reaches:
            covered = sum(
                int.from_bytes(reaches[at : at + REACH_BYTES]) for at in range(0, len(reaches), REACH_BYTES)
            )
        reaches.release()
        return DecodedMessage(layout.name, self._t_ns, fields, covered)
