"""Capture files: what the analysis knows of a format, classic pcap's headers, and how to look at bytes as
numbers.

A capture is read in *sections*, each with its own `Format`: the byte order, how records follow each other,
and the interfaces. A classic pcap file is one section with one interface; a pcapng file (`pcapng`) may have
many of both. Records are looked at through overlapping views: a NumPy array with a stride of one byte, so
that a header anywhere in the file is one element of it and a gather of n headers is one indexing operation.

Sources: the drafts "PCAP Capture File Format" (draft-ietf-opsawg-pcap) and "PCAP Now Generic"
(draft-ietf-opsawg-pcapng).
"""

import struct
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.errors import CaptureError

Bytes = npt.NDArray[np.uint8]
Integers = npt.NDArray[np.int64]

FILE_HEADER_BYTES = 24
RECORD_HEADER_BYTES = 16
RECORD_BYTES_MAX = 262_144  # libpcap's own limit (MAXIMUM_SNAPLEN); a header may ask for more, up to:
SNAPLEN_MAX = 16 * 1024 * 1024

_MAGIC = {0xA1B2C3D4: 1_000_000, 0xA1B23C4D: 1_000_000_000}  # time stamps: fractions of a second


@dataclass(frozen=True, slots=True)
class Chain:
    """How to find the next record: the position of a record's length, and how many bytes that excludes."""

    header_bytes: int  # needed to know anything about a record
    length_at: int
    beside: int  # bytes of a record that its length does not count
    least: int  # bytes of any record, so that a length of 0 does not stop the walk


PCAP = "pcap"
PCAPNG = "pcapng"
_CHAINS = {
    PCAP: Chain(header_bytes=RECORD_HEADER_BYTES, length_at=8, beside=RECORD_HEADER_BYTES, least=16),
    PCAPNG: Chain(header_bytes=12, length_at=4, beside=0, least=12),
}


@dataclass(frozen=True, slots=True)
class Interface:
    """An interface where packets were captured, and the meaning of their timestamps and lengths."""

    link_type: int
    snaplen: int  # bytes; 0 is no limit
    units_per_s: int  # of time stamps
    offset_s: int = 0  # added to time stamps
    defined_at: int = -1  # byte of the file: packets before it cannot be of this interface


@dataclass(frozen=True, slots=True)
class Format:
    """How to read the records of one section."""

    kind: str  # PCAP or PCAPNG
    order: str  # struct and NumPy byte order of the record headers: "<" or ">"
    interfaces: tuple[Interface, ...]

    @property
    def chain(self) -> Chain:
        """How records follow each other."""
        return _CHAINS[self.kind]

    @property
    def record_bytes_max(self) -> int:
        """More captured bytes than this cannot be: the record header is damaged. For classic pcap."""
        return max(RECORD_BYTES_MAX, min(self.interfaces[0].snaplen, SNAPLEN_MAX))

    @property
    def fraction_max(self) -> int:
        """Fractions of a second are below this. For classic pcap."""
        return self.interfaces[0].units_per_s


def begins_pcap(content: bytes) -> bool:
    """Whether a file that begins so is a classic pcap file."""
    return any(int.from_bytes(content[:4], order) in _MAGIC for order in ("little", "big"))


def parse_file_header(header: bytes, name: str) -> Format:
    """Read the first 24 bytes of a classic pcap file. Raises CaptureError if they are none of that."""
    if len(header) < FILE_HEADER_BYTES:
        raise CaptureError(f"{name}: {len(header)} bytes are too few for a pcap file header")
    for order in "<>":
        magic, _, _, _, _, snaplen, link_type = struct.unpack(order + "IHHiIII", header[:FILE_HEADER_BYTES])
        if magic in _MAGIC:
            # The upper half may tell of a frame check sequence: draft-ietf-opsawg-pcap, section 4.
            return Format(PCAP, order, (Interface(link_type & 0xFFFF, snaplen, _MAGIC[magic]),))
    raise CaptureError(f"{name}: neither a pcap nor a pcapng file (it begins with {header[:4].hex()})")


def gather(data: Bytes, at: Integers, width: int) -> Bytes:
    """Copy `width` bytes from each offset in `at`: a matrix of len(at) rows. Beyond the end there are zeros.

    One contiguous copy a row is three times as fast as one gather a field: the cache misses once.
    """
    last = data.size - width
    if at.size == 0 or (last >= 0 and int(at.max()) <= last):
        return _gather_inside(data, at, width)
    rows = np.zeros((at.size, width), np.uint8)
    inside = at <= last
    rows[inside] = _gather_inside(data, at[inside], width)
    for row in np.flatnonzero(~inside):  # few: offsets within `width` bytes of the end
        tail = data[at[row] :]
        rows[row, : tail.size] = tail
    return rows


def _gather_inside(data: Bytes, at: Integers, width: int) -> Bytes:
    if at.size == 0 or width == 0:
        return np.zeros((at.size, width), np.uint8)
    overlapping: npt.NDArray[np.void] = np.ndarray((data.size - width + 1,), f"V{width}", data, strides=(1,))
    return overlapping[at].view(np.uint8).reshape(-1, width)


def column(rows: Bytes, at: int, kind: str) -> Integers:
    """Read the field at byte `at` of every row, NumPy type `kind` (">u2", "<u4", "u1", …), as int64."""
    dtype = np.dtype(kind)
    return rows[:, at : at + dtype.itemsize].view(dtype)[:, 0].astype(np.int64)
