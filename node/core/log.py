"""Format of the log on disk: a machine's segments as files. Pure: bytes in, bytes out.

A segment is one file: a header, records and, once it is complete, an end mark. A record is a frame of the
protocol's codec after a prefix with its length, its number within the segment and a CRC-32. The CRC continues
that of the segment's header, so that data of another file in a reused block is not taken for a record. All
numbers are big-endian.

  header    8 bytes magic, u32 version, u64 first, u64 last: the segments that this one replaces; u32 CRC
  record    u32 bytes of the frame, u64 number from 1 on, u32 CRC of these two and the frame, the frame
  end mark  a record with a frame of 0 bytes

`scan` reads a file up to the first invalid byte and reports its position and the problem; it ignores
everything after it. The position decides whether that is the torn tail of a crash or damage: only the last
segment may lack its end mark (`node.tcp.log_files`).
"""

import struct
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from node.core.errors import RemoteProtocolError, StorageError
from node.core.framing import FRAME_LIMIT_BYTES, frames_in
from node.core.message_layout import Codec

MAGIC = b"CUTSTLOG"
VERSION = 1
HEADER = struct.Struct(">8sIQQ")
CRC = struct.Struct(">I")
HEADER_BYTES = HEADER.size + CRC.size
PREFIX = struct.Struct(">IQ")
PREFIX_BYTES = PREFIX.size + CRC.size


@dataclass(frozen=True, slots=True)
class SegmentHeader:
    """The machine's segments in this file: one, or several that a rewrite merged."""

    first: int
    last: int

    def encode(self) -> bytes:
        """Encode the header at the start of the file."""
        data = HEADER.pack(MAGIC, VERSION, self.first, self.last)
        return data + CRC.pack(zlib.crc32(data))


@dataclass(frozen=True, slots=True)
class SegmentScan:
    """The valid part of a segment's bytes: all before `end`. `problem` describes what follows it, if
    anything.
    """

    header: SegmentHeader | None
    frames: Sequence[memoryview]
    end: int
    closed: bool  # the end mark is there
    problem: str = ""


class LogRecordWriter:
    """Encodes the records of one segment in order. `number` is that of the next record."""

    def __init__(self, header: SegmentHeader, number: int = 1) -> None:
        self.number = number
        self._seed = zlib.crc32(header.encode())

    def encode(
        self, codec: Codec, message: Any, limit_bytes: int = FRAME_LIMIT_BYTES
    ) -> list[bytes | memoryview]:
        """Encode a message's record as buffers, to be written one after the other."""
        return self._record(codec.encode(message, limit_bytes))

    def encode_end(self) -> bytes:
        """Encode the end mark of the segment, after its last record."""
        return b"".join(self._record([]))

    def _record(self, frame: list[bytes | memoryview]) -> list[bytes | memoryview]:
        head = PREFIX.pack(sum(map(len, frame)), self.number)
        self.number += 1
        crc = zlib.crc32(head, self._seed)
        for buffer in frame:
            crc = zlib.crc32(buffer, crc)
        return [head + CRC.pack(crc), *frame]


def encode_segment(
    codec: Codec, header: SegmentHeader, messages: Iterable[Any], limit_bytes: int = FRAME_LIMIT_BYTES
) -> bytes:
    """Encode a whole, closed segment with these messages.

    limit_bytes: of a frame; LocalProtocolError is raised for a longer message.
    """
    writer = LogRecordWriter(header)
    records = [buffer for message in messages for buffer in writer.encode(codec, message, limit_bytes)]
    return b"".join([header.encode(), *records, writer.encode_end()])


def scan_header(data: bytes | memoryview) -> SegmentHeader | None:
    """Return the header at the start of a segment, or None if it is incomplete or corrupt.

    Raises StorageError for another version.
    """
    if len(data) < HEADER_BYTES:
        return None
    (crc,) = CRC.unpack_from(data, HEADER.size)
    magic, version, first, last = HEADER.unpack_from(data)
    if magic != MAGIC or crc != zlib.crc32(data[: HEADER.size]):
        return None
    if version != VERSION:
        raise StorageError(f"a log of version {version}; this program reads version {VERSION}")
    return SegmentHeader(first, last)


def scan(data: bytes | memoryview, limit_bytes: int = FRAME_LIMIT_BYTES) -> SegmentScan:
    """Return the valid part of a segment's bytes. `limit_bytes` bounds a frame. Raises as `scan_header`."""
    view = memoryview(data)
    header = scan_header(view)
    if header is None:
        return SegmentScan(None, (), 0, False, "no whole header")
    seed = zlib.crc32(view[:HEADER_BYTES])
    frames: list[memoryview] = []
    at = HEADER_BYTES
    while at < len(view):
        frame, problem = _record_at(view, at, len(frames) + 1, seed, limit_bytes)
        if frame is None:
            return SegmentScan(header, frames, at, False, problem)
        at += PREFIX_BYTES + len(frame)
        if not len(frame):
            problem = f"{len(view) - at} bytes after the end mark" if at < len(view) else ""
            return SegmentScan(header, frames, at, True, problem)
        frames.append(frame)
    return SegmentScan(header, frames, at, False)


def decode_frames(codec: Codec, frames: Iterable[memoryview]) -> list[Any]:
    """Decode the messages of a scan's frames; they own their bytes.

    Raises StorageError for a complete frame that is not a message: another version wrote it.
    """
    messages: list[Any] = []
    for frame in frames:
        try:
            messages.extend(codec.decode(each) for each in frames_in(bytes(frame), len(frame)))
        except RemoteProtocolError as error:
            raise StorageError(
                f"record {len(messages) + 1} is no message of this version: {error}"
            ) from error
    return messages


def _record_at(
    view: memoryview, at: int, number: int, seed: int, limit_bytes: int
) -> tuple[memoryview | None, str]:
    """Return the frame of the record at an offset, or what is wrong with it."""
    start = at + PREFIX_BYTES
    if start > len(view):
        return None, f"record {number} at byte {at} is cut short"
    length, found = PREFIX.unpack_from(view, at)
    if length > limit_bytes or found != number:
        return None, f"record {number} at byte {at} does not start as one"
    if start + length > len(view):
        return None, f"record {number} at byte {at} is cut short"
    frame = view[start : start + length]
    (crc,) = CRC.unpack_from(view, at + PREFIX.size)
    if crc != zlib.crc32(frame, zlib.crc32(view[at : at + PREFIX.size], seed)):
        return None, f"record {number} at byte {at} is corrupt (CRC)"
    return frame, ""
