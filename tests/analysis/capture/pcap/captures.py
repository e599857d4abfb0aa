"""Captures for tests: written record by record, by the format's description, and TCP segments by hand."""

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

START_NS = 1_700_000_000_123_456_000
SYN, RST, ACK, PSH = 0x02, 0x04, 0x10, 0x08


@dataclass(frozen=True)
class Record:
    """A captured frame; `wire_length` is that on the wire if the frame was cut off."""

    t_ns: int
    data: bytes
    wire_length: int | None = None


def pcap_bytes(
    records: Iterable[Record], *, order: str = "<", nanoseconds: bool = True, link_type: int = 1
) -> bytes:
    """Return the content of a capture file, of Ethernet frames unless stated otherwise."""
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    parts = [struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 262_144, link_type)]
    for record in records:
        seconds, rest = divmod(record.t_ns, 10**9)
        fraction = rest if nanoseconds else rest // 1000
        wire_length = len(record.data) if record.wire_length is None else record.wire_length
        parts.append(struct.pack(order + "IIII", seconds, fraction, len(record.data), wire_length))
        parts.append(record.data)
    return b"".join(parts)


def write_pcap(path: Path, records: Iterable[Record], **how: Any) -> Path:
    """Write a capture file."""
    path.write_bytes(pcap_bytes(records, **how))
    return path


def segment(
    seq: int,
    payload: bytes = b"",
    *,
    flags: int = ACK,
    src: tuple[str, int] = ("10.0.0.1", 40000),
    dst: tuple[str, int] = ("10.0.0.2", 7000),
    ack: int = 0,
) -> bytes:
    """Build an Ethernet frame with an IPv4 TCP segment, no options, checksums 0; IP length 0 if over 64
    KiB.
    """
    addresses = b"".join(bytes(int(part) for part in end[0].split(".")) for end in (src, dst))
    tcp = struct.pack(">HHIIBBHHH", src[1], dst[1], seq % 2**32, ack % 2**32, 5 << 4, flags, 65535, 0, 0)
    length = 20 + len(tcp) + len(payload)
    ip = (
        struct.pack(">BBHHHBBH", 0x45, 0, length if length < 1 << 16 else 0, seq & 0xFFFF, 0, 64, 6, 0)
        + addresses
    )
    return bytes(12) + b"\x08\x00" + ip + tcp + payload


def at_intervals(frames: Iterable[bytes], start_ns: int = START_NS, step_ns: int = 1_000_000) -> list[Record]:
    """Return records of the frames at equal intervals, one millisecond by default."""
    return [Record(start_ns + number * step_ns, frame) for number, frame in enumerate(frames)]


def snapped(record: Record, snaplen: int) -> Record:
    """Truncate a record to a snap length."""
    return Record(record.t_ns, record.data[:snaplen], len(record.data))
