"""Header fields as columns: IPv4 with options, IPv6 with extension headers, TCP, UDP.

Records may have any format and link type. Each layer's header is gathered at once for all packets that have
it, and fields are sliced from the copies, without a loop over packets. Fields are only read from captured
bytes; a truncated header counts as absent. IP fragments after the first have no ports here: see `fragments`
for those of TCP segments, `analysis.capture.fragmented_datagrams` for those of UDP datagrams.
"""

import zlib
from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from analysis.capture.pcap.files.format import Bytes, Integers, column, gather
from analysis.capture.pcap.files.records import PacketRecords, RowSelection
from analysis.capture.pcap.link_types import ETHERTYPE_IPV4, ETHERTYPE_IPV6, network_layer
from analysis.schemas import PACKETS

EXTENSION_HEADERS_MAX = 8
NOT_IP = -1

_IPV4_BYTES, _IPV6_BYTES, _TCP_BYTES, _UDP_BYTES = 20, 40, 20, 8
_TCP, _UDP, _FRAGMENT, _AUTHENTICATION = 6, 17, 44, 51
_EXTENSIONS = (0, 43, _FRAGMENT, _AUTHENTICATION, 60, 135, 139, 140)  # RFC 7045, section 4, without ESP
_INT32_MAX = (1 << 31) - 1

Column = npt.NDArray[np.integer]
Columns = dict[str, Column]

DIRECTION = ("src_hi", "src_lo", "sport", "dst_hi", "dst_lo", "dport")
"""The columns that identify one direction between two ports."""

FRAGMENT = {"fragment_offset": np.dtype(np.int32), "datagram": np.dtype(np.int64)}
"""Further columns of IP packets: a fragment's offset in its datagram in bytes, and the datagram's
identification (RFC 791, section 3.1; RFC 8200, section 4.5).
"""

_WIDTHS = {field.name: np.dtype(field.type.to_pandas_dtype()) for field in PACKETS if field.name != "capture"}
ALL = frozenset(_WIDTHS)
_OF_RECORD = frozenset(("t_ns", "offset", "length", "wire_length", "capture"))


@dataclass(frozen=True, slots=True)
class _Bodies:
    """The captured data of each record: its offset in the file, and its length in bytes."""

    data: Bytes
    begin: Integers
    length: Integers

    def header(self, where: RowSelection, at: Integers, width: int) -> Bytes:
        """Gather a header of some records, at offset `at` in each."""
        return gather(self.data, self.begin[where] + at, width)


@dataclass(slots=True)
class _Layers:
    """The input of the next layer, per packet. Offsets count from the record's data."""

    at: Integers  # offset of the next layer
    end: Integers  # end of the IP packet on the wire
    proto: Integers
    whole: npt.NDArray[np.bool_]  # the next layer's header is expected here (not in a later fragment)


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
        widths = _WIDTHS | FRAGMENT
        columns |= {name: np.zeros(records.at.size, widths[name]) for name in widths if name not in columns}
        _read_layers(data, records, columns, names)
    return columns


def _as_int32(values: Integers) -> npt.NDArray[np.int32]:
    """Clip lengths to 32 bits. Larger ones are wrong, but must not become negative."""
    return np.minimum(values, _INT32_MAX).astype(np.int32)


def _read_layers(data: Bytes, records: PacketRecords, columns: Columns, names: Collection[str]) -> None:
    """Read the fields of all layers above the record header."""
    ethertype, begin = network_layer(data, records)
    bodies = _Bodies(data, records.begin, records.length)
    size = records.at.size
    end = np.minimum(records.wire_length, _INT32_MAX)
    layers = _Layers(begin, end, np.full(size, NOT_IP), np.zeros(size, np.bool_))
    _read_ipv4(bodies, ethertype == ETHERTYPE_IPV4, layers, columns)
    _read_ipv6(bodies, ethertype == ETHERTYPE_IPV6, layers, columns)
    columns["proto"][:] = layers.proto
    columns["payload_offset"][:] = layers.at
    columns["payload_length"][:] = np.where(layers.proto == NOT_IP, 0, np.maximum(layers.end - layers.at, 0))
    _read_tcp(bodies, layers, columns)
    _read_udp(bodies, layers, columns)
    if "digest" in names:
        _digest_udp(bodies, columns)


def _where(mask: npt.NDArray[np.bool_]) -> RowSelection:
    """Return an index of a mask's packets; a slice if it has all of them, to avoid copies."""
    return slice(None) if mask.all() else np.flatnonzero(mask)


def _none(where: RowSelection) -> bool:
    return not isinstance(where, slice) and where.size == 0


def _read_ipv4(bodies: _Bodies, mask: npt.NDArray[np.bool_], layers: _Layers, columns: Columns) -> None:
    """Read IPv4 headers (RFC 791). Total length 0: an offloaded packet over 64 KiB, ends with the frame."""
    where = _where(mask & (bodies.length >= layers.at + _IPV4_BYTES))
    if _none(where):
        return
    begin = layers.at[where] + 0  # a copy also where `where` is a slice: `at` moves on below
    header = bodies.header(where, begin, _IPV4_BYTES)
    first = column(header, 0, "u1")
    header_bytes = (first & 0x0F) * 4
    total = column(header, 2, ">u2")
    good = (first >> 4 == 4) & (header_bytes >= _IPV4_BYTES)
    layers.proto[where] = np.where(good, column(header, 9, "u1"), NOT_IP)
    layers.at[where] = begin + header_bytes
    frame_end = layers.end[where]
    layers.end[where] = np.where(total == 0, frame_end, np.minimum(begin + total, frame_end))
    fragment_offset = (column(header, 6, ">u2") & 0x1FFF) * 8
    layers.whole[where] = good & (fragment_offset == 0)
    columns["ip_id"][where] = columns["datagram"][where] = column(header, 4, ">u2")
    columns["fragment_offset"][where] = fragment_offset
    columns["src_lo"][where] = column(header, 12, ">u4")
    columns["dst_lo"][where] = column(header, 16, ">u4")


def _read_ipv6(bodies: _Bodies, mask: npt.NDArray[np.bool_], layers: _Layers, columns: Columns) -> None:
    """Read IPv6 headers (RFC 8200). Payload length 0 (RFC 2675, or offloaded): it ends with the frame."""
    where = _where(mask & (bodies.length >= layers.at + _IPV6_BYTES))
    if _none(where):
        return
    begin = layers.at[where] + 0  # a copy also where `where` is a slice: `at` moves on below
    header = bodies.header(where, begin, _IPV6_BYTES)
    good = column(header, 0, "u1") >> 4 == 6
    payload = column(header, 4, ">u2")
    layers.proto[where] = np.where(good, column(header, 6, "u1"), NOT_IP)
    layers.at[where] = begin + _IPV6_BYTES
    frame_end = layers.end[where]
    layers.end[where] = np.where(
        payload == 0, frame_end, np.minimum(begin + _IPV6_BYTES + payload, frame_end)
    )
    layers.whole[where] = good
    for name, at in (("src_hi", 8), ("src_lo", 16), ("dst_hi", 24), ("dst_lo", 32)):
        columns[name][where] = column(header, at, ">i8")
    _skip_extension_headers(bodies, mask, layers, columns)


def _skip_extension_headers(
    bodies: _Bodies, mask: npt.NDArray[np.bool_], layers: _Layers, columns: Columns
) -> None:
    """Follow the chain of extension headers. A truncated one leaves `proto` at its own number."""
    for _ in range(EXTENSION_HEADERS_MAX):
        more = mask & layers.whole & np.isin(layers.proto, _EXTENSIONS) & (bodies.length >= layers.at + 8)
        where = np.flatnonzero(more)
        if where.size == 0:
            return
        header = bodies.header(where, layers.at[where], 8)
        kind, size = layers.proto[where], column(header, 1, "u1")
        is_fragment = kind == _FRAGMENT
        units = np.select([is_fragment, kind == _AUTHENTICATION], [8, (size + 2) * 4], (size + 1) * 8)
        fragment_offset = np.where(is_fragment, column(header, 2, ">u2") & 0xFFF8, 0)
        layers.proto[where] = column(header, 0, "u1")
        layers.at[where] += units
        layers.whole[where] = fragment_offset == 0
        columns["fragment_offset"][where] = fragment_offset
        columns["datagram"][where[is_fragment]] = column(header[is_fragment], 4, ">u4")


def _read_tcp(bodies: _Bodies, layers: _Layers, columns: Columns) -> None:
    """Read TCP's header (RFC 9293)."""
    where = _where(layers.whole & (layers.proto == _TCP) & (bodies.length >= layers.at + _TCP_BYTES))
    if _none(where):
        return
    begin = layers.at[where]
    header = bodies.header(where, begin, _TCP_BYTES)
    columns["sport"][where] = column(header, 0, ">u2")
    columns["dport"][where] = column(header, 2, ">u2")
    columns["seq"][where] = column(header, 4, ">u4")
    columns["ack"][where] = column(header, 8, ">u4")
    columns["flags"][where] = column(header, 13, "u1")
    payload = begin + np.maximum((column(header, 12, "u1") >> 4) * 4, _TCP_BYTES)
    columns["payload_offset"][where] = payload
    columns["payload_length"][where] = np.maximum(layers.end[where] - payload, 0)


def _read_udp(bodies: _Bodies, layers: _Layers, columns: Columns) -> None:
    """Read UDP's header (RFC 768). The IP length is used: UDP's own may be 0 when offloaded."""
    where = _where(layers.whole & (layers.proto == _UDP) & (bodies.length >= layers.at + _UDP_BYTES))
    if _none(where):
        return
    begin = layers.at[where]
    header = bodies.header(where, begin, _UDP_BYTES)
    columns["sport"][where] = column(header, 0, ">u2")
    columns["dport"][where] = column(header, 2, ">u2")
    columns["payload_offset"][where] = begin + _UDP_BYTES
    columns["payload_length"][where] = np.maximum(layers.end[where] - begin - _UDP_BYTES, 0)


def _digest_udp(bodies: _Bodies, columns: Columns) -> None:
    """Compute the CRC-32 of each UDP packet's captured payload; of a fragment, of its own part."""
    where = np.flatnonzero((columns["proto"] == _UDP) & (columns["payload_length"] > 0))
    payload_offset = columns["payload_offset"][where].astype(np.int64)
    captured = np.clip(bodies.length[where] - payload_offset, 0, columns["payload_length"][where])
    begin, buffer = bodies.begin[where] + payload_offset, bodies.data.data
    bounds = zip(begin.tolist(), (begin + captured).tolist(), strict=True)
    columns["digest"][where] = [zlib.crc32(buffer[start:end]) for start, end in bounds]
