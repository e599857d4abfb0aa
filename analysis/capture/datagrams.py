"""Markers in the UDP datagrams of one host's capture: events that programs send without a connection.

Each datagram is searched on its own. Datagrams have no stream offset, but an event must be matched between
its sender's and its receiver's capture. A row of MESSAGES therefore has the event's sequence number as its
offset, and a "connection" number made of the stream and the number of earlier transmissions of the same event
in the same direction. Retransmissions are thereby distinct, and each "connection" is ordered by sequence
number. If the first transmission is lost, the receiver's side counts the second one as the first. Rows are
emitted in this order, after the time that TCP segments wait too.

Datagrams to multicast groups count at their sender, and at each host that has joined (`groups`).

Fragmented datagrams are reassembled first. If fragments are missing, the receiver discards the datagram; it
is not searched, and GAPS names the missing bytes by their offset in it. A datagram with a wrong checksum is
not searched either.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from analysis.arrays import NEVER, Bytes, Ints
from analysis.capture.codings import JoinedBytes, encodings
from analysis.capture.fragmented_datagrams import (
    UDP_HEADER_BYTES,
    Direction,
    IncompleteDatagrams,
    UdpDatagram,
    UdpFragment,
)
from analysis.capture.groups import GroupMemberships, is_group
from analysis.capture.markers import MarkerSearch, event_columns, find_markers
from analysis.capture.pcap.decode import DecodingCounts, Emit, message_batch
from analysis.capture.pcap.fields import DIRECTION, UDP, Columns
from analysis.capture.pcap.files.format import column, gather
from analysis.capture.pcap.reassemble import HORIZON_NS
from analysis.schemas import DECODING, GAPS

SEQ_MAX = 1 << 62
TIMES_MAX = 255
STREAMS_MAX = 1 << 23
_LENGTH_BEFORE_PAYLOAD = 4
"""The length field of UDP's header begins this many bytes before the payload (RFC 768)."""


@dataclass(slots=True)
class _Event:
    first_ns: int
    complete_ns: int
    stream: int
    seq: int
    time: int  # number of earlier transmissions in this direction
    length: int


class _DirectionState:
    """One direction between two ports."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        self.counts = DecodingCounts()
        self.datagrams = self.bytes = self.missing_bytes = 0
        self.waiting: list[_Event] = []
        self._times: Counter[tuple[int, int]] = Counter()  # transmissions per (stream, sequence number)

    def add(self, seen: UdpDatagram, stream: int, seq: int, length: int) -> None:
        if stream >= STREAMS_MAX or seq >= SEQ_MAX:
            self.counts.malformed += 1
            return
        time = min(self._times[stream, seq], TIMES_MAX)
        self.waiting.append(_Event(seen.first_ns, seen.complete_ns, stream, seq, time, length))
        self._times[stream, seq] += 1


class DatagramMarkers:
    """All datagrams of one host's capture, read window by window.

    groups: those of the host. name: returns a direction's columns.
    """

    def __init__(
        self,
        data: Bytes,
        markers: MarkerSearch,
        groups: GroupMemberships,
        name: Callable[[Direction], dict[str, Any]],
        emit: Emit,
    ) -> None:
        self._data = data
        self._markers = markers
        self._groups = groups
        self._encodings = encodings(markers.size_bytes)
        self._name = name
        self._emit = emit
        self._ways: dict[Direction, _DirectionState] = {}
        self._incomplete = IncompleteDatagrams()
        self._latest_ns = 0

    def passing(self, window: Iterable[Columns]) -> Iterator[Columns]:
        """Search the next packets and yield them unchanged."""
        for columns in window:
            self._groups.read(self._data, columns)
            is_udp = (columns["proto"] == UDP) & (columns["payload_length"] > 0)
            rows = np.flatnonzero(is_udp & ((columns["dport"] > 0) | (columns["fragment_offset"] > 0)))
            rows = self._groups.arriving(columns, rows)
            whole_bytes = self._whole_bytes(columns, rows)
            for row, whole in zip(rows.tolist(), whole_bytes.tolist(), strict=True):
                datagram = self._datagram(columns, row, whole)
                if datagram is not None and not datagram.is_damaged(self._data):
                    self._search(datagram)
            if rows.size:
                self._latest_ns = max(self._latest_ns, int(columns["t_ns"][rows].max()))
            yield columns

    def settle(self) -> None:
        """Emit the events older than the horizon."""
        self._emit_events(self._latest_ns - HORIZON_NS)

    def end(self) -> None:
        """Emit the remaining events, the gaps, a row of DECODING for each direction that had either, and the
        memberships.
        """
        self._emit_events(NEVER)
        self._emit("gaps", pa.RecordBatch.from_pylist(self._gaps(), schema=GAPS))
        counts = [_count(way) for way in self._ways.values()]
        self._emit("decoding", pa.RecordBatch.from_pylist(counts, schema=DECODING))
        self._emit("memberships", self._groups.rows())

    def _whole_bytes(self, columns: Columns, rows: Ints) -> Ints:
        """Return each datagram's payload by the length in its UDP header; 0 for later fragments."""
        header_at = columns["offset"][rows] + columns["payload_offset"][rows] - _LENGTH_BEFORE_PAYLOAD
        is_first = columns["fragment_offset"][rows] == 0
        found = np.zeros(rows.size, np.int64)
        found[is_first] = column(gather(self._data, header_at[is_first], 2), 0, ">u2") - UDP_HEADER_BYTES
        return found

    def _datagram(self, columns: Columns, row: int, whole_bytes: int) -> UdpDatagram | None:
        """Return the datagram that a packet completes."""
        payload_at, length = int(columns["payload_offset"][row]), int(columns["payload_length"][row])
        fragment_offset = int(columns["fragment_offset"][row])
        t_ns, direction = int(columns["t_ns"][row]), tuple(int(columns[name][row]) for name in DIRECTION)
        is_fragment = fragment_offset > 0 or whole_bytes > length
        fragment = UdpFragment(
            t_ns=t_ns,
            direction=direction,
            datagram=int(columns["datagram"][row]),
            offset=max(fragment_offset - UDP_HEADER_BYTES, 0),
            length=length,
            at=int(columns["offset"][row]) + payload_at,
            captured=min(max(int(columns["length"][row]) - payload_at, 0), length),
            whole_bytes=whole_bytes if is_fragment else length,
        )
        if is_fragment:
            return self._incomplete.add(fragment)
        alone = UdpDatagram(direction, t_ns, t_ns)
        alone.add(fragment)
        return alone

    def _search(self, datagram: UdpDatagram) -> None:
        content = JoinedBytes.from_chunked(datagram.content(self._data), 0, is_final=True)
        found = find_markers(content, self._encodings)
        if not (found.at or found.malformed or found.unfinished_bytes):
            return
        way = self._way(datagram.direction)
        way.datagrams += len(datagram.fragments)
        way.bytes += datagram.received_bytes
        found.count(way.counts)
        for stream, seq, begin, end in zip(found.stream, found.seq, found.at, found.end, strict=True):
            way.add(datagram, stream, seq, end - begin)

    def _way(self, direction: Direction) -> _DirectionState:
        if direction not in self._ways:
            self._ways[direction] = _DirectionState(self._name(direction))
        return self._ways[direction]

    def _gaps(self) -> list[dict[str, Any]]:
        """Return rows of GAPS for the datagrams that remained incomplete, and count their missing bytes."""
        rows = []
        for datagram in self._incomplete.abandoned():
            way = self._way(datagram.direction)
            for offset, length in datagram.missing():
                way.missing_bytes += length
                place = {"connection": 0, "stream_offset": offset, "length": length, "cause": "missing"}
                rows.append({name: value.as_py() for name, value in way.names.items()} | place)
        return rows

    def _emit_events(self, before_ns: int) -> None:
        for way in self._ways.values():
            old = [each for each in way.waiting if each.complete_ns < before_ns]
            if old:
                way.waiting = [each for each in way.waiting if each.complete_ns >= before_ns]
                old.sort(key=lambda each: (each.stream, each.time, each.seq))
                self._emit("messages", self._batch(way, old))

    def _batch(self, way: _DirectionState, events: list[_Event]) -> pa.RecordBatch:
        stream, seq, first_ns, complete_ns, length = (
            [getattr(each, name) for each in events]
            for name in ("stream", "seq", "first_ns", "complete_ns", "length")
        )
        connection = [each.stream * (TIMES_MAX + 1) + each.time for each in events]
        ends = way.names
        if ends["direction"].as_py() == "in" and is_group(ends["dst"].as_py()):
            ends = ends | {"dst": pa.scalar(self._groups.address)}  # the type is that at this receiver
        columns = event_columns(stream, seq, self._markers, ends) | {
            "connection": pa.array(np.array(connection, np.int64)),
            "stream_offset": pa.array(np.array(seq, np.int64)),
            "length": pa.array(np.array(length, np.int64)),
            "t_first_ns": pa.array(np.array(first_ns, np.int64)),
            "t_complete_ns": pa.array(np.array(complete_ns, np.int64)),
            "retransmitted": pa.array([False] * len(events)),
        }
        return message_batch(way.names, columns, len(events))


def _count(way: _DirectionState) -> dict[str, Any]:
    nothing = ("retransmitted_segments", "retransmitted_bytes", "stray_segments")
    return {
        **{name: value.as_py() for name, value in way.names.items()},
        **dict.fromkeys((*nothing, "snapped_bytes", "connection"), 0),
        "reset": False,
        "segments": way.datagrams,
        "bytes": way.bytes,
        "missing_bytes": way.missing_bytes,
        **asdict(way.counts),
    }
