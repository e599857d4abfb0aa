"""Packets that need a closer look when a capture is indexed: all but whole TCP and UDP over IP over Ethernet.

Their headers are read once, to count what is not read by kind, and to find fragments. The others are
recognised by a few comparisons.
"""

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from analysis.arrays import Bools, Bytes, Ints
from analysis.capture.pcap.encapsulation import ARP, ETHERNET, IPV4, IPV6, LINK
from analysis.capture.pcap.fields import TUNNEL_PORTS, Layers, read_layers
from analysis.capture.pcap.files.format import column, gather
from analysis.capture.pcap.files.records import HEAD_BYTES, PacketRecords
from analysis.capture.pcap.protocol_names import unread_packets

KINDS_MAX = 64  # counted each; others are counted together
OTHERS = "packets of other protocols"


@dataclass(frozen=True, slots=True)
class UncommonPackets:
    """Some of a capture's packets, with their layers."""

    rows: Ints  # indices among the records
    records: PacketRecords
    layers: Layers


@dataclass(slots=True)
class UnreadPackets:
    """Counts of the packets that are not read up to IP, by kind."""

    kinds: Counter[int] = field(default_factory=Counter)
    others: int = 0

    def add(self, packets: UncommonPackets) -> None:
        """Count the unread ones among these packets. ARP counts as read, since it has no IP packet."""
        kinds, counts = np.unique(packets.layers.headers.kind, return_counts=True)
        for kind, count in zip(kinds.tolist(), counts.tolist(), strict=True):
            if kind in self.kinds or len(self.kinds) < KINDS_MAX:
                self.kinds[kind] += count
            else:
                self.others += count

    def by_name(self) -> dict[str, int]:
        """Return the counts by name."""
        found = {
            unread_packets(kind): count for kind, count in self.kinds.items() if kind not in (IPV4, IPV6, ARP)
        }
        return found | ({OTHERS: self.others} if self.others else {})


def uncommon_packets(data: Bytes, records: PacketRecords) -> UncommonPackets | None:
    """Return the packets that need a closer look; None if none does."""
    rows = np.arange(records.at.size)
    if isinstance(records.link_type, int) and LINK | records.link_type == ETHERNET:
        for pattern in _COMMON:
            matching = pattern.matches(data, records, rows)
            if matching.all():
                return None
            rows = rows[~matching]
    some = records.take(rows)
    return UncommonPackets(rows, some, read_layers(data, some))


@dataclass(frozen=True, slots=True)
class _CommonFrame:
    """Ethernet frames with these bits in bytes 8 to 15 and 16 to 23, and with whole headers."""

    first: tuple[int, int]  # mask and value
    second: tuple[int, int]
    headers_bytes: int
    ports_at: int | None = None  # if the destination port tells whether it is a tunnel

    def matches(self, data: Bytes, records: PacketRecords, rows: Ints) -> Bools:
        """Return which of these rows are such frames."""
        everything = rows.size == records.at.size
        head = records.head if everything else records.head[rows]
        length = records.length if everything else records.length[rows]
        found: Bools = length >= self.headers_bytes
        for at, (mask, value) in ((8, self.first), (16, self.second)):
            found &= head[:, at : at + 8].view("<u8")[:, 0] & _word(mask) == _word(value)
        if self.ports_at is not None and (places := np.flatnonzero(found)).size:
            port_at = self.ports_at + 2
            if port_at + 2 <= HEAD_BYTES:
                ports = column(head[places] if places.size < found.size else head, port_at, ">u2")
            else:
                ports = column(gather(data, records.begin[rows[places]] + port_at, 2), 0, ">u2")
            found[places] = TUNNEL_PORTS[ports] == 0
        return found


def _word(big_endian: int) -> np.uint64:
    return np.uint64(int.from_bytes(big_endian.to_bytes(8, "big"), "little"))


_IPV4_FIRST = (0xFFFF_FF00, 0x0800_4500)  # ethertype, version and header length
_IPV6_FIRST = (0xFFFF_F000, 0x86DD_6000)
_COMMON = (
    _CommonFrame(_IPV4_FIRST, (0x3FFF_00FF, 6), 54),  # fragment offset, and protocol
    _CommonFrame(_IPV4_FIRST, (0x3FFF_00FF, 17), 42, ports_at=34),
    _CommonFrame(_IPV6_FIRST, (0xFF00_0000, 6 << 24), 74),  # next header
    _CommonFrame(_IPV6_FIRST, (0xFF00_0000, 17 << 24), 62, ports_at=54),
)
"""TCP and UDP on IPv4 without options, and on IPv6 without extension headers."""
