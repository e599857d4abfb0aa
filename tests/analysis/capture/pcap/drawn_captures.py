"""Draws captures: drawn packets on link types, in all formats and variants of files."""

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass

from tests.analysis.capture.pcap.blocks import enhanced, interface, obsolete, section, simple
from tests.analysis.capture.pcap.drawn_packets import IPV4, IPV6, MPLS, drawn, ethernet, ppp_protocol, snap

PACKETS = 12
START_S = 1_700_000_000

Link = tuple[int, Callable[[random.Random, int, bytes], bytes | None]]
"""A link type, and its frame for an ethertype and what follows; None if it cannot carry that."""


def _raw(_: random.Random, kind: int, packet: bytes) -> bytes | None:
    return packet if kind in (IPV4, IPV6) else None


def _ppp(framing: bytes) -> Callable[[random.Random, int, bytes], bytes | None]:
    def frame(_: random.Random, kind: int, packet: bytes) -> bytes | None:
        protocol = ppp_protocol(kind)
        return None if protocol is None else framing + struct.pack(">H", protocol) + packet

    return frame


def _family(order: str, ipv6: int) -> Callable[[random.Random, int, bytes], bytes | None]:
    def frame(chance: random.Random, kind: int, packet: bytes) -> bytes | None:
        del chance
        return (
            struct.pack(order + "I", 2 if kind == IPV4 else ipv6) + packet if kind in (IPV4, IPV6) else None
        )

    return frame


def _pktap(chance: random.Random, kind: int, packet: bytes) -> bytes:
    header = bytearray(108)
    struct.pack_into("<III", header, 0, 108, 1, 1)
    return bytes(header) + ethernet(chance, kind, packet)


def _pppoe(_: random.Random, kind: int, packet: bytes) -> bytes | None:
    protocol = ppp_protocol(kind)
    if protocol is None:
        return None
    return struct.pack(">BBHHH", 0x11, 0, 7, len(packet) + 2, protocol) + packet


CARRIED = (IPV4, IPV6, MPLS)
ETHERNET: Link = (1, ethernet)
LINKS: tuple[Link, ...] = (
    ETHERNET, ETHERNET, ETHERNET, ETHERNET,
    (113, lambda _, kind, packet: struct.pack(">HHH8sH", 4, 1, 6, bytes(8), kind) + packet),
    (276, lambda _, kind, packet: struct.pack(">HHIHBB8s", kind, 0, 3, 1, 0, 6, bytes(8)) + packet),
    (101, _raw), (12, _raw),
    (0, _family("<", 30)), (0, _family(">", 28)), (108, _family(">", 24)),
    (9, _ppp(b"")), (9, _ppp(b"\xff\x03")), (50, _ppp(b"\xff\x03")),
    (51, _pppoe),
    (104, lambda _, kind, packet: b"\x0f\0" + struct.pack(">H", kind) + packet if kind in CARRIED else None),
    (100, lambda _, kind, packet: snap(kind, packet) if kind in CARRIED else None),
    (258, _pktap),
    (195, lambda *_: b"\x41\x88\0\xff\xff\xff\xff\0\0"),
)  # fmt: skip


@dataclass(frozen=True)
class Drawn:
    """A drawn packet: a fraction of a second in nanoseconds, captured bytes, and the length on the wire."""

    second: int
    fraction_ns: int
    data: bytes
    wire_length: int


def _packets(chance: random.Random, link: Link) -> list[Drawn]:
    snaplen = chance.choice((262_144, 262_144, 262_144, 262_144, 40, 54, 66, 96, 128))
    found: list[Drawn] = []
    while len(found) < PACKETS:
        frame = link[1](chance, *drawn(chance))
        if frame is not None:
            fraction = chance.choice((0, 1_000, 999_999_999, chance.randrange(10**9)))
            second = START_S + chance.randrange(100)
            found.append(Drawn(second, fraction, frame[:snaplen], len(frame)))
    return found


def pcap(chance: random.Random) -> bytes:
    """Draw a classic pcap file of one of the variants."""
    link, order = chance.choice(LINKS), chance.choice("<>")
    magic, version, extra, exchanged, unit_ns, network = chance.choice((
        (0xA1B2C3D4, (2, 4), b"", False, 1000, link[0]),
        (0xA1B23C4D, (2, 4), b"", False, 1, link[0]),
        (0xA1B2C3D4, (2, 2), b"", True, 1000, link[0]),
        (0xA1B2C3D4, (2, 3), b"", False, 1000, link[0]),
        (0xA1B2C3D4, (2, 3), b"", True, 1000, link[0]),
        (0xA1B2C3D4, (543, 0), b"", True, 1000, link[0]),
        (0xA1B2C3D4, (2, 2), b"", True, 1, 6),  # AIX
        (0xA1B2CD34, (2, 4), struct.pack(order + "IHBB", 2, 0x800, 0, 0), False, 1000, link[0]),
        (0xA1B2CD34, (2, 4), struct.pack(order + "IH6x", 2, 0x800), False, 1000, link[0]),
        (0xA1B2C3D4, (2, 4), struct.pack(order + "IHBB", 2, 0x800, 0, 0), False, 1000, link[0]),
        (0xA1B2C3D4, (2, 4), struct.pack(order + "I", 0x9FBFB601), False, 1000, link[0]),
        (0x1C0001AB, (2, 4), b"", False, 1000, link[0]),
    ))  # fmt: skip
    link = ETHERNET if network == 6 else link
    parts = []
    for number, one in enumerate(_packets(chance, link)):
        lengths = (len(one.data), one.wire_length)
        second, fraction = one.second, one.fraction_ns // unit_ns
        if number > 3 and chance.random() < 0.1:  # not in the records by which a variant is recognised
            second, fraction = second - 1, 10**9 // unit_ns + (0 if chance.random() < 0.5 else fraction)
        parts.append(
            struct.pack(order + "IIII", second, fraction, *(lengths[::-1] if exchanged else lengths))
        )
        parts += [extra, one.data]
    records = b"".join(parts)
    head = struct.pack(order + "IHHiIII", magic, *version, 0, 0, 262_144, network)
    return head + (struct.pack(order + "I", len(records)) if magic >> 16 == 0x1C00 else b"") + records


def pcapng(chance: random.Random) -> bytes:
    """Draw a section of pcapng with a few interfaces."""
    order = chance.choice("<>")
    parts = [section(order, comment=b"x" * chance.randrange(4))]
    interfaces = []
    for _ in range(chance.randint(1, 3)):
        link, resolution = chance.choice(LINKS), chance.choice((None, 3, 6, 9, 0x8A, 0x94))
        offset_s = chance.choice((None, None, 1_000))
        parts.append(interface(link[0], order=order, resolution=resolution, offset_s=offset_s))
        units = (
            10**6 if resolution is None else 2 ** (resolution & 127) if resolution > 127 else 10**resolution
        )
        interfaces.append((link, units, offset_s or 0))
    for number, (link, units, offset_s) in enumerate(interfaces):
        for one in _packets(chance, link):
            time = (one.second - offset_s) * units + one.fraction_ns * units // 10**9
            kind = chance.random()
            if kind < 0.1 and one.wire_length == len(one.data):
                parts.append(obsolete(one.data, time, order=order, number=number))
            elif kind < 0.15 and number == 0 and one.wire_length == len(one.data):
                parts.append(simple(one.data, order=order))
            else:
                parts.append(
                    enhanced(one.data, time, order=order, number=number, wire_length=one.wire_length)
                )
    return b"".join(parts)
