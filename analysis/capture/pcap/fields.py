"""Header fields as columns: IPv4 with options, IPv6 with extension headers, TCP, UDP, also in tunnels.

Records may have any format and link type. Each layer's header is gathered at once for all packets that have
it, and fields are sliced from the copies, without a loop over packets. Fields are only read from captured
bytes that belong to the packet by all lengths of the headers before; a header that is cut off counts as
absent. IP fragments after the first have no ports here: see `fragments` for those of TCP segments,
`analysis.capture.fragmented_datagrams` for those of UDP datagrams.
"""

import zlib
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.arrays import Bools, Bytes, Ints, RowSelection
from analysis.capture.pcap.encapsulation import (
    CUT,
    ETHERIP,
    GENEVE,
    GRE,
    IPV4,
    IPV6,
    MPLS,
    VXLAN,
    VXLAN_GPE,
    Headers,
    follow,
    network_headers,
)
from analysis.capture.pcap.files.format import column
from analysis.capture.pcap.files.records import PacketRecords
from analysis.schemas import PACKETS

EXTENSION_HEADERS_MAX = 8
TUNNELS_MAX = 4  # one in the other; in more of them, the headers of the last tunnel are the packet's
NOT_IP = -1

_IPV4_BYTES, _IPV6_BYTES, _TCP_BYTES, _UDP_BYTES = 20, 40, 20, 8
TCP, UDP = 6, 17  # protocol numbers of IP
_FRAGMENT, _AUTHENTICATION = 44, 51
_EXTENSIONS = (0, 43, _FRAGMENT, _AUTHENTICATION, 60, 135, 139, 140)  # RFC 7045, section 4, without ESP
_INT32_MAX = (1 << 31) - 1
_ETHERNET, _SENDER_AT = 1, 8
"""The link type, and the last four bytes of the source's MAC address: an address in the run's network."""

Column = npt.NDArray[np.integer]
Columns = dict[str, Column]

DIRECTION = ("src_hi", "src_lo", "sport", "dst_hi", "dst_lo", "dport")
"""The columns that identify one direction between two ports."""

FRAGMENT = {
    "fragment_offset": np.dtype(np.int32),
    "more_fragments": np.dtype(np.int8),
    "datagram": np.dtype(np.int64),
}
"""Further columns of IP packets: a fragment's offset in its datagram in bytes, whether others follow it, and
the datagram's identification (RFC 791, section 3.1; RFC 8200, section 4.5).
"""

_WIDTHS = {field.name: np.dtype(field.type.to_pandas_dtype()) for field in PACKETS if field.name != "capture"}
ALL = frozenset(_WIDTHS)
_OF_RECORD = frozenset(("t_ns", "offset", "length", "wire_length", "capture"))
_OF_LAYERS = {name: width for name, width in (_WIDTHS | FRAGMENT).items() if name not in _OF_RECORD}


_TUNNELS = np.zeros(256, np.int64)
_TUNNELS[[4, 41, 47, 97, 137]] = IPV4, IPV6, GRE, ETHERIP, MPLS
"""Kinds of headers by IP protocol; 0 for none."""
TUNNEL_PORTS = np.zeros(1 << 16, np.int64)
TUNNEL_PORTS[[4789, 8472, 4790, 6081, 4754, 6635]] = VXLAN, VXLAN, VXLAN_GPE, GENEVE, GRE, MPLS
"""Kinds of headers by UDP's destination port; Linux's first VXLAN used 8472."""


@dataclass(slots=True)
class Layers:
    """The layers of packets: where the next header is, and what was read so far."""

    headers: Headers
    """The next header: in the end, the payload, and the kind of header where reading ended."""
    columns: Columns
    proto: Ints
    whole: Bools  # the next layer's header is expected here (not in a later fragment)
    ip_at: Ints  # offset of the IP header; -1 without one

    @classmethod
    def begin(cls, headers: Headers) -> "Layers":
        """Return the layers of packets before any IP header was read."""
        size = headers.at.size
        columns: Columns = {name: np.zeros(size, width) for name, width in _OF_LAYERS.items()}
        absent = np.full(size, NOT_IP, np.int64)
        return cls(headers, columns, absent, np.zeros(size, np.bool_), absent.copy())


def read_fields(data: Bytes, records: PacketRecords, names: Collection[str] = ALL) -> Columns:
    """Read columns of `PACKETS`, except `capture`, from records.

    The result may have more columns than `names`: all layers are read, or none if no name needs them.
    """
    columns: Columns = {
        "t_ns": records.t_ns,
        "offset": records.begin,
        "length": _as_int32(records.length),
        "wire_length": _as_int32(records.wire_length),
    }
    if not _OF_RECORD.issuperset(names):
        layers = read_layers(data, records)
        columns |= layers.columns
        if "digest" in names:
            _digest_udp(data, records, columns)
        if "checksum" in names:
            _check(data, records, layers)
        if "sender" in names:
            is_whole = (records.length >= _SENDER_AT + 4) & (np.asarray(records.link_type) == _ETHERNET)
            columns["sender"][:] = np.where(is_whole, column(records.head, _SENDER_AT, ">u4"), 0)
    return columns


def _as_int32(values: Ints) -> npt.NDArray[np.int32]:
    """Clip lengths to 32 bits. Larger ones are wrong, but must not become negative."""
    return np.minimum(values, _INT32_MAX).astype(np.int32)


def read_layers(data: Bytes, records: PacketRecords) -> Layers:
    """Read all headers of packets."""
    layers = Layers.begin(network_headers(data, records))
    _read(layers, TUNNELS_MAX)
    return layers


def _read(layers: Layers, tunnels: int) -> None:
    """Read the layers from IP on, and those inside this number of tunnels."""
    headers, columns = layers.headers, layers.columns
    _read_ipv4(layers)
    _read_ipv6(layers)
    others = np.flatnonzero(layers.proto != TCP)
    if others.size and (layers.proto[others] == _AUTHENTICATION).any():
        _skip_extension_headers(layers, IPV4, (_AUTHENTICATION,))
    columns["proto"][:] = layers.proto
    columns["payload_offset"][:] = headers.at
    columns["payload_length"][:] = np.where(
        layers.proto == NOT_IP, 0, np.maximum(headers.end - headers.at, 0)
    )
    _read_tcp(layers)
    _read_udp(layers)
    columns["payload_length"][headers.kind >= CUT] = 0  # where it begins is unknown
    if tunnels and others.size:
        _read_tunnels(layers, others, tunnels)


def _read_tunnels(layers: Layers, others: Ints, tunnels: int) -> None:
    """Replace the fields of tunnel packets by those of the inner IP packet. others: packets without TCP."""
    headers, columns = layers.headers, layers.columns
    kinds = np.where(
        layers.proto[others] == UDP, TUNNEL_PORTS[columns["dport"][others]], _TUNNELS[layers.proto[others]]
    )
    carrying = (kinds != 0) & layers.whole[others]
    rows = others[carrying]
    if rows.size == 0:
        return
    inside = headers.take(rows, kinds[carrying], columns["payload_offset"][rows].astype(np.int64))
    inner = Layers.begin(inside)
    follow(inside)
    _read(inner, tunnels - 1)
    headers.kind[rows] = inside.kind
    found = np.flatnonzero(inner.proto != NOT_IP)
    for name, values in inner.columns.items():
        columns[name][rows[found]] = values[found]
    layers.proto[rows[found]] = inner.proto[found]
    layers.ip_at[rows[found]] = inner.ip_at[found]
    headers.at[rows[found]] = inside.at[found]


def _none(where: RowSelection) -> bool:
    return not isinstance(where, slice) and where.size == 0


def _read_ipv4(layers: Layers) -> None:
    """Read IPv4 headers (RFC 791). Total length 0: an offloaded packet over 64 KiB, ends with the frame."""
    headers, columns = layers.headers, layers.columns
    where = headers.having(headers.kind == IPV4, _IPV4_BYTES)
    if _none(where):
        return
    header = headers.bytes_of(where, _IPV4_BYTES)
    first, total = column(header, 0, "u1"), column(header, 2, ">u2")
    header_bytes = (first & 0x0F) * 4
    good = (first >> 4 == 4) & (header_bytes >= _IPV4_BYTES) & ((total >= header_bytes) | (total == 0))
    if not good.all():
        where = headers.refuse(where, good)
        header, total, header_bytes = header[good], total[good], header_bytes[good]
    begin = headers.at[where] + 0  # a copy also where `where` is a slice: `at` moves on below
    layers.ip_at[where] = begin
    layers.proto[where] = column(header, 9, "u1")
    headers.at[where] = begin + header_bytes
    frame_end = headers.end[where]
    headers.end[where] = np.where(total == 0, frame_end, np.minimum(begin + total, frame_end))
    fragment = column(header, 6, ">u2")
    fragment_offset = (fragment & 0x1FFF) * 8
    layers.whole[where] = fragment_offset == 0
    columns["ip_id"][where] = columns["datagram"][where] = column(header, 4, ">u2")
    columns["fragment_offset"][where] = fragment_offset
    columns["more_fragments"][where] = fragment >> 13 & 1
    columns["src_lo"][where] = column(header, 12, ">u4")
    columns["dst_lo"][where] = column(header, 16, ">u4")


def _read_ipv6(layers: Layers) -> None:
    """Read IPv6 headers (RFC 8200). Payload length 0 (RFC 2675, or offloaded): it ends with the frame."""
    headers, columns = layers.headers, layers.columns
    where = headers.having(headers.kind == IPV6, _IPV6_BYTES)
    if _none(where):
        return
    header = headers.bytes_of(where, _IPV6_BYTES)
    good = column(header, 0, "u1") >> 4 == 6
    if not good.all():
        where = headers.refuse(where, good)
        header = header[good]
    begin = headers.at[where] + 0  # a copy also where `where` is a slice: `at` moves on below
    payload = column(header, 4, ">u2")
    layers.ip_at[where] = begin
    layers.proto[where] = column(header, 6, "u1")
    headers.at[where] = begin + _IPV6_BYTES
    frame_end = headers.end[where]
    headers.end[where] = np.where(
        payload == 0, frame_end, np.minimum(begin + _IPV6_BYTES + payload, frame_end)
    )
    layers.whole[where] = True
    for name, at in (("src_hi", 8), ("src_lo", 16), ("dst_hi", 24), ("dst_lo", 32)):
        columns[name][where] = column(header, at, ">i8")
    _skip_extension_headers(layers, IPV6, _EXTENSIONS)


def _skip_extension_headers(layers: Layers, version: int, protocols: tuple[int, ...]) -> None:
    """Follow the chain of extension headers. A truncated one leaves `proto` at its own number."""
    headers, columns = layers.headers, layers.columns
    for _ in range(EXTENSION_HEADERS_MAX):
        more = (headers.kind == version) & layers.whole & np.isin(layers.proto, protocols)
        if not more.any():
            return
        where = np.arange(more.size)[headers.having(more, 8)]
        header = headers.bytes_of(where, 8)
        kind, size = layers.proto[where], column(header, 1, "u1")
        is_fragment = kind == _FRAGMENT
        units = np.select([is_fragment, kind == _AUTHENTICATION], [8, (size + 2) * 4], (size + 1) * 8)
        layers.proto[where] = column(header, 0, "u1")
        headers.at[where] += units
        rows, position = where[is_fragment], column(header[is_fragment], 2, ">u2")
        layers.whole[rows] = position & 0xFFF8 == 0
        columns["fragment_offset"][rows] = position & 0xFFF8
        columns["more_fragments"][rows] = position & 1
        columns["datagram"][rows] = column(header[is_fragment], 4, ">u4")


def _read_tcp(layers: Layers) -> None:
    """Read TCP's header (RFC 9293). It has no payload if its data offset is invalid or beyond the packet."""
    headers, columns = layers.headers, layers.columns
    where = headers.having(layers.whole & (layers.proto == TCP), _TCP_BYTES)
    if _none(where):
        return
    begin = headers.at[where]
    header = headers.bytes_of(where, _TCP_BYTES)
    columns["sport"][where] = column(header, 0, ">u2")
    columns["dport"][where] = column(header, 2, ">u2")
    columns["seq"][where] = column(header, 4, ">u4")
    columns["ack"][where] = column(header, 8, ">u4")
    columns["flags"][where] = column(header, 13, "u1")
    size = (column(header, 12, "u1") >> 4) * 4
    payload, end = begin + np.maximum(size, _TCP_BYTES), headers.end[where]
    good = (size >= _TCP_BYTES) & (payload <= end)
    if not good.all():
        headers.refuse(where, good)
        end = np.where(good, end, 0)
    columns["payload_offset"][where] = payload
    columns["payload_length"][where] = np.maximum(end - payload, 0)


def _read_udp(layers: Layers) -> None:
    """Read UDP's header (RFC 768). Its length is 0 if offloaded; a length beyond the IP packet is ignored."""
    headers, columns = layers.headers, layers.columns
    where = headers.having(layers.whole & (layers.proto == UDP), _UDP_BYTES)
    if _none(where):
        return
    begin = headers.at[where]
    header = headers.bytes_of(where, _UDP_BYTES)
    columns["sport"][where] = column(header, 0, ">u2")
    columns["dport"][where] = column(header, 2, ">u2")
    size = column(header, 4, ">u2")
    good = (size >= _UDP_BYTES) | (size == 0)
    if not good.all():
        headers.refuse(where, good)
    end = np.where(size == 0, headers.end[where], np.minimum(begin + size, headers.end[where]))
    columns["payload_offset"][where] = begin + _UDP_BYTES
    columns["payload_length"][where] = np.maximum(end - begin - _UDP_BYTES, 0)
    headers.end[where] = end


def _digest_udp(data: Bytes, records: PacketRecords, columns: Columns) -> None:
    """Compute the CRC-32 of each UDP packet's captured payload; of a fragment, of its own part."""
    where = np.flatnonzero((columns["proto"] == UDP) & (columns["payload_length"] > 0))
    payload_offset = columns["payload_offset"][where].astype(np.int64)
    captured = np.clip(records.length[where] - payload_offset, 0, columns["payload_length"][where])
    begin, buffer = records.begin[where] + payload_offset, data.data
    bounds = zip(begin.tolist(), (begin + captured).tolist(), strict=True)
    columns["digest"][where] = [zlib.crc32(buffer[start:end]) for start, end in bounds]


CHECKED_BYTES_MAX = 9_216
"""IP packets up to a large MTU; longer ones are offloaded frames, whose checksum is still to be computed."""
ONES = 0xFFFF
"""The modulus of checksums in ones' complement (RFC 1071)."""


def _check(data: Bytes, records: PacketRecords, layers: Layers) -> None:
    """Check the checksums of whole IPv4 packets with TCP or UDP, fragments excepted (RFC 1071)."""
    columns, buffer = layers.columns, data.data
    end = columns["payload_offset"].astype(np.int64) + columns["payload_length"]
    size = end - layers.ip_at
    whole = (layers.ip_at >= 0) & layers.whole & np.isin(layers.proto, (TCP, UDP))
    whole &= (end <= records.length) & (size >= _IPV4_BYTES + _UDP_BYTES) & (columns["src_hi"] == 0)
    where = np.flatnonzero(whole)
    begin = (records.begin + layers.ip_at)[where]
    spans = zip(begin.tolist(), (begin + size[where]).tolist(), strict=True)
    columns["checksum"][where] = [checksum_state(buffer[start:stop]) for start, stop in spans]


def checksum_state(packet: bytes | memoryview) -> int:
    """Return 1 if the checksums of an IPv4 packet with TCP or UDP are right, -1 if one is wrong, else 0.

    A checksum that is left to the hardware holds the sum of the pseudo header only.
    """
    header = (packet[0] & 0x0F) * 4
    size = len(packet) - header
    is_fragment = packet[6] & 0x3F or packet[7]
    if packet[0] >> 4 != 4 or is_fragment or size < _UDP_BYTES:
        return 0
    if _sum(packet[:header]):
        return -1
    field = header + (16 if packet[9] == TCP else 6)
    checksum = int.from_bytes(packet[field : field + 2])
    if packet[9] == UDP and not checksum:
        return 0
    pseudo = (_sum(packet[12:20]) + packet[9] + size) % ONES
    return sum_state(packet[header:], checksum, pseudo)


def sum_state(segment: bytes | memoryview, checksum: int, pseudo: int) -> int:
    """Return 1 if the checksum of a TCP or UDP segment is right or left to the hardware, -1 if it is wrong, 0
    if the segment is too long to tell. checksum: that of its header; pseudo: the sum of the pseudo header.
    """
    if checksum % ONES == pseudo:
        return 1
    if len(segment) > CHECKED_BYTES_MAX:
        return 0
    return -1 if (_sum(segment) + pseudo) % ONES else 1


def _sum(data: bytes | memoryview) -> int:
    """Return the ones' complement sum of 16-bit words, with 0 for 0xFFFF; odd data is padded with 0."""
    return int.from_bytes(data) % ONES * (256 if len(data) % 2 else 1) % ONES
