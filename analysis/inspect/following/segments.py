"""Which packets carried a message, and where and when each was seen: at hosts, and on both sides of links.

A message stands at an offset of its TCP direction, and offset 0 is the byte after SYN, so its bytes have
sequence numbers (RFC 9293, section 3.4) by which its packets are found in every capture of the run. What was
sent again stands there again: the sender's capture has each sending. The table of packets is read once for
all messages, and only for their times.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.dataset as ds

from analysis.capture.pcap.compressed import capture_name
from analysis.inspect.following.copies import Copy
from analysis.inspect.packets.wire import (
    KEY,
    SEQUENCE_NUMBERS,
    Direction,
    direction_of,
    key_of,
    read_openings,
)
from analysis.jobs.extraction import listed_captures
from analysis.schemas import PACKETS
from experiments.rundir import RunDirectory

BEFORE_NS, AFTER_NS = 1_000_000, 1_000_000_000
"""How far beyond the messages' own times packets are looked for."""
LOST_AFTER_NS = 60_000_000_000
"""The same where a message was lost: its connection may have tried for as long as it lived."""
_COLUMNS = ("capture", "t_ns", "seq", "payload_length", *KEY)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a capture listens: at a host, or on one side of a link."""

    name: str  # the host's, or as r2-r3@r2
    is_host: bool


@dataclass(frozen=True, slots=True)
class Sighting:
    """A packet that carried some of a message's bytes, as one capture saw it."""

    place: Place
    t_ns: int
    first: int  # bytes of the message, from 0
    last: int

    def is_before(self, other: "Sighting", sender: str) -> bool:
        """Whether it is the first byte of the other, seen elsewhere; nothing is before a sending."""
        elsewhere = self.place != other.place and other.place.name != sender
        return elsewhere and self.first <= other.first <= self.last


class Packets:
    """The packets around some messages."""

    def __init__(self, run: RunDirectory, copies: Sequence[Copy]) -> None:
        """Read them."""
        self._places = _places(run)
        self._openings = read_openings(run)
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

    def of(self, copy: Copy) -> tuple[Sighting, ...]:
        """All packets that carried bytes of this message, in order of time.

        None if the connection's SYN was not captured: then nothing says which bytes they are.
        """
        begin = self._openings.first_byte(copy.row)
        return () if begin is None else tuple(self._overlapping(begin, copy))

    def _overlapping(self, begin: int, copy: Copy) -> Iterator[Sighting]:
        half = SEQUENCE_NUMBERS // 2
        for row in self._carrying.get(direction_of(copy.row), ()):
            if row["t_ns"] < copy.t_ns - BEFORE_NS:
                continue
            # Where its payload stands, relative to the message, within half the space of sequence numbers.
            start = (row["seq"] - begin + half) % SEQUENCE_NUMBERS - half
            first, last = max(start, 0), min(start + row["payload_length"], copy.row["length"]) - 1
            if first <= last:
                name = str(row["capture"])
                yield Sighting(self._places.get(name, Place(name, is_host=False)), row["t_ns"], first, last)


def _places(run: RunDirectory) -> dict[str, Place]:
    found = {}
    for listed in listed_captures(run):
        name, host = capture_name(Path(listed["file"])), listed.get("host")
        found[name] = Place(host or name, is_host=host is not None)
    return found
