"""Draws packets: TCP, UDP and others over IP, with options, fragments, tunnels, tags and wrong lengths.

Every function takes a source of randomness and returns bytes. Layouts are written by hand from their RFCs, so
that they do not share a mistake with a library.
"""

import random
import struct
from collections.abc import Callable

IPV4, IPV6, MPLS, PPPOE, BRIDGED = 0x0800, 0x86DD, 0x8847, 0x8864, 0x6558
LLDP = 0x88CC
TCP, UDP, ICMP, EXPERIMENTAL = 6, 17, 1, 253
TUNNELS_MAX = 2
PAYLOAD_MAX = 60

Typed = tuple[int, bytes]
"""An ethertype, and the bytes that follow it."""


def drawn(chance: random.Random, tunnels: int = TUNNELS_MAX) -> Typed:
    """Draw the content behind an Ethernet header: tags, labels, an IP packet and its payload."""
    kind, packet = _ip(chance, tunnels) if chance.random() < 0.97 else (LLDP, b"\x02\x07\x04" + bytes(9))
    if kind != LLDP and chance.random() < 0.15:
        kind, packet = _labelled(chance, kind, packet)
    if kind in _PPP and chance.random() < 0.1:
        kind, packet = PPPOE, b"\x11\0\0\x07" + _sized(_ppp(chance, kind, packet))
    for _ in range(chance.choice((0, 0, 0, 0, 1, 2, 3))):
        tag = chance.choice((0x8100, 0x88A8, 0x9100))
        kind, packet = tag, struct.pack(">HH", chance.randrange(4096), kind) + packet
    return kind, packet


def ethernet(chance: random.Random, kind: int, packet: bytes) -> bytes:
    """Return an Ethernet frame, sometimes with a length and LLC/SNAP in place of the ethertype."""
    addresses = bytes.fromhex("0200000000020200000000 01".replace(" ", ""))
    if chance.random() < 0.1 and len(packet) < 1400:
        return addresses + _sized(snap(kind, packet))
    padding = bytes(max(0, 46 - len(packet))) if chance.random() < 0.3 else b""
    return addresses + struct.pack(">H", kind) + packet + padding


def snap(kind: int, packet: bytes) -> bytes:
    """Return LLC and SNAP (RFC 1042)."""
    return b"\xaa\xaa\x03\0\0\0" + struct.pack(">H", kind) + packet


def _sized(content: bytes) -> bytes:
    return struct.pack(">H", len(content)) + content


_PPP = {IPV4: 0x21, IPV6: 0x57, MPLS: 0x281}


def ppp_protocol(kind: int) -> int | None:
    """Return PPP's number of an ethertype."""
    return _PPP.get(kind)


def _ppp(chance: random.Random, kind: int, packet: bytes) -> bytes:
    protocol = _PPP[kind]
    short = protocol < 0x100 and chance.random() < 0.2
    return (bytes((protocol,)) if short else struct.pack(">H", protocol)) + packet


def _labelled(chance: random.Random, kind: int, packet: bytes) -> Typed:
    """Return an IP packet behind MPLS labels."""
    labels = [chance.randrange(16, 1 << 20) << 12 | 64 for _ in range(chance.randint(1, 3))]
    labels[-1] |= 0x100
    if kind not in (IPV4, IPV6):
        return kind, packet
    return MPLS, struct.pack(f">{len(labels)}I", *labels) + packet


def _ip(chance: random.Random, tunnels: int) -> Typed:
    protocol, content = (
        _tunnel(chance, tunnels - 1) if tunnels and chance.random() < 0.35 else _content(chance)
    )
    return chance.choice((_ipv4, _ipv4, _ipv6))(chance, protocol, content)


def _content(chance: random.Random) -> tuple[int, bytes]:
    payload = chance.randbytes(chance.randint(0, PAYLOAD_MAX))
    kind = chance.choice((TCP, TCP, TCP, UDP, UDP, EXPERIMENTAL))
    if kind == TCP:
        return TCP, _tcp(chance, payload)
    return kind, _udp(chance, chance.randint(20_000, 30_000), payload) if kind == UDP else payload


def _tcp(chance: random.Random, payload: bytes) -> bytes:
    options = b"".join(
        chance.choices(
            (b"\x01", b"\x02\x04\x05\xb4", b"\x03\x03\x07", b"\x04\x02"), k=chance.choice((0, 0, 2, 5))
        )
    )
    options += bytes(-len(options) % 4)
    words = 5 + len(options) // 4
    if chance.random() < 0.03:
        words = chance.choice((3, 4, 15))
    ports = chance.randint(20_000, 60_000), chance.randint(20_000, 60_000)
    numbers = chance.getrandbits(32), chance.getrandbits(32)
    flags = chance.choice((0x02, 0x10, 0x18, 0x11, 0x12))
    return struct.pack(">HHIIBBHHH", *ports, *numbers, words << 4, flags, 512, 0, 0) + options + payload


def _udp(chance: random.Random, port: int, payload: bytes) -> bytes:
    length = 8 + len(payload)
    if chance.random() < 0.04:
        length = chance.choice((3, max(8, length - 5), length + 9))
    return struct.pack(">HHHH", chance.randint(30_000, 60_000), port, length, 0) + payload


def _ipv4(chance: random.Random, protocol: int, content: bytes) -> Typed:
    options = chance.choice((b"", b"", b"", b"\x01" * 4, b"\x07\x07\x04\0\0\0\0\0", b"\x01" * 40))
    total, first, position = 20 + len(options) + len(content), 0x45 + len(options) // 4, 0
    if chance.random() < 0.08:
        position = chance.choice((0x2000, 0x2000, 0x4000, 0x2001, 0x0010))
    lie = chance.random()
    if lie < 0.02:
        total = chance.choice((0, 8, 20, total + 100, total - 1, total - len(content) + 5))
    elif lie < 0.03:
        first = chance.choice((0x41, 0x35, 0x4F))
    addresses = bytes((10, 0, 0, chance.randint(1, 9), 192, 168, 0, chance.randint(1, 9)))
    header = struct.pack(">BBHHHBBH", first, 0, total, chance.randrange(1 << 16), position, 64, protocol, 0)
    return IPV4, header + addresses + options + content


def _ipv6(chance: random.Random, protocol: int, content: bytes) -> Typed:
    packet, following = content, protocol
    inner = chance.choices((43, 44, 60, 51), k=chance.choice((0, 0, 0, 1, 2)))
    for extension in (*inner, *chance.choice(((), (), (0,)))):  # hop-by-hop options come first
        rest = {
            43: b"\0\0\0\0\0\0",
            44: b"\0" + struct.pack(">HI", chance.choice((1, 0, 8, 9)), chance.getrandbits(32)),
            51: b"\x01\0\0" + bytes(8),
        }.get(extension, b"\0\x01\x04\0\0\0\0")
        body = rest if extension == 44 else (bytes((0 if extension != 51 else 1,)) + rest[1:])
        packet = bytes((following,)) + body + packet
        following = extension
    length = len(packet)
    if chance.random() < 0.02:
        length = chance.choice((3, length + 50, max(1, length - 2)))
    head = struct.pack(">IHBB", 6 << 28, length, following, 64)
    return IPV6, head + bytes.fromhex("20010db8") + chance.randbytes(12) + bytes.fromhex(
        "fe80"
    ) + chance.randbytes(14) + packet


def _tunnel(chance: random.Random, tunnels: int) -> tuple[int, bytes]:
    return chance.choice(_TUNNELS)(chance, tunnels)


def _ip_in_ip(chance: random.Random, tunnels: int) -> tuple[int, bytes]:
    kind, packet = _ip(chance, tunnels)
    return 4 if kind == IPV4 else 41, packet


def _gre(chance: random.Random, tunnels: int) -> tuple[int, bytes]:
    kind, packet = _ip(chance, tunnels)
    if chance.random() < 0.2:
        kind, packet = _labelled(chance, kind, packet)
    if chance.random() < 0.4:
        kind, packet = BRIDGED, ethernet(chance, *drawn(chance, tunnels))
    flags = chance.choice((0, 0x2000, 0x8000, 0x1000, 0xB000))
    optional = bytes(4 * (flags >> 12).bit_count())
    return 47, struct.pack(">HH", flags, kind) + optional + packet


def _pptp(chance: random.Random, tunnels: int) -> tuple[int, bytes]:
    packet = b"\xff\x03" + _ppp(chance, *_ip(chance, tunnels))
    flags = chance.choice((0x3001, 0x3081))
    optional = struct.pack(">HH", len(packet), 7) + bytes(8 if flags & 0x80 else 4)
    return 47, struct.pack(">HH", flags, 0x880B) + optional + packet


def _erspan(chance: random.Random, tunnels: int) -> tuple[int, bytes]:
    frame = ethernet(chance, *drawn(chance, tunnels))
    kind, flags, header = chance.choice((
        (0x88BE, 0, b""),
        (0x88BE, 0x1000, b"\x10\x01" + bytes(6)),
        (0x22EB, 0x1000, b"\x20\x01" + bytes(10)),
        (0x22EB, 0x1000, b"\x20\x01" + bytes(9) + b"\x01" + bytes(8)),
    ))  # fmt: skip
    return 47, struct.pack(">HH", flags, kind) + bytes(4 if flags else 0) + header + frame


def _ether_ip(chance: random.Random, tunnels: int) -> tuple[int, bytes]:
    return 97, b"\x30\0" + ethernet(chance, *drawn(chance, tunnels))


def _mpls_in_ip(chance: random.Random, tunnels: int) -> tuple[int, bytes]:
    return 137, _labelled(chance, *_ip(chance, tunnels))[1]


def _vxlan(chance: random.Random, tunnels: int) -> tuple[int, bytes]:
    return UDP, _udp(chance, 4789, b"\x08\0\0\0\0\0\x07\0" + ethernet(chance, *drawn(chance, tunnels)))


def _vxlan_gpe(chance: random.Random, tunnels: int) -> tuple[int, bytes]:
    kind, packet = _ip(chance, tunnels)
    header = struct.pack(">BBBBI", 0x0C, 0, 0, 1 if kind == IPV4 else 2, 0x700)
    return UDP, _udp(chance, 4790, header + packet)


def _geneve(chance: random.Random, tunnels: int) -> tuple[int, bytes]:
    kind, packet = _ip(chance, tunnels)
    if chance.random() < 0.7:
        kind, packet = BRIDGED, ethernet(chance, *drawn(chance, tunnels))
    words = chance.choice((0, 0, 2))
    options = b"\x01\x02\x80\x01" + bytes(4) if words else b""
    return UDP, _udp(chance, 6081, struct.pack(">BBHI", words, 0, kind, 0x700) + options + packet)


_TUNNELS: tuple[Callable[[random.Random, int], tuple[int, bytes]], ...] = (
    _ip_in_ip, _gre, _pptp, _erspan, _ether_ip, _mpls_in_ip, _vxlan, _vxlan_gpe, _geneve
)  # fmt: skip
