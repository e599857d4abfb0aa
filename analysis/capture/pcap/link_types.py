"""Link-layer headers by link type: Ethernet with stacked VLAN tags, Linux cooked captures v1 and v2, raw IP,
null and loopback.

Numbers and layouts: the registry of link-layer header types (draft-ietf-opsawg-pcaplinktype, tcpdump.org).
For packets of other link types only the time and the lengths are read.
"""

from collections.abc import Callable

import numpy as np

from analysis.capture.pcap.files.format import Bytes, Integers, column, gather
from analysis.capture.pcap.files.records import HEAD_BYTES, PacketRecords

ETHERTYPE_IPV4, ETHERTYPE_IPV6 = 0x0800, 0x86DD
VLAN_TAGS_MAX = 4

_ETHERTYPES_VLAN = (0x8100, 0x88A8, 0x9100)  # IEEE 802.1Q, 802.1ad, and its predecessor
_VLAN_BYTES = 4
ETHERNET = 1
_NULL, _LOOP, _COOKED, _COOKED_2 = 0, 108, 113, 276
_RAW = (12, 14, 101, 228, 229)  # DLT_RAW as written on different systems, LINKTYPE_RAW, _IPV4, _IPV6
_IPV4_FAMILIES = (2,)
_IPV6_FAMILIES = (10, 23, 24, 28, 30)  # AF_INET6 of Linux, Windows, NetBSD and OpenBSD, FreeBSD, Darwin

Layer = tuple[Integers, int]
"""The ethertype of each packet, and the offset of the network layer in it."""


def network_layer(data: Bytes, records: PacketRecords) -> tuple[Integers, Integers]:
    """Return each packet's ethertype, 0 for none, and the offset of its network layer in its data."""
    if isinstance(records.link_type, int):
        ethertype, header_bytes = _layer(records.link_type, records.head, records.length)
        begin = np.full(ethertype.size, header_bytes)
    else:
        ethertype, begin = np.zeros(records.at.size, np.int64), np.zeros(records.at.size, np.int64)
        for link_type in np.unique(records.link_type).tolist():
            rows = np.flatnonzero(records.link_type == link_type)
            ethertype[rows], begin[rows] = _layer(link_type, records.head[rows], records.length[rows])
    _skip_vlan_tags(data, records, ethertype, begin)
    return ethertype, begin


def is_known(link_type: int) -> bool:
    """Return whether packets of this link type can be read."""
    return link_type in _READERS


def _layer(link_type: int, head: Bytes, length: Integers) -> Layer:
    reader = _READERS.get(link_type)
    if reader is None:
        return np.zeros(length.size, np.int64), 0
    header_bytes, read = reader
    return np.where(length >= header_bytes, read(head), 0), header_bytes


def _ethertype_at(offset: int) -> Callable[[Bytes], Integers]:
    return lambda head: column(head, offset, ">u2")


def _by_version(head: Bytes) -> Integers:
    """Return the ethertype by the version of IP, the first four bits of its header."""
    version = column(head, 0, "u1") >> 4
    return np.select([version == 4, version == 6], [ETHERTYPE_IPV4, ETHERTYPE_IPV6], 0)


def _by_family(head: Bytes) -> Integers:
    """Return the ethertype by address family, in the capturing host's (null) or network byte order (loop)."""
    either = [column(head, 0, kind) for kind in (">u4", "<u4")]
    ipv4, ipv6 = (
        np.isin(either[0], families) | np.isin(either[1], families)
        for families in (_IPV4_FAMILIES, _IPV6_FAMILIES)
    )
    return np.select([ipv4, ipv6], [ETHERTYPE_IPV4, ETHERTYPE_IPV6], 0)


_READERS: dict[int, tuple[int, Callable[[Bytes], Integers]]] = {
    ETHERNET: (14, _ethertype_at(12)),
    _COOKED: (16, _ethertype_at(14)),
    _COOKED_2: (20, _ethertype_at(0)),
    _NULL: (4, _by_family),
    _LOOP: (4, _by_family),
} | dict.fromkeys(_RAW, (0, _by_version))


def _skip_vlan_tags(data: Bytes, records: PacketRecords, ethertype: Integers, begin: Integers) -> None:
    """Move `begin` past the tags, and set `ethertype` to that of the innermost tag."""
    for _ in range(VLAN_TAGS_MAX):
        tagged = np.flatnonzero(np.isin(ethertype, _ETHERTYPES_VLAN))
        if tagged.size == 0:
            break
        inner = column(gather(data, records.begin[tagged] + begin[tagged], _VLAN_BYTES), 2, ">u2")
        begin[tagged] += _VLAN_BYTES
        ethertype[tagged] = np.where(begin[tagged] <= records.length[tagged], inner, 0)


assert max(header_bytes for header_bytes, _ in _READERS.values()) <= HEAD_BYTES
