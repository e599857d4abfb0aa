"""Retransmitted segments: which bytes, when first and when again, and which messages they carry.

The table of transfers marks messages with bytes that were seen more than once; their packets are looked up in
the captures of both hosts. A byte seen again at the sender was retransmitted; a byte seen again at the
receiver means that both copies arrived. A segment that only fills a gap at the receiver does not count. A
retransmission seen at both ends counts once: a sighting at the receiver is matched to the last earlier
sighting of the same bytes at the sender that no later sighting at the receiver matched. Captures of links
show the same packets and are ignored.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter, itemgetter

import numpy as np

from analysis.capture.pcap.fields import DIRECTION
from analysis.capture.time_range import TimeRange
from analysis.inspect.packets.capture_files import Extent, Row, located_messages
from analysis.inspect.packets.filters import Filter
from analysis.inspect.packets.wire import SEQUENCE_NUMBERS, Direction, Ranges, direction_of, key_of
from analysis.taps.run_captures import CaptureFile, captures_of
from experiments.records.rundir import RunDirectory

_ON_THE_WAY_NS = 10 * 10**9  # longest transit time; sightings further apart are not matched
_SEGMENT = ("t_ns", "seq", "payload_length", *DIRECTION)


@dataclass(frozen=True, slots=True)
class Retransmission:
    """A retransmitted segment.

    Its times and `nth` (2: the second time) are those of the first of `hosts`, whose captures saw it again:
    the sender, the receiver, or both in this order.
    """

    t_ns: int
    first_ns: int  # when any of its bytes was first seen
    nth: int
    hosts: tuple[str, ...]
    stream_offset: int
    length: int
    messages: tuple[Row, ...]  # rows of TRANSFERS whose bytes it carries

    @property
    def connection(self) -> tuple[Direction, int]:
        """The connection and its direction."""
        row = self.messages[0]
        return direction_of(row), row["connection"]

    @property
    def from_sender(self) -> bool:
        """Whether the sender's capture saw it."""
        return bool(self.hosts[0] == self.messages[0]["sender"])

    def overlaps(self, other: "Retransmission") -> bool:
        """Return whether two segments of one connection share a byte."""
        first = max(self.stream_offset, other.stream_offset)
        end = min(self.stream_offset + self.length, other.stream_offset + other.length)
        return first < end


@dataclass(slots=True)
class SeenBytes:
    """The bytes of a connection seen so far, as ascending disjoint ranges with first time and count."""

    starts: list[int] = field(default_factory=list)
    pieces: list[tuple[int, int, int]] = field(default_factory=list)  # end, first time, count

    def see(self, start: int, end: int, t_ns: int) -> tuple[int, int]:
        """Record a segment. Returns when any of its bytes was first seen, and how often it has been seen."""
        low = bisect_right(self.starts, start) - 1
        low += low < 0 or self.pieces[low][0] <= start
        high = bisect_left(self.starts, end)
        met = [(self.starts[place], *self.pieces[place]) for place in range(low, high)]
        laid: list[tuple[int, int, int, int]] = []
        position = start
        for begin, stop, first_ns, times in met:
            if begin < start:
                laid.append((begin, start, first_ns, times))
            if begin > position:
                laid.append((position, begin, t_ns, 1))
            laid.append((max(begin, start), min(stop, end), first_ns, times + 1))
            if stop > end:
                laid.append((end, stop, first_ns, times))
            position = min(stop, end)
        if position < end:
            laid.append((position, end, t_ns, 1))
        self.starts[low:high] = [piece[0] for piece in laid]
        self.pieces[low:high] = [piece[1:] for piece in laid]
        first_seen = min((first_ns for _, _, first_ns, _ in met), default=t_ns)
        return first_seen, max((times for _, _, _, times in met), default=0) + 1


class _MessagePositions:
    """Messages by their position in the byte stream."""

    def __init__(self) -> None:
        self._by_direction: dict[Direction, list[tuple[int, Row]]] = defaultdict(list)

    def add(self, row: Row, first: int) -> None:
        """Add a message whose first byte has this sequence number."""
        self._by_direction[direction_of(row)].append((first, row))

    def sort(self) -> None:
        """Sort the messages; required before `find`."""
        for messages in self._by_direction.values():
            messages.sort(key=itemgetter(0))

    def ranges(self) -> Ranges:
        """Return the bytes of all messages."""
        return Ranges(
            (direction, first, row["length"])
            for direction, messages in self._by_direction.items()
            for first, row in messages
        )

    def find(self, packet: Mapping[str, int]) -> tuple[list[Row], int]:
        """Return the messages whose bytes a packet carries, and its offset in the connection."""
        messages = self._by_direction.get(key_of(packet), [])
        found: list[tuple[int, Row]] = []
        for turn in (0, SEQUENCE_NUMBERS, -SEQUENCE_NUMBERS):  # a message or the packet may wrap
            begin = packet["seq"] + turn
            place = bisect_left(messages, begin + packet["payload_length"], key=itemgetter(0)) - 1
            while place >= 0 and begin < messages[place][0] + messages[place][1]["length"]:
                first, row = messages[place]
                found.append((row["stream_offset"] + begin - first, row))
                place -= 1
        found.sort(key=lambda each: int(each[1]["stream_offset"]))
        return [row for _, row in found], found[0][0] if found else 0


def retransmissions(run: RunDirectory, wanted: Filter, columns: Sequence[str]) -> list[Retransmission]:
    """Return the segments retransmitted within the filter's times, each once, in order of time.

    Only messages that match the filter are examined. columns: columns of TRANSFERS for the messages.
    """
    carried, extent, hosts = _MessagePositions(), Extent(), set[str]()
    asked = replace(wanted, times=TimeRange(None, wanted.times.end_ns), retransmitted=True)
    for row, first in located_messages(run, asked, columns):
        carried.add(row, first)
        extent.add(row)
        hosts.update(filter(None, (row["sender"], row["receiver"])))
    carried.sort()
    ranges = carried.ranges()
    times = TimeRange(extent.first_ns, wanted.times.end_ns)
    sightings: dict[tuple[Direction, int], list[Retransmission]] = defaultdict(list)
    for capture in captures_of(run):
        if capture.host in hosts:
            for again in _seen_again(capture, times, ranges, carried):
                sightings[again.connection].append(again)
    found = [
        again
        for of_connection in sightings.values()
        for again in join_sightings(of_connection)
        if wanted.times.meets(again.t_ns, again.t_ns)
    ]
    return sorted(found, key=attrgetter("t_ns"))


def join_sightings(sights: Iterable[Retransmission]) -> list[Retransmission]:
    """Join sightings at both ends of one direction of a connection; return retransmissions by time."""
    in_time = sorted(sights, key=attrgetter("t_ns"))
    sent = [again for again in in_time if again.from_sender]
    arrived: dict[int, list[Retransmission]] = defaultdict(
        list
    )  # index in `sent` -> sightings at the receiver
    unmatched: list[Retransmission] = []
    for again in reversed(in_time):
        if not again.from_sender:
            place = _sending_of(again, sent, arrived)
            (unmatched if place is None else arrived[place]).append(again)
    both = [
        replace(again, hosts=(*again.hosts, *arrived[place][0].hosts)) if place in arrived else again
        for place, again in enumerate(sent)
    ]
    return sorted([*both, *unmatched], key=attrgetter("t_ns"))


def _sending_of(
    again: Retransmission, sent: Sequence[Retransmission], arrived: Mapping[int, Sequence[Retransmission]]
) -> int | None:
    """Return the index of the sending that arrived as this segment.

    Offloading may have split or joined it.
    """
    for place in range(bisect_right(sent, again.t_ns, key=attrgetter("t_ns")) - 1, -1, -1):
        if sent[place].t_ns < again.t_ns - _ON_THE_WAY_NS:
            return None
        if sent[place].overlaps(again) and not any(map(again.overlaps, arrived.get(place, ()))):
            return place
    return None


def _seen_again(
    capture: CaptureFile, times: TimeRange, ranges: Ranges, carried: _MessagePositions
) -> Iterator[Retransmission]:
    seen: dict[tuple[Direction, int], SeenBytes] = defaultdict(SeenBytes)
    for columns in capture.packets(times, _SEGMENT):
        for place in np.flatnonzero(ranges.carried_by(columns)).tolist():
            packet = {name: int(columns[name][place]) for name in _SEGMENT}
            messages, offset = carried.find(packet)
            if not messages:
                continue
            connection = messages[0]["connection"]
            first_ns, nth = seen[key_of(packet), connection].see(
                offset, offset + packet["payload_length"], packet["t_ns"]
            )
            if nth > 1:
                yield Retransmission(
                    packet["t_ns"], first_ns, nth, (str(capture.host),), offset, packet["payload_length"],
                    tuple(messages),
                )  # fmt: skip
