"""Markers in the UDP datagrams of one host's capture: events that programs send without a connection.

Each datagram is searched on its own. Datagrams have no stream offset, but an event must be matched between
its sender's and its receiver's capture. A row of MESSAGES therefore has the event's sequence number as its
offset, and a "connection" number made of the stream and the number of earlier transmissions of the same event
in the same direction. Retransmissions are thereby distinct, and each "connection" is ordered by sequence
number. If the first transmission is lost, the receiver's side takes the second one for the first. Rows are
emitted in this order, after the time that TCP segments wait too.

If a datagram is fragmented, only its first fragment is searched.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from analysis.capture.markers import MarkerSearch, event_columns, find_markers
from analysis.capture.pcap.decode import DecodingCounts, message_batch
from analysis.capture.pcap.fields import DIRECTION, Columns
from analysis.capture.pcap.files.format import Bytes

UDP = 17
SEQ_MAX = 1 << 62
TIMES_MAX = 255
STREAMS_MAX = 1 << 23
Direction = tuple[int, ...]


@dataclass(slots=True)
class _Event:
    t_ns: int
    stream: int
    seq: int
    time: int  # number of earlier transmissions in this direction
    length: int


class _DirectionState:
    """One direction between two ports."""

    def __init__(self, names: dict[str, Any]) -> None:
        self.names = names
        self.counts = DecodingCounts()
        self.datagrams = self.bytes = 0
        self.waiting: list[_Event] = []
        self._times: Counter[tuple[int, int]] = Counter()  # transmissions per (stream, sequence number)

    def add(self, t_ns: int, stream: int, seq: int, length: int) -> None:
        if stream >= STREAMS_MAX or seq >= SEQ_MAX:
            self.counts.malformed += 1
            return
        time = min(self._times[stream, seq], TIMES_MAX)
        self.waiting.append(_Event(t_ns, stream, seq, time, length))
        self._times[stream, seq] += 1


class DatagramMarkers:
    """All datagrams of one host's capture, read window by window. name: returns a direction's columns."""

    def __init__(
        self, data: Bytes, markers: MarkerSearch, name: Callable[[Direction], dict[str, Any]], horizon_ns: int
    ) -> None:
        self._data = data
        self._markers = markers
        self._written = markers.written()
        self._name = name
        self._horizon_ns = horizon_ns
        self._ways: dict[Direction, _DirectionState] = {}
        self._latest_ns = 0

    def passing(self, window: Iterable[Columns]) -> Iterator[Columns]:
        """Search the next packets and yield them unchanged."""
        for columns in window:
            rows = np.flatnonzero(
                (columns["proto"] == UDP) & (columns["payload_length"] > 0) & (columns["dport"] > 0)
            )
            for row in rows.tolist():
                self._search(columns, row)
            if rows.size:
                self._latest_ns = max(self._latest_ns, int(columns["t_ns"][rows].max()))
            yield columns

    def settled(self) -> list[pa.RecordBatch]:
        """Return the events older than the horizon."""
        return self._sorted_batches(self._latest_ns - self._horizon_ns)

    def end(self) -> tuple[list[pa.RecordBatch], list[dict[str, Any]]]:
        """Return the remaining events, and a row of DECODING for each direction that had events."""
        batches = self._sorted_batches(None)
        return batches, [_count(way) for way in self._ways.values()]

    def _search(self, columns: Columns, row: int) -> None:
        payload_at = int(columns["payload_offset"][row])
        begin = int(columns["offset"][row]) + payload_at
        length = int(columns["payload_length"][row])
        captured = min(length, int(columns["length"][row]) - payload_at)
        found = find_markers(
            self._data[begin : begin + max(captured, 0)].tobytes(), 0, self._written, is_final=True
        )
        if not (found.at or found.malformed or found.unfinished_bytes):
            return
        direction = tuple(int(columns[name][row]) for name in DIRECTION)
        way = self._ways.get(direction)
        if way is None:
            way = self._ways[direction] = _DirectionState(self._name(direction))
        way.datagrams += 1
        way.bytes += length
        found.count(way.counts)
        t_ns = int(columns["t_ns"][row])
        for stream, seq, begin, end in zip(found.stream, found.seq, found.at, found.end, strict=True):
            way.add(t_ns, stream, seq, end - begin)

    def _sorted_batches(self, before_ns: int | None) -> list[pa.RecordBatch]:
        batches = []
        for way in self._ways.values():
            old = [each for each in way.waiting if before_ns is None or each.t_ns < before_ns]
            if old:
                way.waiting = [
                    each for each in way.waiting if before_ns is not None and each.t_ns >= before_ns
                ]
                old.sort(key=lambda each: (each.stream, each.time, each.seq))
                batches.append(self._batch(way, old))
        return batches

    def _batch(self, way: _DirectionState, events: list[_Event]) -> pa.RecordBatch:
        stream, seq, t_ns = ([getattr(each, name) for each in events] for name in ("stream", "seq", "t_ns"))
        connection = [each.stream * (TIMES_MAX + 1) + each.time for each in events]
        columns = event_columns(stream, seq, self._markers, way.names) | {
            "connection": pa.array(np.array(connection, np.int64)),
            "stream_offset": pa.array(np.array(seq, np.int64)),
            "length": pa.array(np.array([each.length for each in events], np.int64)),
            "t_first_ns": pa.array(np.array(t_ns, np.int64)),
            "t_complete_ns": pa.array(np.array(t_ns, np.int64)),
            "retransmitted": pa.array([False] * len(events)),
        }
        return message_batch(way.names, columns, len(events))


def _count(way: _DirectionState) -> dict[str, Any]:
    nothing = ("retransmitted_segments", "retransmitted_bytes", "stray_segments", "missing_bytes")
    return {
        **{name: value.as_py() for name, value in way.names.items()},
        **dict.fromkeys((*nothing, "snapped_bytes", "connection"), 0),
        "reset": False,
        "segments": way.datagrams,
        "bytes": way.bytes,
        **asdict(way.counts),
    }
