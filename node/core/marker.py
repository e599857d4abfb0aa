"""Marker at the start of an event's payload, which identifies the events of any program.

Big-endian: magic, stream, sequence number from 1 on, time of publication (CLOCK_REALTIME, nanoseconds), and
the CRC-32 of the whole payload with this field as zero. Zeros pad the payload to the event's size. This
module needs only the standard library: `cutset_client` contains this same file.
"""

import struct
import zlib
from dataclasses import dataclass

MAGIC = b"CutM"
MARKER = struct.Struct(">4sIQQI")
MARKER_BYTES = MARKER.size
_BEFORE_CRC = MARKER_BYTES - 4
_NO_CRC = bytes(4)


@dataclass(frozen=True, slots=True)
class Marker:
    """Contents of a payload's marker. is_whole: its CRC is right."""

    stream: int
    seq: int
    time_ns: int
    is_whole: bool


def marked(stream: int, seq: int, size_bytes: int, time_ns: int) -> bytes:
    """Return a payload of this size, which is at least MARKER_BYTES."""
    padding = bytes(size_bytes - MARKER_BYTES)
    head = MARKER.pack(MAGIC, stream, seq, time_ns, 0)
    crc = zlib.crc32(padding, zlib.crc32(head))
    return head[:_BEFORE_CRC] + crc.to_bytes(4, "big") + padding


def read_marker(payload: bytes) -> Marker | None:
    """Return the marker of a payload; None if it has none."""
    if len(payload) < MARKER_BYTES or payload[:4] != MAGIC:
        return None
    _, stream, seq, time_ns, crc = MARKER.unpack_from(payload)
    found = zlib.crc32(payload[:_BEFORE_CRC])
    found = zlib.crc32(_NO_CRC, found)
    found = zlib.crc32(memoryview(payload)[MARKER_BYTES:], found)
    return Marker(stream, seq, time_ns, found == crc)
