"""Headers in front of IP, as one table: link layers, VLAN tags, MPLS labels, PPP, LLC/SNAP and tunnels.

A packet's headers form a chain. Each one has a *kind*: an ethertype, or a number of another space (a link
type, a PPP protocol...) with the space in the upper half. The reader of a kind gets that header of all
packets that have it, and returns the kind of the next header and the bytes up to it. The chain ends at IP, at
a kind without a reader, or where bytes were not captured.

Numbers and layouts: the registry of link types (draft-ietf-opsawg-pcaplinktype), IEEE 802.1Q and 802.2, RFC
1661 and 1662 (PPP), 2516 (PPPoE), 3032 (MPLS), 2784 and 2890 (GRE), 2637 (PPTP), 3378 (EtherIP), 7348
(VXLAN), 8926 (GENEVE), draft-foschiano-erspan (ERSPAN), and pktap(4) of Darwin.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from analysis.arrays import Bools, Bytes, Ints, RowSelection
from analysis.capture.pcap.files.format import column, gather
from analysis.capture.pcap.files.records import HEAD_BYTES, PacketRecords

HEADERS_MAX = 16
"""Headers in front of one IP header; reading stops there, and the packet counts by its next header's kind."""

IPV4, IPV6, ARP = 0x0800, 0x86DD, 0x0806
LINK, PPP, LLC, FAMILY, VERSION, _INNER = (space << 16 for space in range(1, 7))
"""Spaces of kinds: link types, PPP protocols, LLC's service access points, address families, IP versions."""
ETHERNET = LINK | 1
CUT = _INNER  # the header was not captured whole
BAD = _INNER | 1  # the header contradicts itself
MPLS = 0x8847
GRE, VXLAN, VXLAN_GPE, GENEVE, ETHERIP = (_INNER | number for number in range(2, 7))
_LLC, _SNAP_OTHER, _LABELLED, _ERSPAN_2, _ERSPAN_3 = (_INNER | number for number in range(7, 12))
_INT32_MAX = (1 << 31) - 1
_ETHERTYPE_LEAST, _ETHERNET_BYTES_MAX = 0x600, 1500


class Next(NamedTuple):
    """The end of one header in each packet: the kind of the next one, and the bytes up to it."""

    kind: Ints
    distance: Ints | int
    length: Ints | int = _INT32_MAX  # bytes that belong to this header's content


@dataclass(frozen=True, slots=True)
class _Header:
    least: int  # bytes that must have been captured
    width: int  # bytes that the reader gets; those that were not captured are of the next record
    read: Callable[[Bytes], Next]


@dataclass(slots=True)
class Headers:
    """The place of the next header in each packet. Offsets count from the packet's captured bytes."""

    data: Bytes
    begin: Ints  # of the captured bytes in the file
    captured: Ints
    kind: Ints
    at: Ints
    end: Ints  # of the innermost header's content, on the wire

    def take(self, rows: Ints, kind: Ints, at: Ints) -> "Headers":
        """Return the headers of these packets at another place."""
        return Headers(self.data, self.begin[rows], self.captured[rows], kind, at, self.end[rows])

    def bytes_of(self, rows: RowSelection, width: int) -> Bytes:
        """Gather the next header of some packets."""
        return gather(self.data, self.begin[rows] + self.at[rows], width)

    def having(self, wanted: Bools, width: int) -> RowSelection:
        """Return the wanted packets with this number of bytes of the next header, and mark the others."""
        if not wanted.any():
            return np.zeros(0, np.int64)
        there = self.at + width
        whole = there <= np.minimum(self.captured, self.end)
        if not (whole | ~wanted).all():
            lacking = wanted & ~whole
            self.kind[lacking] = np.where(there > self.end, BAD, CUT)[lacking]
            wanted = wanted & whole
        return slice(None) if wanted.all() else np.flatnonzero(wanted)

    def refuse(self, rows: RowSelection, good: Bools) -> Ints:
        """Mark the packets whose header is not good, and return the others."""
        every = np.arange(self.at.size)[rows]
        self.kind[every[~good]] = BAD
        return every[good]


def network_headers(data: Bytes, records: PacketRecords) -> Headers:
    """Return the headers of packets up to their outermost IP header."""
    end = np.minimum(records.wire_length, _INT32_MAX)
    kind, at = np.zeros((2, records.at.size), np.int64)
    found = Headers(data, records.begin, records.length, kind, at, end)
    if isinstance(records.link_type, int):
        _first(found, records.head, LINK | records.link_type, slice(None))
    else:
        for link_type in np.unique(records.link_type).tolist():
            _first(found, records.head, LINK | link_type, np.flatnonzero(records.link_type == link_type))
    follow(found)
    return found


def _first(found: Headers, head: Bytes, kind: int, rows: RowSelection) -> None:
    """Read the link-layer header from the head of the records."""
    header = _READERS.get(kind)
    if header is None or header.width > HEAD_BYTES:
        found.kind[rows] = kind
        return
    following = header.read(head[rows])
    whole = found.captured[rows] >= header.least
    found.kind[rows] = following.kind if whole.all() else np.where(whole, following.kind, CUT)
    found.at[rows] = following.distance
    if not isinstance(following.length, int):
        found.end[rows] = np.minimum(found.end[rows], following.distance + following.length)


def follow(found: Headers) -> None:
    """Go on to each packet's next IP header, or to the first header that is not read."""
    rows = np.flatnonzero((found.kind != IPV4) & (found.kind != IPV6))
    for _ in range(HEADERS_MAX):
        kinds = [kind for kind in np.unique(found.kind[rows]).tolist() if kind in _READERS]
        if not kinds:
            return
        rows = rows[np.isin(found.kind[rows], kinds)]
        for kind in kinds:
            _step(found, _READERS[kind], rows[found.kind[rows] == kind])


def _step(found: Headers, header: _Header, rows: Ints) -> None:
    at, end = found.at[rows], found.end[rows]
    there = at + header.least
    whole = there <= np.minimum(found.captured[rows], end)
    found.kind[rows[~whole]] = np.where(there > end, BAD, CUT)[~whole]
    rows = rows[whole]
    following = header.read(found.bytes_of(rows, header.width))
    found.kind[rows] = following.kind
    found.at[rows] += following.distance
    found.end[rows] = np.minimum(found.end[rows], found.at[rows] + following.length)


def _ethertype(value: Ints) -> Ints:
    """Return the kind by an Ethernet frame's field of type or length (IEEE 802.3)."""
    return np.where(value <= _ETHERNET_BYTES_MAX, _LLC, value)


def _ethernet(at: int, distance: int) -> Callable[[Bytes], Next]:
    """Read a header that ends with an ethertype or a length."""

    def read(header: Bytes) -> Next:
        value = column(header, at, ">u2")
        if (value >= _ETHERTYPE_LEAST).all():
            return Next(value, distance)
        return Next(_ethertype(value), distance, np.where(value <= _ETHERNET_BYTES_MAX, value, _INT32_MAX))

    return read


def _typed(at: int, distance: int) -> Callable[[Bytes], Next]:
    """Read a header of fixed size with an ethertype."""
    return lambda header: Next(column(header, at, ">u2"), distance)


def _cooked(at: int, distance: int) -> Callable[[Bytes], Next]:
    """Read Linux's cooked header: 4 in place of an ethertype is LLC."""

    def read(header: Bytes) -> Next:
        value = column(header, at, ">u2")
        return Next(np.where(value == 4, _LLC, value), distance)

    return read


def _raw(header: Bytes) -> Next:
    """Read the version of IP, the first four bits of its header."""
    version = column(header, 0, "u1") >> 4
    return Next(np.select([version == 4, version == 6], [IPV4, IPV6], VERSION | version), 0)


def _family(header: Bytes) -> Next:
    """Read an address family, in the capturing host's or in network byte order."""
    either = [column(header, 0, kind) for kind in (">u4", "<u4")]
    family = np.minimum(*either)
    ipv6 = np.isin(family, (10, 23, 24, 28, 30))  # of Linux, Windows, NetBSD and OpenBSD, FreeBSD, Darwin
    return Next(np.select([family == 2, ipv6], [IPV4, IPV6], FAMILY | (family & 0xFFFF)), 4)


_PPP_KINDS = {0x0021: IPV4, 0x0057: IPV6, 0x0281: MPLS, 0x0283: 0x8848}


def _ppp(header: Bytes) -> Next:
    """Read PPP's protocol, of one or two bytes, with or without HDLC's address and control before it."""
    framed = column(header, 0, ">u2") == 0xFF03
    two = np.where(framed, column(header, 2, ">u2"), column(header, 0, ">u2"))
    short = two >> 8 & 1 == 1
    protocol = np.where(short, two >> 8, two)
    kinds = [protocol == number for number in _PPP_KINDS]
    return Next(np.select(kinds, list(_PPP_KINDS.values()), PPP | protocol), 2 * framed + 2 - short)


def _pppoe(header: Bytes) -> Next:
    """Read PPPoE's session header: version and type 1, code 0."""
    good = column(header, 0, ">u2") == 0x1100
    return Next(np.where(good, _PPP, BAD), 6, column(header, 4, ">u2"))


def _mpls(header: Bytes) -> Next:
    """Read one label; the last one has the bottom bit."""
    return Next(np.where(column(header, 2, "u1") & 1, _LABELLED, MPLS), 4)


def _labelled(header: Bytes) -> Next:
    """Guess what follows the labels by its first four bits (RFC 4928): IP, or a control word and Ethernet."""
    version = column(header, 0, "u1") >> 4
    kind = np.select([version == 4, version == 6, version == 0], [IPV4, IPV6, ETHERNET], VERSION | version)
    return Next(kind, np.where(version == 0, 4, 0))


def _llc(header: Bytes) -> Next:
    """Read LLC: SNAP with an ethertype, or IP's own service access point."""
    sap = column(header, 0, "u1")
    snap = (column(header, 0, ">u2") == 0xAAAA) & (column(header, 2, "u1") == 3)
    typed = snap & (column(header, 2, ">u4") & 0xFFFFFF == 0)
    ip = column(header, 0, ">u4") >> 8 == 0x060603
    kind = np.select([typed, ip], [column(header, 6, ">u2"), IPV4], LLC | sap)
    return Next(kind, np.where(typed, 8, 3))


def _gre(header: Bytes) -> Next:
    """Read GRE, and PPTP's version of it: optional fields by flags, then the content's ethertype."""
    flags, kind = column(header, 0, ">u2"), column(header, 2, ">u2")
    version, sequence = flags & 7, flags >> 12 & 1
    distance = 4 + 4 * ((flags >> 15 & 1) + (flags >> 13 & 1) + sequence + (flags >> 7 & 1) * (version == 1))
    routed = flags >> 14 & 1  # RFC 1701's source routes are not read
    kind = np.select(
        [(version > 1) | (routed == 1), kind == 0x6558, kind == 0x880B, kind == 0x22EB,
         (kind == 0x88BE) & (sequence == 1), kind == 0x88BE],
        [BAD, ETHERNET, _PPP, _ERSPAN_3, _ERSPAN_2, ETHERNET], kind,
    )  # fmt: skip
    return Next(kind, distance)


def _erspan_3(header: Bytes) -> Next:
    """Read ERSPAN's third version: 12 bytes, 8 more if the last bit is set."""
    return Next(np.full(len(header), ETHERNET), 12 + 8 * (column(header, 11, "u1") & 1))


def _vxlan(header: Bytes) -> Next:
    return Next(np.where(column(header, 0, "u1") & 8, ETHERNET, BAD), 8)


_GPE_KINDS = {1: IPV4, 2: IPV6, 3: ETHERNET, 5: MPLS}


def _vxlan_gpe(header: Bytes) -> Next:
    """Read VXLAN's generic protocol extension (draft-ietf-nvo3-vxlan-gpe)."""
    protocol = column(header, 3, "u1")
    return Next(np.select([protocol == each for each in _GPE_KINDS], list(_GPE_KINDS.values()), BAD), 8)


def _geneve(header: Bytes) -> Next:
    first, kind = column(header, 0, "u1"), column(header, 2, ">u2")
    kind = np.select([first >> 6 != 0, kind == 0x6558], [BAD, ETHERNET], kind)
    return Next(kind, 8 + 4 * (first & 0x3F))


def _pktap(header: Bytes) -> Next:
    """Read Darwin's header of packet metadata: its own size, and the link type of what follows it."""
    size = column(header, 0, "<u4")
    return Next(np.where(size < 108, BAD, LINK | (column(header, 8, "<u4") & 0xFFFF)), size)


def _always(kind: int, distance: int) -> Callable[[Bytes], Next]:
    return lambda header: Next(np.full(len(header), kind), distance)


def _fixed(width: int, read: Callable[[Bytes], Next]) -> _Header:
    return _Header(width, width, read)


_PPP = LINK | 9
_READERS: dict[int, _Header] = (
    {
        ETHERNET: _fixed(14, _ethernet(12, 14)),
        LINK | 113: _fixed(16, _cooked(14, 16)),
        LINK | 276: _fixed(20, _cooked(0, 20)),
        LINK | 258: _fixed(12, _pktap),
        LINK | 100: _fixed(8, _llc),  # ATM with LLC (RFC 2684)
        LINK | 104: _fixed(4, _typed(2, 4)),  # Cisco HDLC
        LINK | 51: _fixed(6, _pppoe),
        LINK | 219: _fixed(4, _mpls),
        0x8864: _fixed(6, _pppoe),
        0x8848: _fixed(4, _mpls),
        MPLS: _fixed(4, _mpls),
        _LABELLED: _fixed(1, _labelled),
        _LLC: _fixed(8, _llc),
        GRE: _Header(4, 4, _gre),
        VXLAN: _fixed(8, _vxlan),
        VXLAN_GPE: _fixed(8, _vxlan_gpe),
        GENEVE: _fixed(8, _geneve),
        ETHERIP: _fixed(2, _always(ETHERNET, 2)),
        _ERSPAN_2: _fixed(8, _always(ETHERNET, 8)),
        _ERSPAN_3: _fixed(12, _erspan_3),
    }
    | dict.fromkeys((0x8100, 0x88A8, 0x9100), _fixed(4, _ethernet(2, 4)))
    | dict.fromkeys((LINK | 0, LINK | 108), _fixed(4, _family))
    | dict.fromkeys((LINK | number for number in (12, 14, 101, 228, 229)), _fixed(1, _raw))
    | dict.fromkeys((LINK | number for number in (9, 50, 166)), _fixed(4, _ppp))
)
"""By kind. Link types 12, 14 and 101 are raw IP as different systems number it; 166 is PPP of Linux."""
