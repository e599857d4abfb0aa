"""Reads the bytes of messages from the captures by reference: only the packets that carry them are read.

A message is read from its sender's capture, and from its receiver's if the first is incomplete. If bytes were
seen several times, the first copy counts, as in the decoder.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import zip_longest
from typing import Any

import numpy as np

from analysis.capture.pcap.fields import DIRECTION
from analysis.capture.pcap.files.mapping import map_bytes
from analysis.capture.time_range import TimeRange
from analysis.inspect.packets.dissect import CapturedBytes
from analysis.inspect.packets.wire import (
    ConnectionSyns,
    Direction,
    Ranges,
    direction_of,
    key_of,
    read_syns,
    relative,
)
from analysis.taps.run_captures import CaptureFile, captures_of
from experiments.records.rundir import RunDirectory

Row = Mapping[str, Any]
_SEGMENT = ("t_ns", "offset", "length", "seq", "payload_offset", "payload_length", *DIRECTION)

COLUMNS = ("t_arrived_ns", "t_complete_ns", "t_sent_ns", "t_left_ns", "connection", "stream_offset")
"""Columns of a transfer that are needed in addition to those of a line."""


@dataclass(frozen=True, slots=True)
class MessageBytes:
    """The bytes of a message, and the packets that carry them."""

    capture: str
    packets: int  # that carry its bytes
    content: CapturedBytes


@dataclass(frozen=True, slots=True)
class _Segment:
    seq: int
    payload: bytes  # the captured part
    length: int


class MessageByteReader:
    """Reads the bytes of messages of one run."""

    def __init__(self, run: RunDirectory) -> None:
        self._captures: dict[str, list[CaptureFile]] = defaultdict(list)
        for capture in captures_of(run):
            if capture.host:
                self._captures[capture.host].append(capture)
        self._openings: ConnectionSyns = read_syns(run)
        self._mapped = cache(map_bytes)

    def read_messages(self, rows: Sequence[Row]) -> list[MessageBytes | None]:
        """Return the bytes of each message; None if no capture has any of them."""
        found: list[MessageBytes | None] = [None] * len(rows)
        for sights in zip_longest(*map(_windows, rows)):
            groups: dict[str, list[int]] = defaultdict(list)
            for place, sight in enumerate(sights):
                best = found[place]
                if sight is not None and (best is None or not all(best.content.known)):
                    groups[sight.host].append(place)
            for host, places in groups.items():
                asked = [(rows[place], sights[place]) for place in places]
                for place, raw in zip(places, self._at(host, asked), strict=True):
                    best = found[place]
                    if raw and (best is None or sum(raw.content.known) > sum(best.content.known)):
                        found[place] = raw
        return found

    def _at(self, host: str, asked: Sequence[tuple[Row, "_CaptureWindow"]]) -> Iterator[MessageBytes | None]:
        """Yield the bytes of messages from the captures of one host."""
        placed = [(row, self._openings.first_byte(row)) for row, _ in asked]
        ranges = Ranges(
            (direction_of(row), first, row["length"]) for row, first in placed if first is not None
        )
        times = TimeRange(min(sight.first_ns for _, sight in asked), max(sight.end_ns for _, sight in asked))
        captures = [(each.name, self._segments(each, times, ranges)) for each in self._captures.get(host, ())]
        for row, first in placed:
            tries = (
                _assemble(name, segments.get(direction_of(row), ()), first, row["length"])
                for name, segments in captures
                if first is not None
            )
            yield next((raw for raw in tries if raw), None)

    def _segments(
        self, capture: CaptureFile, times: TimeRange, ranges: Ranges
    ) -> dict[Direction, list[_Segment]]:
        found: dict[Direction, list[_Segment]] = defaultdict(list)
        data = self._mapped(capture.path).data
        for columns in capture.packets(times, _SEGMENT):
            for place in np.flatnonzero(ranges.carried_by(columns)).tolist():
                row = {name: int(columns[name][place]) for name in _SEGMENT}
                begin, end = row["offset"] + row["payload_offset"], row["offset"] + row["length"]
                payload = bytes(data[begin : min(end, begin + row["payload_length"])]) if begin < end else b""
                found[key_of(row)].append(_Segment(row["seq"], payload, row["payload_length"]))
        return found


@dataclass(frozen=True, slots=True)
class _CaptureWindow:
    """The host whose capture saw a message, and the time range."""

    host: str
    first_ns: int
    end_ns: int


def _windows(row: Row) -> list[_CaptureWindow]:
    """Return where a message was captured.

    The sender comes first if it saw the whole message or if only it saw any.
    """
    left = row["t_sent_ns"], row["t_left_ns"]
    arrived = row["t_arrived_ns"], row["t_complete_ns"]
    ends = [(row["sender"], *left), (row["receiver"], *arrived)]
    if left[1] is None and arrived[0] is not None:
        ends.reverse()
    return [
        _CaptureWindow(host, first_ns, (first_ns if last_ns is None else last_ns) + 1)
        for host, first_ns, last_ns in ends
        if host is not None and first_ns is not None
    ]


def _assemble(capture: str, segments: Iterable[_Segment], first: int, length: int) -> MessageBytes | None:
    """Assemble a message from the segments of one direction.

    Returns None if no segment has any of its bytes.
    """
    data, known = np.zeros(length, np.uint8), np.zeros(length, np.bool_)
    packets = 0
    for segment in segments:
        start = relative(segment.seq, first)
        if start >= length or start + segment.length <= 0:
            continue
        packets += 1
        begin, end = max(start, 0), min(start + len(segment.payload), length)
        if begin < end:
            new = ~known[begin:end]
            data[begin:end][new] = np.frombuffer(segment.payload, np.uint8)[begin - start : end - start][new]
            known[begin:end] = True
    return MessageBytes(capture, packets, CapturedBytes(data.tobytes(), known.tobytes())) if packets else None
