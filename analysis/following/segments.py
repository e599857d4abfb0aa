"""Which packets carried a message, and where and when each was seen: at hosts, and on both sides of links.

A message stands at an offset of its TCP direction, and offset 0 is the byte after SYN, so its bytes have
sequence numbers (RFC 9293, section 3.4) by which its packets are found in every capture of the run. What was
sent again stands there again: the sender's capture has each sending. The table of packets is read once for
all messages, and only for their times.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from analysis.extraction import listed_captures
from analysis.following.copies import Copy
from analysis.schemas import PACKETS
from experiments.rundir import RunDirectory

TCP, SYN, SYN_ACK = 6, 0x02, 0x12
SEQUENCE_NUMBERS = 1 << 32
BEFORE_NS, AFTER_NS = 1_000_000, 1_000_000_000
"""How far beyond the messages' own times packets are looked for."""
LOST_AFTER_NS = 60_000_000_000
"""The same where a message was lost: its connection may have tried for as long as it lived."""
_COLUMNS = (
    "capture",
    "t_ns",
    "src_hi",
    "src_lo",
    "dst_hi",
    "dst_lo",
    "sport",
    "dport",
    "seq",
    "payload_length",
)

Flow = tuple[int, int, int, int, int, int]


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


class Packets:
    """The packets around some messages."""

    def __init__(self, run: RunDirectory, copies: Sequence[Copy]) -> None:
        """Read them. Raises OSError and pa.ArrowInvalid if the table of packets cannot be read."""
        self._places = _places(run)
        table = ds.dataset(run.table("packets"), PACKETS, format="parquet")
        of_tcp = pc.field("proto") == TCP
        openings = table.to_table(
            columns=list(_COLUMNS), filter=of_tcp & pc.field("flags").isin([SYN, SYN_ACK])
        ).sort_by("t_ns")
        self._openings = _by_flow(openings)
        lost = any(copy.complete_ns is None for copy in copies)
        times = [t_ns for copy in copies for t_ns in (copy.t_ns, copy.left_ns, copy.complete_ns) if t_ns]
        begin_ns, end_ns = min(times) - BEFORE_NS, max(times) + (LOST_AFTER_NS if lost else AFTER_NS)
        near = (pc.field("t_ns") >= begin_ns) & (pc.field("t_ns") <= end_ns)
        ports = (pc.field("sport").isin([copy.sport for copy in copies])) & (
            pc.field("dport").isin([copy.dport for copy in copies])
        )
        carrying = table.to_table(
            columns=list(_COLUMNS), filter=of_tcp & ports & near & (pc.field("payload_length") > 0)
        ).sort_by("t_ns")
        self._carrying = _by_flow(carrying)

    def of(self, copy: Copy) -> tuple[Sighting, ...]:
        """All packets that carried bytes of this message, in order of time.

        None if the connection's SYN was not captured: then nothing says which bytes they are.
        """
        flow = _flow(copy)
        openings = [row for row in self._openings.get(flow, ()) if row["t_ns"] <= copy.t_ns]
        if not openings:
            return ()
        begin = openings[-1]["seq"] + 1 + copy.stream_offset
        return tuple(self._overlapping(self._carrying.get(flow, ()), begin, copy))

    def _overlapping(
        self, packets: Sequence[Mapping[str, int]], begin: int, copy: Copy
    ) -> Iterator[Sighting]:
        half = SEQUENCE_NUMBERS // 2
        for row in packets:
            if row["t_ns"] < copy.t_ns - BEFORE_NS:
                continue
            # Where its payload stands, relative to the message, within half the space of sequence numbers.
            start = (row["seq"] - begin + half) % SEQUENCE_NUMBERS - half
            first, last = max(start, 0), min(start + row["payload_length"], copy.length) - 1
            if first <= last:
                name = str(row["capture"])
                yield Sighting(self._places.get(name, Place(name, is_host=False)), row["t_ns"], first, last)


def _places(run: RunDirectory) -> dict[str, Place]:
    return {
        Path(listed["file"]).stem: Place(
            listed.get("host") or Path(listed["file"]).stem, bool(listed.get("host"))
        )
        for listed in listed_captures(run)
    }


def _by_flow(packets: pa.Table) -> dict[Flow, list[dict[str, int]]]:
    found: dict[Flow, list[dict[str, int]]] = {}
    for row in packets.to_pylist():
        flow = (row["src_hi"], row["src_lo"], row["sport"], row["dst_hi"], row["dst_lo"], row["dport"])
        found.setdefault(flow, []).append(row)
    return found


def _flow(copy: Copy) -> Flow:
    src, dst = int(ip_address(copy.src)), int(ip_address(copy.dst))
    return (_high(src), _low(src), copy.sport, _high(dst), _low(dst), copy.dport)


def _low(address: int) -> int:
    low = address & 0xFFFF_FFFF_FFFF_FFFF
    return low - (1 << 64) if low >= 1 << 63 else low  # the columns are signed


def _high(address: int) -> int:
    return _low(address >> 64)
