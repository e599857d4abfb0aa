"""pcapng: sections, interfaces, and packet blocks (draft-ietf-opsawg-pcapng).

A file is a chain of blocks, each with its length at both ends. A section header block begins a section with
its own byte order and interfaces; an interface is known from its description block on. Packets are in
enhanced, simple and obsolete packet blocks. All other blocks (name resolution, statistics, secrets, custom
and unknown ones) and all options except those for time stamps are skipped.
"""

import struct
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from analysis.arrays import Bytes, Ints, ParallelArrays
from analysis.capture.pcap.files.format import PCAPNG, CaptureInterface, Format, column, gather

MAGIC = b"\x0a\x0d\x0d\x0a"  # the type of a section header, the same in both byte orders
INTERFACES_MAX = 4_096  # of one section
BLOCK_BYTES_LEAST = 12
TYPE_AT, LENGTH_AT = 0, 4

_SECTION, _INTERFACE, _OBSOLETE, _SIMPLE, _ENHANCED = 0x0A0D0D0A, 1, 2, 3, 6
_PASSED_OVER = (4, 5, 10, 0xBAD, 0x4000_0BAD)  # names, statistics, secrets, custom blocks
_BYTE_ORDER_MAGIC = 0x1A2B3C4D
_SECTION_BYTES, _INTERFACE_BYTES = 28, 20
_PACKET_AT, _SIMPLE_PACKET_AT = 28, 12  # offset of the packet in its block
_OPTION_END, _OPTION_RESOLUTION, _OPTION_OFFSET = 0, 9, 14
_MICROSECONDS = 6  # the default resolution: 10^-6 s


@dataclass(frozen=True, slots=True)
class Blocks(ParallelArrays):
    """The packets of some blocks."""

    at: Ints  # offset of the block
    begin: Ints  # offset of the packet
    interface: Ints
    time: npt.NDArray[np.uint64]  # in units of the interface
    timed: npt.NDArray[np.bool_]  # simple packet blocks have no time
    length: Ints
    wire_length: Ints
    head: Bytes  # the first bytes from `begin`
    unused: dict[str, int]


@dataclass(frozen=True, slots=True)
class ChainCheck:
    """The result of checking a part of a chain of blocks."""

    good: int  # number of valid records, from the first on
    form: Format  # with the interfaces described in it
    problem: str | None = None  # the problem of the next record
    section: bool = False  # whether another section follows


def begin_section(data: Bytes, offset: int) -> tuple[Format, int] | str:
    """Read a section header. Returns the section's format and its first block's offset, or the problem."""
    header = data[offset : offset + _SECTION_BYTES].tobytes()
    if len(header) < _SECTION_BYTES:
        return f"cut off: {len(header)} bytes of a section header at byte {offset}"
    for order in "<>":
        _, length, magic, major, _ = struct.unpack_from(order + "IIIHH", header)
        if magic != _BYTE_ORDER_MAGIC:
            continue
        end = offset + length
        if length < _SECTION_BYTES or length % 4:
            return f"damaged section header at byte {offset}: length {length}"
        if end > data.size:
            return f"cut off: the section header at byte {offset} needs {end - data.size} bytes more"
        if major != 1:
            return f"the section at byte {offset} is of version {major}; 1 is known"
        if struct.unpack(order + "I", data[end - 4 : end].tobytes())[0] != length:
            return f"damaged section header at byte {offset}: its two lengths differ"
        return Format(PCAPNG, order, ()), end
    return f"damaged section header at byte {offset}: byte order {header[8:12].hex()}"


def check_blocks(data: Bytes, offsets: Ints, following: int, form: Format) -> ChainCheck:
    """Check the blocks of a walk up to the next section, and read the interface descriptions."""
    headers = gather(data, offsets, BLOCK_BYTES_LEAST)
    kind, length = column(headers, TYPE_AT, form.order + "u4"), column(headers, LENGTH_AT, form.order + "u4")
    end = offsets + length
    whole = (length >= BLOCK_BYTES_LEAST) & (length % 4 == 0) & (end <= data.size)
    last = column(gather(data, np.where(whole, end - 4, 0), 4), 0, form.order + "u4")
    stops = np.flatnonzero((kind == _SECTION) | ~whole | (last != length))
    blocks = int(stops[0]) if stops.size else offsets.size
    for row in np.flatnonzero(kind[:blocks] == _INTERFACE).tolist():
        at = int(offsets[row])
        interface = _interface(data[at : int(end[row])].tobytes(), at, form.order)
        if interface is None:
            return ChainCheck(row, form, f"damaged interface description at byte {at}")
        if len(form.interfaces) == INTERFACES_MAX:
            return ChainCheck(row, form, f"more than {INTERFACES_MAX} interfaces in a section, at byte {at}")
        form = replace(form, interfaces=(*form.interfaces, interface))
    if blocks < offsets.size:
        problem = _problem(int(offsets[blocks]), int(length[blocks]), int(last[blocks]), data.size)
        return ChainCheck(blocks, form, *((None, True) if kind[blocks] == _SECTION else (problem, False)))
    tail = data.size - following
    if 0 < tail < BLOCK_BYTES_LEAST:
        return ChainCheck(blocks, form, f"cut off: {tail} bytes of a block header at byte {following}")
    return ChainCheck(blocks, form)


def _problem(at: int, length: int, last: int, size: int) -> str:
    if length < BLOCK_BYTES_LEAST or length % 4:
        return f"damaged block at byte {at}: length {length}"
    if at + length > size:
        return f"cut off: the block at byte {at} needs {at + length - size} bytes more"
    return f"damaged block at byte {at}: its length is {length} at its beginning and {last} at its end"


def _interface(block: bytes, at: int, order: str) -> CaptureInterface | None:
    """Read an interface description; None if it is too short."""
    if len(block) < _INTERFACE_BYTES:
        return None
    link_type, _, snaplen = struct.unpack_from(order + "HHI", block, 8)
    resolution, offset_s = _MICROSECONDS, 0
    option, end = 16, len(block) - 4
    while option + 4 <= end:
        code, length = struct.unpack_from(order + "HH", block, option)
        value = block[option + 4 : min(option + 4 + length, end)]
        if code == _OPTION_END or len(value) < length:
            break
        if code == _OPTION_RESOLUTION and length == 1:
            resolution = value[0]
        elif code == _OPTION_OFFSET and length == 8:
            offset_s = struct.unpack(order + "q", value)[0]
        option += 4 + (length + 3) // 4 * 4
    units_per_s = 2 ** (resolution & 0x7F) if resolution & 0x80 else 10**resolution
    return CaptureInterface(link_type, snaplen, units_per_s, offset_s, at)


def read_blocks(data: Bytes, offsets: Ints, form: Format, head_bytes: int) -> Blocks:
    """Read the packets of a section's blocks, which `check_blocks` accepted."""
    rows = gather(data, offsets, _PACKET_AT + head_bytes)
    word = form.order + "u4"
    kind = column(rows, TYPE_AT, word)
    unused: dict[str, int] = {}
    if not (kind == _ENHANCED).all():
        packets = np.isin(kind, (_ENHANCED, _SIMPLE, _OBSOLETE))
        strange = ~packets & ~np.isin(kind, (_INTERFACE, *_PASSED_OVER))
        unused["blocks of an unknown type"] = int(np.count_nonzero(strange))
        offsets, rows, kind = offsets[packets], rows[packets], kind[packets]
    block_length = column(rows, LENGTH_AT, word)
    blocks = Blocks(
        at=offsets,
        begin=offsets + _PACKET_AT,
        interface=column(rows, 8, word),
        time=column(rows, 12, word).astype(np.uint64) << np.uint64(32)
        | column(rows, 16, word).astype(np.uint64),
        timed=np.ones(offsets.size, np.bool_),
        length=column(rows, 20, word),
        wire_length=column(rows, 24, word),
        head=rows[:, _PACKET_AT:],
        unused=unused,
    )
    other = np.flatnonzero(kind != _ENHANCED)
    if other.size:
        _read_others(data, blocks, rows, kind, form)
    return _usable(blocks, block_length, kind, form)


def _read_others(data: Bytes, blocks: Blocks, rows: Bytes, kind: Ints, form: Format) -> None:
    """Read the fields that simple and obsolete packet blocks have at other offsets than enhanced ones."""
    obsolete, simple = np.flatnonzero(kind == _OBSOLETE), np.flatnonzero(kind == _SIMPLE)
    blocks.interface[obsolete] = column(rows[obsolete], 8, form.order + "u2")
    wire_length = column(rows[simple], 8, form.order + "u4")
    snaplen = form.interfaces[0].snaplen if form.interfaces else 0
    blocks.begin[simple] = blocks.at[simple] + _SIMPLE_PACKET_AT
    blocks.interface[simple] = 0
    blocks.timed[simple] = False
    blocks.wire_length[simple] = wire_length
    blocks.length[simple] = np.minimum(wire_length, snaplen) if snaplen else wire_length
    blocks.head[simple] = gather(data, blocks.begin[simple], blocks.head.shape[1])


def _usable(blocks: Blocks, block_length: Ints, kind: Ints, form: Format) -> Blocks:
    """Remove packets of interfaces that were not described, and packets longer than their block."""
    defined_at = np.array([interface.defined_at for interface in form.interfaces] or [0], np.int64)
    count = len(form.interfaces)
    known = blocks.interface < count
    known &= blocks.at > defined_at[np.where(known, blocks.interface, 0)]
    fits = blocks.begin + blocks.length + 4 <= blocks.at + block_length
    good = known & fits
    unused = blocks.unused | {
        "packets of an interface that was not described": int(np.count_nonzero(~known)),
        "packets longer than their block": int(np.count_nonzero(known & ~fits)),
    }
    return blocks if good.all() else replace(blocks.take(good), unused=unused)
