"""Offloaded frames and the MTU-sized segments that they stand for.

A frame here is what a packet socket with PACKET_VNET_HDR receives and sends: the 10 bytes of a
`virtio_net_hdr`, then the Ethernet frame. A TCP (or UDP) sender with offloads sends one frame of up to
64 KiB, to be segmented later every `gso_size` bytes of payload; its checksum is partial. `segmentation` finds
where to cut, and `cut` builds the frame of some consecutive segments, exactly as the kernel would have cut it
(Linux `tcp_gso_segment`, `__udp_gso_segment`, `inet_gso_segment`): lengths, IP identification, TCP sequence
number and flags, checksums. It leaves a partial checksum partial; the vnet header marks it as such.
`damaged` completes the checksum before it flips a bit, so that the receiver sees it.
"""

from random import Random
from struct import Struct
from typing import NamedTuple

from testbed.capturing.icmp import internet_checksum
from topologies.link_parameters import ETHERNET_BYTES

VNET_BYTES = 10  # struct virtio_net_hdr: flags, gso_type, hdr_len, gso_size, csum_start, csum_offset
GSO_TYPE = 1  # offset in the vnet header
GSO_TCP_V4, GSO_TCP_V6, GSO_UDP_L4 = 1, 4, 5
GSO_ECN = 0x80  # a flag beside the type

_KNOWN_GSO_TYPES = frozenset({GSO_TCP_V4, GSO_TCP_V6, GSO_UDP_L4})
_VNET = Struct("=BBHHHH")
_U16 = Struct("!H")
_U32 = Struct("!I")
_ETHERTYPE_IPV4, _ETHERTYPE_IPV6 = 0x0800, 0x86DD
_IPV6_BYTES = 40
_NEEDS_CHECKSUM = 1  # virtio_net_hdr.flags
_TCP_FIN_PSH, _TCP_CWR = 0x09, 0x80


class Segmentation(NamedTuple):
    """The segmentation of an offloaded frame: each segment has `header_bytes` and up to `payload_bytes`."""

    header_bytes: int  # Ethernet, IP and transport header, repeated in every segment
    payload_bytes: int
    segments: int

    def wire_bytes(self, frame: bytes, first: int, end: int) -> int:
        """Return the bytes on the wire, with Ethernet headers, of segments `first` to `end` (exclusive)."""
        payload_end = min(end * self.payload_bytes, len(frame) - VNET_BYTES - self.header_bytes)
        return (end - first) * self.header_bytes + payload_end - first * self.payload_bytes


def segmentation(frame: bytes) -> Segmentation:
    """Return the frame's segmentation; a frame that is not offloaded is one segment."""
    _, gso_type, _, gso_size, transport, _ = _VNET.unpack_from(frame)
    wire = len(frame) - VNET_BYTES
    if gso_type & ~GSO_ECN not in _KNOWN_GSO_TYPES or not gso_size or not transport:
        return Segmentation(min(ETHERNET_BYTES, wire), wire - min(ETHERNET_BYTES, wire), 1)
    if gso_type & ~GSO_ECN == GSO_UDP_L4:
        header = transport + 8
    else:
        header = transport + (frame[VNET_BYTES + transport + 12] >> 4) * 4
    return Segmentation(header, gso_size, max(1, -(-(wire - header) // gso_size)))


def cut(frame: bytes, cuts: Segmentation, first: int, end: int) -> bytes:
    """Return the frame of segments `first` to `end` (exclusive); the frame itself if these are all."""
    if first == 0 and end == cuts.segments:
        return frame
    flags, gso_type, hdr_len, gso_size, transport, checksum_offset = _VNET.unpack_from(frame)
    body = VNET_BYTES + cuts.header_bytes
    piece = bytearray(frame[:body])
    piece += frame[body + first * cuts.payload_bytes : body + end * cuts.payload_bytes]
    if end - first == 1:
        gso_type = gso_size = 0
    _VNET.pack_into(
        piece, 0, flags, gso_type, min(hdr_len, len(piece) - VNET_BYTES), gso_size, transport, checksum_offset
    )
    start = VNET_BYTES + transport
    shorter = len(frame) - len(piece)
    _patch_ip(piece, first, shorter)
    if frame[GSO_TYPE] & ~GSO_ECN == GSO_UDP_L4:
        _add_u16(piece, start + 4, -shorter)
    else:
        _patch_tcp(
            piece, start, first * cuts.payload_bytes, is_first=first == 0, is_last=end == cuts.segments
        )
    # A partial checksum field holds the sum of the pseudo header, and so the transport length.
    checksum = start + checksum_offset
    _U16.pack_into(
        piece, checksum, _ones_complement_add(_U16.unpack_from(piece, checksum)[0], 0xFFFF - shorter % 0xFFFF)
    )
    return bytes(piece)


def damaged(frame: bytes, random: Random) -> bytes:
    """Return a single segment with a flipped bit behind its IP header, where a transport checksum covers it.

    A frame without anything there is returned as it is: ARP, for example, has no checksum.
    """
    ip = VNET_BYTES + ETHERNET_BYTES
    kind = _U16.unpack_from(frame, ip - 2)[0] if len(frame) > ip else 0
    headers = {_ETHERTYPE_IPV4: (frame[ip] & 0xF) * 4 if kind else 0, _ETHERTYPE_IPV6: _IPV6_BYTES}
    begin = ip + headers.get(kind, len(frame))
    if begin >= len(frame):
        return frame
    flags, _, _, _, transport, checksum_offset = _VNET.unpack_from(frame)
    piece = bytearray(frame)
    if flags & _NEEDS_CHECKSUM:
        start = VNET_BYTES + transport
        # RFC 768: a computed checksum of zero is sent as all ones, which means the same to TCP.
        checksum = internet_checksum(piece[start:]) or 0xFFFF
        _U16.pack_into(piece, start + checksum_offset, checksum)
    piece[:VNET_BYTES] = bytes(VNET_BYTES)
    piece[random.randrange(begin, len(piece))] ^= 1 << random.randrange(8)
    return bytes(piece)


def _patch_ip(piece: bytearray, first: int, shorter: int) -> None:
    """Set length, IPv4 identification and header checksum of a piece that starts at segment `first`."""
    ip = VNET_BYTES + ETHERNET_BYTES
    if _U16.unpack_from(piece, ip - 2)[0] != _ETHERTYPE_IPV4:
        _add_u16(piece, ip + 4, -shorter)
        return
    _add_u16(piece, ip + 2, -shorter)
    _add_u16(piece, ip + 4, first)
    _U16.pack_into(piece, ip + 10, 0)
    _U16.pack_into(piece, ip + 10, internet_checksum(piece[ip : ip + (piece[ip] & 0xF) * 4]))


def _patch_tcp(piece: bytearray, tcp: int, skipped: int, *, is_first: bool, is_last: bool) -> None:
    """Set sequence number and flags: FIN and PSH belong to the last segment, CWR to the first."""
    sequence = _U32.unpack_from(piece, tcp + 4)[0]
    _U32.pack_into(piece, tcp + 4, (sequence + skipped) & 0xFFFFFFFF)
    if not is_last:
        piece[tcp + 13] &= ~_TCP_FIN_PSH & 0xFF
    if not is_first:
        piece[tcp + 13] &= ~_TCP_CWR & 0xFF


def _add_u16(piece: bytearray, offset: int, difference: int) -> None:
    _U16.pack_into(piece, offset, (_U16.unpack_from(piece, offset)[0] + difference) & 0xFFFF)


def _ones_complement_add(a: int, b: int) -> int:
    total = a + b
    return (total & 0xFFFF) + (total >> 16)
