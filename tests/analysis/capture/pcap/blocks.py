"""pcapng files for tests: written block by block, by the format's description (draft-ietf-opsawg-pcapng)."""

import struct

ETHERNET = 1
COMMENT, TS_RESOLUTION, TS_OFFSET = 1, 9, 14


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    """Any block: its length stands at both ends, and all is padded to 4 bytes."""
    body += bytes(-len(body) % 4)
    length = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + length + body + length


def options(found: dict[int, bytes], order: str = "<") -> bytes:
    """Encode a list of options with its end marker."""
    parts = [
        struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)
        for code, value in found.items()
    ]
    return b"".join(parts) + bytes(4) if parts else b""


def section(order: str = "<", comment: bytes = b"") -> bytes:
    """Encode a section header without length, as most programs write it."""
    said = options({COMMENT: comment} if comment else {}, order)
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1) + said, order)


def interface(
    link_type: int = ETHERNET,
    *,
    order: str = "<",
    snaplen: int = 0,
    resolution: int | None = None,
    offset_s: int | None = None,
) -> bytes:
    """Encode an interface description. resolution: as in the file, 0x80 and above for powers of 2."""
    found = {COMMENT: b"an interface"}
    if resolution is not None:
        found[TS_RESOLUTION] = bytes([resolution])
    if offset_s is not None:
        found[TS_OFFSET] = struct.pack(order + "q", offset_s)
    return block(1, struct.pack(order + "HHI", link_type, 0, snaplen) + options(found, order), order)


def enhanced(
    frame: bytes,
    time: int,
    *,
    order: str = "<",
    number: int = 0,
    wire_length: int | None = None,
    comment: bytes = b"",
) -> bytes:
    """Encode an enhanced packet block with `time` in units of interface `number`."""
    lengths = len(frame), len(frame) if wire_length is None else wire_length
    head = struct.pack(order + "IIIII", number, time >> 32, time & 0xFFFFFFFF, *lengths)
    said = options({COMMENT: comment} if comment else {}, order)
    return block(6, head + frame + bytes(-len(frame) % 4) + said, order)


def obsolete(frame: bytes, time: int, *, order: str = "<", number: int = 0, drops: int = 0) -> bytes:
    """Encode an obsolete packet block."""
    head = struct.pack(order + "HHIIII", number, drops, time >> 32, time & 0xFFFFFFFF, *(2 * [len(frame)]))
    return block(2, head + frame, order)


def simple(frame: bytes, *, order: str = "<", wire_length: int | None = None) -> bytes:
    """Encode a simple packet block, which has no time."""
    return block(
        3, struct.pack(order + "I", len(frame) if wire_length is None else wire_length) + frame, order
    )
