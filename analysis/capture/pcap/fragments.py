"""IP fragments of TCP segments: each later fragment gets its place in the stream.

Only the first fragment of a datagram has the TCP header. The fragments are not reassembled: since that header
gives the position of the payload in the stream, a later fragment is treated as a segment with the same ports
and a higher sequence number, and TCP's reassembly does the rest. This is done once, when the index is built,
over the whole capture in order. Fragments are rare, so they are processed one by one.

Fragments belong to the same datagram if addresses, protocol and identification agree (RFC 791, section 3.2;
RFC 8200, section 4.5), for at most one minute and until the datagram is complete. They may arrive in any
order.
"""

import struct
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from analysis.capture.pcap.fields import Columns
from analysis.capture.pcap.files.format import Bytes, column, gather
from analysis.capture.pcap.uncommon import UncommonPackets

FRAGMENTS_MAX = 100_000  # that get a place; others are lost
DATAGRAMS_MAX = 4_096  # incomplete at the same time; the oldest is abandoned
WAITING_MAX = 64  # fragments of a datagram that wait for its first one; others are lost
TOGETHER_NS = 60 * 1_000_000_000

_TCP, _FRAGMENT = 6, 44
_UNCUT = (_TCP, 17, 58)  # next headers of IPv6 packets without extensions: TCP, UDP, ICMP
_EXTENSIONS = (0, 43, 60, 135)
_TCP_BYTES, _HEADERS_BYTES_MAX = 20, 512
_OF_CONNECTION = 0x02 | 0x01 | 0x04  # SYN, FIN, RST: apply to the first fragment only


@dataclass(frozen=True, slots=True)
class Fragment:
    """A later fragment of a TCP segment, as a separate segment."""

    at: int  # offset of its captured bytes in the file
    sport: int
    dport: int
    seq: int
    ack: int
    flags: int


@dataclass(frozen=True, slots=True)
class _CapturedFragment:
    """A fragment in the capture."""

    at: int
    key: bytes  # identifies the datagram
    offset: int  # in the datagram
    length: int
    more: bool  # whether more fragments follow
    tcp: bytes  # the TCP header, in the first fragment


@dataclass(slots=True)
class _Datagram:
    """An incomplete datagram."""

    since_ns: int
    lengths: dict[int, int] = field(default_factory=dict)  # by offset
    size: int | None = None  # known once the last fragment arrived
    first: Fragment | None = None  # as if its payload began at offset 0
    waiting: list[_CapturedFragment] = field(default_factory=list)  # for the first


@dataclass(slots=True)
class FragmentCollector:
    """All later fragments of TCP segments in a capture, in capture order."""

    placed: list[Fragment] = field(default_factory=list)
    lost: int = 0  # the first fragment is missing, or lacks part of the TCP header
    _datagrams: dict[bytes, _Datagram] = field(default_factory=dict)

    def collect(self, data: Bytes, packets: UncommonPackets) -> None:
        """Find the IP fragments among packets."""
        records = packets.records
        for row, at, is_ipv4 in _suspects(data, packets):
            begin, length = int(records.begin[row]), int(records.length[row])
            content = data[begin + at : begin + min(length, at + _HEADERS_BYTES_MAX)].tobytes()
            part = (_ipv4 if is_ipv4 else _ipv6)(content, begin)
            if part is not None:
                self._take(part, int(records.t_ns[row]))

    def finish(self) -> tuple[Fragment, ...]:
        """Return all placed fragments in file order; waiting fragments count as lost."""
        self.lost += sum(len(datagram.waiting) for datagram in self._datagrams.values())
        self._datagrams.clear()
        return tuple(sorted(self.placed, key=lambda fragment: fragment.at))

    def _take(self, part: _CapturedFragment, t_ns: int) -> None:
        datagram = self._datagrams.get(part.key)
        if datagram is None or t_ns - datagram.since_ns > TOGETHER_NS:
            self._give_up(part.key)
            if len(self._datagrams) == DATAGRAMS_MAX:
                self._give_up(next(iter(self._datagrams)))
            datagram = self._datagrams[part.key] = _Datagram(t_ns)
        datagram.lengths[part.offset] = part.length
        if not part.more:
            datagram.size = part.offset + part.length
        if part.offset == 0:
            datagram.first = _segment(part)
        elif len(datagram.waiting) < WAITING_MAX:
            datagram.waiting.append(part)
        else:
            self.lost += 1
        if datagram.first is not None:
            for waiting in datagram.waiting:
                self._place(datagram.first, waiting)
            datagram.waiting.clear()
        if datagram.size is not None and sum(datagram.lengths.values()) >= datagram.size:
            self._give_up(part.key)

    def _place(self, first: Fragment, part: _CapturedFragment) -> None:
        if len(self.placed) == FRAGMENTS_MAX:
            self.lost += 1
        else:
            self.placed.append(replace(first, at=part.at, seq=(first.seq + part.offset) % (1 << 32)))

    def _give_up(self, key: bytes) -> None:
        datagram = self._datagrams.pop(key, None)
        self.lost += 0 if datagram is None else len(datagram.waiting)


def place(columns: Columns, fragments: Sequence[Fragment]) -> None:
    """Fill in the columns of later fragments among some packets. fragments: all of the capture."""
    if not fragments or "sport" not in columns or columns["offset"].size == 0:
        return
    offsets = columns["offset"]
    first, end = (
        bisect_left(fragments, int(offset), key=lambda one: one.at)
        for offset in (offsets[0], offsets[-1] + 1)
    )
    for fragment in fragments[first:end]:
        row = int(np.searchsorted(offsets, fragment.at))
        for name in ("sport", "dport", "seq", "ack", "flags"):
            columns[name][row] = getattr(fragment, name)


def within(fragments: Sequence[Fragment], start: int, end: int) -> tuple[Fragment, ...]:
    """Return the fragments in a range of the file."""
    first, last = (bisect_left(fragments, at, key=lambda one: one.at) for at in (start, end))
    return tuple(fragments[first:last])


def _suspects(data: Bytes, packets: UncommonPackets) -> list[tuple[int, int, bool]]:
    """Return packets that may hold a fragment of a TCP segment: row, offset of IP, whether it is IPv4."""
    ip_at = packets.layers.ip_at
    rows = np.flatnonzero(ip_at >= 0)
    ip = gather(data, packets.records.begin[rows] + ip_at[rows], 10)
    is_ipv4 = column(ip, 0, "u1") >> 4 == 4
    ipv4 = is_ipv4 & (column(ip, 6, ">u2") & 0x3FFF != 0) & (column(ip, 9, "u1") == _TCP)
    ipv6 = ~is_ipv4 & ~np.isin(column(ip, 6, "u1"), _UNCUT)
    return [
        (int(rows[place]), int(ip_at[rows[place]]), bool(ipv4[place]))
        for place in np.flatnonzero(ipv4 | ipv6).tolist()
    ]


def _ipv4(packet: bytes, at: int) -> _CapturedFragment | None:
    if len(packet) < 20 or packet[0] >> 4 != 4:
        return None
    header_bytes, (total, number, position) = (packet[0] & 0x0F) * 4, struct.unpack_from(">HHH", packet, 2)
    if header_bytes < 20 or total <= header_bytes:
        return None
    key = struct.pack(">I", number) + packet[12:20]
    return _part(
        packet,
        at,
        key,
        (header_bytes, total - header_bytes),
        offset=(position & 0x1FFF) * 8,
        more=position & 0x2000,
    )


def _ipv6(packet: bytes, at: int) -> _CapturedFragment | None:
    if len(packet) < 40 or packet[0] >> 4 != 6:
        return None
    kind, end, header = packet[6], 40 + int.from_bytes(packet[4:6]), 40
    while kind in _EXTENSIONS and header + 8 <= len(packet):
        kind, header = packet[header], header + (packet[header + 1] + 1) * 8
    if kind != _FRAGMENT or header + 8 > len(packet) or end <= header + 8 or packet[header] != _TCP:
        return None
    (position,) = struct.unpack_from(">H", packet, header + 2)
    key = packet[header + 4 : header + 8] + packet[8:40]
    return _part(packet, at, key, (header + 8, end - header - 8), offset=position & 0xFFF8, more=position & 1)


def _part(
    packet: bytes, at: int, key: bytes, body: tuple[int, int], *, offset: int, more: int
) -> _CapturedFragment | None:
    """Return the fragment. body: its offset in the packet, and its length."""
    begin, length = body
    if offset == 0 and not more:
        return None  # an atomic fragment: a whole datagram with a fragment header (RFC 6946)
    tcp = packet[begin : begin + min(length, _TCP_BYTES)] if offset == 0 else b""
    return _CapturedFragment(at, key, offset, length, bool(more), tcp)


def _segment(part: _CapturedFragment) -> Fragment | None:
    """Return the first fragment as a segment, with the sequence number of a byte at offset 0."""
    if len(part.tcp) < _TCP_BYTES:
        return None
    sport, dport, seq, ack, size, flags = struct.unpack_from(">HHIIBB", part.tcp)
    begin = seq - (size >> 4) * 4 + (flags >> 1 & 1)
    return Fragment(part.at, sport, dport, begin, ack, flags & ~_OF_CONNECTION)
