"""Frames: how messages stand in a byte stream, and the incremental reader that takes them out again.

A frame is an 8-byte header, big-endian, and a body. The reader takes chunks of any size, down to single
bytes, and gives whole frames as memory views: of the chunk itself where a frame lies within one chunk, of
joined bytes where it straddles several. It holds at most one unfinished frame, whose length is bounded. What
is in a body is not known here; see `node.core.layout`.
"""

import struct
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
FRAME_LIMIT_BYTES = 1 << 20  # default bound on a whole frame, header included


class Frame(NamedTuple):
    """One frame. `whole` has the header too, for passing the frame on as it came; `body` is a part of it."""

    type: int
    body: memoryview
    whole: memoryview


def encode_header(message_type: int, body_bytes: int, limit_bytes: int = FRAME_LIMIT_BYTES) -> bytes:
    """The header of a frame with a body of `body_bytes`. Raises LocalProtocolError if it is too long."""
    if HEADER_BYTES + body_bytes > limit_bytes:
        raise LocalProtocolError(
            f"a frame of {HEADER_BYTES + body_bytes} bytes is over the limit of {limit_bytes}"
        )
    return HEADER.pack(HEADER_BYTES - LENGTH_BYTES + body_bytes, VERSION, message_type, 0)


def read_header(view: memoryview, start: int, limit_bytes: int) -> tuple[int, int]:
    """Length of the whole frame at `start`, and its type. Raises RemoteProtocolError."""
    length, version, message_type, flags = HEADER.unpack_from(view, start)
    if version != VERSION:
        raise RemoteProtocolError(f"protocol version {version}, expected {VERSION}")
    if flags != 0:
        raise RemoteProtocolError(f"unknown flags {flags:#06x}")
    if not HEADER_BYTES - LENGTH_BYTES <= length <= limit_bytes - LENGTH_BYTES:
        raise RemoteProtocolError(f"frame length {length} outside 4 to {limit_bytes - LENGTH_BYTES}")
    return LENGTH_BYTES + length, message_type


class FrameReader:
    """Takes chunks, gives frames. After it raised, it is of no more use: the connection has to be closed."""

    __slots__ = ("_held", "_limit_bytes", "_parts", "_wanted")

    def __init__(self, limit_bytes: int = FRAME_LIMIT_BYTES) -> None:
        self._limit_bytes = limit_bytes
        self._parts: list[bytes | memoryview] = []  # of the unfinished frame
        self._held = 0  # bytes in _parts
        self._wanted = HEADER_BYTES  # bytes before there is anything to do

    def feed(self, chunk: bytes) -> Iterator[Frame]:
        """The frames that this chunk completes. Raises RemoteProtocolError at the first bad header.

        Frames are views of `chunk` where possible, so it must not change afterwards. The iterator has to be
        used up before the next chunk is fed.
        """
        view = memoryview(chunk)
        if self._held:
            self._parts.append(view)
            self._held += len(view)
            if self._held < self._wanted:
                return
            view = memoryview(b"".join(self._parts))
            self._parts.clear()
            self._held = 0
        start, end = 0, len(view)
        self._wanted = HEADER_BYTES
        while end - start >= HEADER_BYTES:
            length, message_type = read_header(view, start, self._limit_bytes)
            if end - start < length:
                self._wanted = length
                break
            whole = view[start : start + length]
            start += length
            yield Frame(message_type, whole[HEADER_BYTES:], whole)
        if start < end:
            self._parts.append(view[start:])
            self._held = end - start

    @property
    def held_bytes(self) -> int:
        """Bytes of a frame that is not yet whole."""
        return self._held
