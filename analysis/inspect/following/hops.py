"""Splits the time of each hop: waiting at the sender, retransmission, link delay, queueing.

A hop is a copy of the event with its position in the tree: its sender received the event by the hop that
first reached it. The link delay is the configured delay at the time the message left (LAN, WAN, LAN), within
the range of their jitter. Further time of the first byte is queueing. The time between the first byte and the
complete message is completing (for messages over several packets, and for earlier bytes in the stream).

`MessagePackets` finds the packets that carried a message, and where and when each was seen: at hosts, and
on both sides of links. A message has an offset in its TCP direction, and offset 0 is the byte after SYN, so
its bytes have sequence numbers (RFC 9293, section 3.4), by which its packets are found in every capture of
the run, retransmissions included. The table of packets is read once for all messages, and only for their
times.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.dataset as ds

from analysis.capture.pcap.fields import DIRECTION
from analysis.capture.pcap.files.compressed import capture_name
from analysis.inspect.following.copies import EventCopy, EventTrace, StreamRequest
from analysis.inspect.packets.wire import Direction, direction_of, key_of, read_syns, relative
from analysis.schemas import PACKETS
from analysis.timelines.run_metadata import RunMetadata
from experiments.records.rundir import RunDirectory


@dataclass(frozen=True, slots=True)
class SightingPoint:
    """A point where packets are captured: a host, or one side of a link."""

    name: str  # the host's name, or as r2-r3@r2
    is_host: bool


@dataclass(frozen=True, slots=True)
class Sighting:
    """A packet with some of a message's bytes, as one capture saw it."""

    place: SightingPoint
    t_ns: int
    first: int  # byte range in the message, from 0
    last: int

    def is_before(self, other: "Sighting", sender: str) -> bool:
        """Return whether this packet has the other's first byte, seen at another place.

        Never true if the other is a sending.
        """
        elsewhere = self.place != other.place and other.place.name != sender
        return elsewhere and self.first <= other.first <= self.last


class MessagePackets:
    """The packets that carried some messages."""

    def __init__(self, run: RunDirectory, copies: Sequence[EventCopy]) -> None:
        """Read the packets of these messages."""
        self._places = _places(run)
        self._openings = read_syns(run)
        self._carrying: dict[Direction, list[Mapping[str, int]]] = defaultdict(list)
        lost = any(copy.complete_ns is None for copy in copies)
        times = [t_ns for copy in copies for t_ns in (copy.t_ns, copy.left_ns, copy.complete_ns) if t_ns]
        begin_ns, end_ns = min(times) - BEFORE_NS, max(times) + (LOST_AFTER_NS if lost else AFTER_NS)
        chosen = (pc.field("t_ns") >= begin_ns) & (pc.field("t_ns") <= end_ns)
        chosen &= (pc.field("payload_length") > 0) & pc.field("sport").isin(
            [copy.row["sport"] for copy in copies]
        )
        chosen &= pc.field("dport").isin([copy.row["dport"] for copy in copies])
        table = ds.dataset(run.table("packets"), PACKETS, format="parquet")
        for row in table.to_table(columns=list(_COLUMNS), filter=chosen).sort_by("t_ns").to_pylist():
            self._carrying[key_of(row)].append(row)

    def sightings_of(self, copy: EventCopy) -> tuple[Sighting, ...]:
        """Return all packets that carried bytes of this message, in order of time.

        Returns no packets if the connection's SYN was not captured, because the sequence numbers are then
        unknown.
        """
        begin = self._openings.first_byte(copy.row)
        return () if begin is None else tuple(self._overlapping(begin, copy))

    def _overlapping(self, begin: int, copy: EventCopy) -> Iterator[Sighting]:
        for row in self._carrying.get(direction_of(copy.row), ()):
            if row["t_ns"] < copy.t_ns - BEFORE_NS:
                continue
            start = relative(row["seq"], begin)
            first, last = max(start, 0), min(start + row["payload_length"], copy.row["length"]) - 1
            if first <= last:
                name = str(row["capture"])
                yield Sighting(
                    self._places.get(name, SightingPoint(name, is_host=False)), row["t_ns"], first, last
                )


Place = tuple[str, ...]
"""A host, or a relay with the origin and destination of the route: see `EventCopy.came_to`."""
RecentTransfers = Callable[[EventCopy], tuple[Sighting, ...]]
BEFORE_NS, AFTER_NS = 1_000_000, 1_000_000_000
"""Margins around the messages' own times in which packets are read."""
LOST_AFTER_NS = 60_000_000_000
"""Margin after a lost message: its connection may have retransmitted until it closed."""
_COLUMNS = ("capture", "t_ns", "seq", "payload_length", *DIRECTION)


@dataclass(frozen=True, slots=True)
class EventHop:
    """A copy of the event, its position in the tree, and the parts of its time; None if unknown."""

    copy: EventCopy
    depth: int  # 0: from the publisher
    had_ns: int | None  # when the sender received the event
    is_first: bool  # the first copy that reached the receiver
    asked: StreamRequest | None  # the receiver's request for the stream, made while the sender had the event
    delay_ns: int  # configured delay of the links
    jitter_ns: int  # largest deviation from that delay
    sightings: tuple[Sighting, ...]

    @property
    def waited_ns(self) -> int | None:
        """Wait at the sender until the first byte left."""
        return _between(self.had_ns, self.copy.sent_ns)

    @property
    def resent_ns(self) -> int | None:
        """Time from the first sending to the one that arrived."""
        return _between(self.copy.sent_ns, self.arriving_ns)

    @property
    def link_ns(self) -> int:
        """Part of the first byte's transit explained by delay and jitter of the links.

        It is the delay if the byte never arrived.
        """
        if (crossed_ns := self._crossed_ns) is None:
            return self.delay_ns
        return min(max(crossed_ns, self.delay_ns - self.jitter_ns), self.delay_ns + self.jitter_ns)

    @property
    def queued_ns(self) -> int | None:
        """Transit of the first byte beyond the links' delay."""
        crossed_ns = self._crossed_ns
        return None if crossed_ns is None else crossed_ns - self.link_ns

    @property
    def completing_ns(self) -> int | None:
        """Time from the first byte to the last, in order."""
        return _between(self.copy.arrived_ns, self.copy.complete_ns)

    @property
    def total_ns(self) -> int | None:
        """Time from the sender's receipt of the event to the receiver's."""
        return _between(self.copy.t_ns if self.had_ns is None else self.had_ns, self.copy.complete_ns)

    @property
    def sent_again_ns(self) -> tuple[int, ...]:
        """Times when the sender retransmitted bytes of the message."""
        reach, again = -1, []
        for one in self._sendings:
            if one.first <= reach:
                again.append(one.t_ns)
            reach = max(reach, one.last)
        return tuple(again)

    @property
    def _sendings(self) -> list[Sighting]:
        return [one for one in self.sightings if one.place.is_host and one.place.name == self.copy.sender]

    @property
    def _crossed_ns(self) -> int | None:
        """Transit time of the sending that arrived."""
        return _between(self.arriving_ns, self.copy.arrived_ns)

    @property
    def arriving_ns(self) -> int | None:
        """Time when the first byte left in the sending that arrived. A link never delivers a packet early."""
        if self.copy.arrived_ns is None:
            return None
        latest_ns = self.copy.arrived_ns - (self.delay_ns - self.jitter_ns)
        in_time = [one.t_ns for one in self._sendings if one.first == 0 and one.t_ns <= latest_ns]
        return max(in_time, default=self.copy.sent_ns)


def hops(found: EventTrace, metadata: RunMetadata, look: RecentTransfers) -> tuple[EventHop, ...]:
    """Return the tree, depth first, in the order in which branches arrived.

    look: function that returns a copy's packets.
    """
    everything = [copy for copy in (found.publish, *found.repeated) if copy is not None] + list(found.copies)
    first = _first_copies(everything, found.publish)
    had = {place: copy.complete_ns for place, copy in first.items()}
    sent_by: dict[Place, list[EventCopy]] = defaultdict(list)
    for copy in everything:
        sent_by[copy.came_from].append(copy)
    for copies in sent_by.values():
        copies.sort(key=lambda copy: (copy.complete_ns is None, copy.complete_ns or copy.t_ns))
    roots = [place for place in sent_by if place not in first]
    roots.sort(key=lambda place: min(copy.t_ns for copy in sent_by[place]))

    def below(place: Place, depth: int) -> Iterator[EventHop]:
        for copy in sent_by.get(place, ()):
            is_first = first.get(copy.came_to) is copy
            asked = _last_request(copy, had.get(place), found.asked)
            links = delay_and_jitter_ns(copy, metadata)
            yield EventHop(copy, depth, had.get(place), is_first, asked, *links, look(copy))
            if is_first:
                yield from below(copy.came_to, depth + 1)

    return tuple(hop for root in roots for hop in below(root, 0))


def route_to(host: str, all_hops: Sequence[EventHop]) -> list[EventHop]:
    """Return the hops by which the event first reached a host, from the publisher on."""
    by_place = {hop.copy.came_to: hop for hop in all_hops if hop.is_first}
    path: list[EventHop] = []
    place: Place = (host,)
    while place in by_place:
        path.append(by_place[place])
        place = by_place[place].copy.came_from
    return path[::-1]


def _first_copies(copies: Sequence[EventCopy], publish: EventCopy | None) -> dict[Place, EventCopy]:
    """Return the first copy that reached each host or relay.

    A host never gets the event from one that got it later, and the publisher never gets it.
    """
    first: dict[Place, EventCopy] = {}
    own = {publish.came_from} if publish is not None else set()
    whole = [copy for copy in copies if copy.complete_ns is not None and copy.came_to not in own]
    for copy in sorted(whole, key=lambda copy: copy.complete_ns or 0):
        first.setdefault(copy.came_to, copy)
    return first


def _between(earlier_ns: int | None, later_ns: int | None) -> int | None:
    return None if earlier_ns is None or later_ns is None else later_ns - earlier_ns


def _last_request(
    copy: EventCopy, had_ns: int | None, asked: Sequence[StreamRequest]
) -> StreamRequest | None:
    if had_ns is None or copy.sent_ns is None:
        return None
    between = [
        one
        for one in asked
        if (one.sender, one.receiver) == (copy.receiver, copy.sender)
        and had_ns < one.complete_ns <= copy.sent_ns
    ]
    return max(between, key=lambda one: one.complete_ns, default=None)


def delay_and_jitter_ns(copy: EventCopy, metadata: RunMetadata) -> tuple[int, int]:
    """Return the configured delay between two hosts when the message left, and the largest deviation of all
    links together from it; 0 for hosts outside the run.
    """
    sender, receiver = metadata.hosts.get(copy.sender), metadata.hosts.get(copy.receiver)
    if sender is None or receiver is None:
        return 0, 0
    hop = sender.region, receiver.region
    delay_us = sender.lan_delay_us[0] + metadata.delay_us(hop, copy.t_ns) + receiver.lan_delay_us[1]
    jitter_us = sender.lan_jitter_us[0] + metadata.jitter_us(hop, copy.t_ns) + receiver.lan_jitter_us[1]
    return 1_000 * delay_us, 1_000 * jitter_us


def _places(run: RunDirectory) -> dict[str, SightingPoint]:
    found = {}
    for listed in run.read_run().listed_captures:
        name, host = capture_name(Path(listed.file)), listed.host
        found[name] = SightingPoint(host or name, is_host=host is not None)
    return found
