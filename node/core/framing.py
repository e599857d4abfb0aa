"""Framing of messages in a byte stream.

A frame is an 8-byte header, big-endian, and a body. Its length is bounded. The body is opaque here; see
`node.core.message_layout`. Frames are returned as memory views: nothing is copied.

`FrameBuffer` owns the memory that a socket reads into. `room` returns the space for the next bytes, `filled`
the frames that became complete, as views of that memory. Frames that are retained (a proxy's history) keep
their buffer, so nothing is copied between the socket and the history. A full buffer is replaced, and the
beginning of an unfinished frame moves to the new one. Buffers start small and grow with the bytes per read,
so an idle connection costs little. Large ones are mapped in huge pages if the kernel has them: a proxy
retains everything it receives, and allocating its memory in small pages took a third of its time. Large
buffers without retained frames, as in a client, are used again, because fresh memory has to be zeroed first.
"""

import contextlib
import mmap
import struct
import sys
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from node.core.errors import LocalProtocolError, RemoteProtocolError

VERSION = 1
HEADER_FIELDS = (  # name, struct's format, unit, meaning
    ("length", "I", "bytes", "of what follows this field: 4 and the body"),
    ("version", "B", "", f"of the protocol: {VERSION}"),
    ("type", "B", "", "of the message"),
    ("flags", "H", "", "0"),
)
HEADER = struct.Struct(">" + "".join(form for _, form, _, _ in HEADER_FIELDS))
HEADER_BYTES = HEADER.size
LENGTH_BYTES = 4  # the length field does not count itself
FRAME_LIMIT_BYTES = 1 << 20  # default limit of a whole frame, header included
ENVELOPE_BYTES = 1_024  # at most; the fields around an application's content in a frame
FIRST_BYTES = 4_096
LARGEST_BYTES = 1 << 21  # unless a frame is larger
MAPPED_FROM_BYTES = 1 << 21  # a huge page
REUSED = 6  # large buffers of a connection that may be used again; only frames refer to older ones
GROWTH = 4
FEW_READS = 16  # reads: if they fill a buffer, the next one is larger


class Frame(NamedTuple):
    """One frame. `whole` includes the header, for forwarding the frame unchanged; `body` is a part of it."""

    type: int
    body: memoryview
    whole: memoryview


def refuse_longer(content: bytes, limit_bytes: int) -> None:
    """Raise ValueError if an application's content cannot fit into a frame."""
    most = limit_bytes - ENVELOPE_BYTES
    if len(content) > most:
        raise ValueError(f"content of {len(content):,} bytes is over the limit of {most:,}: cut it in pieces")


def encode_header(message_type: int, body_bytes: int, limit_bytes: int = FRAME_LIMIT_BYTES) -> bytes:
    """Encode the header of a frame with `body_bytes`. Raises LocalProtocolError if the frame is too long."""
    if HEADER_BYTES + body_bytes > limit_bytes:
        raise LocalProtocolError(
            f"a frame of {HEADER_BYTES + body_bytes} bytes is over the limit of {limit_bytes}"
        )
    return HEADER.pack(HEADER_BYTES - LENGTH_BYTES + body_bytes, VERSION, message_type, 0)


def read_header(view: memoryview, start: int, limit_bytes: int) -> tuple[int, int]:
    """Return the length of the whole frame at `start`, and its type. Raises RemoteProtocolError."""
    length, version, message_type, flags = HEADER.unpack_from(view, start)
    if version != VERSION:
        raise RemoteProtocolError(f"protocol version {version}, expected {VERSION}")
    if flags != 0:
        raise RemoteProtocolError(f"unknown flags {flags:#06x}")
    if not HEADER_BYTES - LENGTH_BYTES <= length <= limit_bytes - LENGTH_BYTES:
        raise RemoteProtocolError(f"frame length {length} outside 4 to {limit_bytes - LENGTH_BYTES}")
    return LENGTH_BYTES + length, message_type


def frames_in(data: bytes | memoryview, limit_bytes: int = FRAME_LIMIT_BYTES) -> Iterator[Frame]:
    """Yield the complete frames at the beginning of `data`, as views of it, up to an unfinished one.

    Raises RemoteProtocolError at the first bad header.
    """
    view, start = memoryview(data), 0
    while len(view) - start >= HEADER_BYTES:
        length, message_type = read_header(view, start, limit_bytes)
        if len(view) - start < length:
            return
        whole = view[start : start + length]
        start += length
        yield Frame(message_type, whole[HEADER_BYTES:], whole)


class FrameBuffer:
    """The receive buffer of one connection. After it raises, the connection must be closed."""

    __slots__ = ("_end", "_large", "_limit_bytes", "_size", "_start", "_view", "_wanted")

    def __init__(self, limit_bytes: int = FRAME_LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._size = FIRST_BYTES
        self._view = memoryview(bytearray(FIRST_BYTES))
        self._large: deque[mmap.mmap] = deque()  # the latest ones, oldest first
        self._start = 0  # of the unfinished frame
        self._end = 0  # of the filled part
        self._wanted = (
            HEADER_BYTES  # bytes from start on that are needed before a frame or header is complete
        )

    def room(self) -> memoryview:
        """Return the space for the next bytes; never empty. The caller passes their number to `filled`."""
        if self._end == len(self._view) or self._start + self._wanted > len(self._view):
            held = self._view[self._start : self._end]
            view = memoryview(self._memory(max(self._size, self._wanted)))
            view[: len(held)] = held
            self._view, self._start, self._end = view, 0, len(held)
        return self._view[self._end :]

    def filled(self, count: int) -> Iterator[Frame]:
        """Yield the frames that the next `count` bytes complete. Raises RemoteProtocolError at a bad header.

        The iterator must be exhausted before the next call of `room`.
        """
        self._end += count
        if count * FEW_READS >= self._size:
            self._size = min(self._size * GROWTH, LARGEST_BYTES)
        view = self._view.toreadonly()
        for frame in frames_in(view[self._start : self._end], self._limit_bytes):
            self._start += len(frame.whole)
            yield frame
        has_header = self._end - self._start >= HEADER_BYTES
        self._wanted = read_header(view, self._start, self._limit_bytes)[0] if has_header else HEADER_BYTES

    def _memory(self, size: int) -> bytearray | mmap.mmap:
        """Return memory for a buffer. Memory that is not used again is freed with the last frame in it."""
        if size < MAPPED_FROM_BYTES:
            return bytearray(size)
        if self._large and len(self._large[0]) >= size and _references(self._large) == _UNUSED:
            mapped = self._large.popleft()
        else:
            mapped = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            with contextlib.suppress(OSError):  # a kernel without huge pages
                mapped.madvise(mmap.MADV_HUGEPAGE)
        self._large.append(mapped)
        if len(self._large) > REUSED:
            self._large.popleft()
        return mapped


def _references(large: deque[mmap.mmap]) -> int:
    """Return the number of references to the first buffer; each view of it counts."""
    return sys.getrefcount(large[0])


_UNUSED = _references(deque([mmap.mmap(-1, mmap.PAGESIZE)]))
