"""IP fragments of TCP segments: each later fragment gets its place in the stream.

Only the first fragment of a datagram has the TCP header. The fragments are not reassembled: since that header
gives the position of the payload in the stream, a later fragment is treated as a segment with the same ports
and a higher sequence number, and TCP's reassembly does the rest. This is done once, when the index is built,
over the whole capture in order. Fragments are rare, so they are processed one by one.

Fragments belong to the same datagram if addresses, protocol and identification agree (RFC 791, section 3.2;
RFC 8200, section 4.5), for at most one minute and until the datagram is complete. They may arrive in any
order.
"""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from analysis.capture.pcap.fields import TCP, Columns
from analysis.capture.pcap.uncommon import UncommonPackets

FRAGMENTS_MAX = 100_000  # that get a place; others are lost
DATAGRAMS_MAX = 4_096  # incomplete at the same time; the oldest is abandoned
WAITING_MAX = 64  # fragments of a datagram that wait for its first one; others are lost
TOGETHER_NS = 60 * 1_000_000_000

_TCP_BYTES = 20
_OF_DATAGRAM = ("src_hi", "src_lo", "dst_hi", "dst_lo", "datagram")
_Key = tuple[int, ...]
"""The values of _OF_DATAGRAM, which identify a datagram."""
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
    offset: int  # in the datagram
    length: int
    more: bool  # whether more fragments follow


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
    _datagrams: dict[_Key, _Datagram] = field(default_factory=dict)

    def collect(self, packets: UncommonPackets) -> None:
        """Find the fragments of TCP segments among packets."""
        columns = packets.layers.columns
        is_cut = (columns["fragment_offset"] > 0) | (columns["more_fragments"] > 0)
        for row in np.flatnonzero((columns["proto"] == TCP) & is_cut).tolist():
            packet = {name: int(values[row]) for name, values in columns.items()}
            header = packet["payload_offset"] - int(packets.layers.headers.at[row])
            at, t_ns = int(packets.records.begin[row]), int(packets.records.t_ns[row])
            key = tuple(packet[name] for name in _OF_DATAGRAM)
            part = _CapturedFragment(
                at, packet["fragment_offset"], header + packet["payload_length"], packet["more_fragments"] > 0
            )
            self._take(key, part, _first(packet, at, header) if part.offset == 0 else None, t_ns)

    def finish(self) -> tuple[Fragment, ...]:
        """Return all placed fragments in file order; waiting fragments count as lost."""
        self.lost += sum(len(datagram.waiting) for datagram in self._datagrams.values())
        self._datagrams.clear()
        return tuple(sorted(self.placed, key=lambda fragment: fragment.at))

    def _take(self, key: _Key, part: _CapturedFragment, first: Fragment | None, t_ns: int) -> None:
        datagram = self._datagrams.get(key)
        if datagram is None or t_ns - datagram.since_ns > TOGETHER_NS:
            self._give_up(key)
            if len(self._datagrams) == DATAGRAMS_MAX:
                self._give_up(next(iter(self._datagrams)))
            datagram = self._datagrams[key] = _Datagram(t_ns)
        datagram.lengths[part.offset] = part.length
        if not part.more:
            datagram.size = part.offset + part.length
        if part.offset == 0:
            datagram.first = first
        elif len(datagram.waiting) < WAITING_MAX:
            datagram.waiting.append(part)
        else:
            self.lost += 1
        if datagram.first is not None:
            for waiting in datagram.waiting:
                self._place(datagram.first, waiting)
            datagram.waiting.clear()
        if datagram.size is not None and sum(datagram.lengths.values()) >= datagram.size:
            self._give_up(key)

    def _place(self, first: Fragment, part: _CapturedFragment) -> None:
        if len(self.placed) == FRAGMENTS_MAX:
            self.lost += 1
        else:
            self.placed.append(replace(first, at=part.at, seq=(first.seq + part.offset) % (1 << 32)))

    def _give_up(self, key: _Key) -> None:
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


def _first(packet: Mapping[str, int], at: int, header: int) -> Fragment | None:
    """Return the first fragment as a segment, with the sequence number of a byte at offset 0.

    None if its TCP header was not read. header: bytes of that.
    """
    if header < _TCP_BYTES:
        return None
    begin = packet["seq"] - header + (packet["flags"] >> 1 & 1)
    flags = packet["flags"] & ~_OF_CONNECTION
    return Fragment(at, packet["sport"], packet["dport"], begin, packet["ack"], flags)
