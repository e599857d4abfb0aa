"""The content of a TCP direction of a capture, computed the simplest way: all at once, byte by byte.

The reference for `analysis.capture.pcap.reassemble`, `frames` and `decode`, which work on arrays and in
windows.
"""

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from analysis.capture.pcap.files.byte_ranges import TcpSegments, join
from analysis.capture.pcap.reassemble import Numbering, ReassembledConnection, SettledRange
from node.core.framing import FRAME_LIMIT_BYTES, HEADER, HEADER_BYTES, LENGTH_BYTES, VERSION
from node.core.message_layout import Codec, MessageLayout
from tests.analysis.capture.pcap.captures import RST, SYN

NO_BEGINNING = "the beginning of the connection is not in the capture"


@dataclass(frozen=True)
class Sent:
    """A captured segment; `captured` bytes of its payload are in the file."""

    t_ns: int
    seq: int
    flags: int
    payload: bytes
    captured: int


@dataclass(frozen=True)
class Byte:
    """The first arrival of a byte of a stream: its segment, and its value if the file has it."""

    segment: int
    t_ns: int
    value: int | None


@dataclass
class Held:
    """All bytes of one connection in one direction."""

    synchronised: bool
    bytes: dict[int, Byte] = field(default_factory=dict)
    again: dict[int, int] = field(default_factory=dict)
    segments: int = 0
    segments_again: int = 0
    stray: int = 0

    @property
    def missing(self) -> list[int]:
        return [position for position in range(max(self.bytes, default=0)) if position not in self.bytes]

    def known(self, position: int) -> bool:
        return position in self.bytes and self.bytes[position].value is not None


def hold(sent: Sequence[Sent]) -> list[Held]:
    """Return every connection of a direction. Sequence numbers may wrap; segments stay within 1 GiB."""
    found: list[Held] = []
    syn, here, origin = None, 0, 0
    for number, one in enumerate(sent):
        begins = one.flags & SYN and one.seq != syn
        if begins or not found:
            found.append(Held(bool(one.flags & SYN)))
            here = origin = one.seq + bool(one.flags & SYN)
        syn = one.seq if one.flags & SYN else syn
        if not one.payload or one.flags & RST:
            continue
        now = found[-1]
        now.segments += 1
        at = one.seq + bool(one.flags & SYN)
        at = here + (at - here + 2**31) % 2**32 - 2**31
        if at < origin and now.synchronised:
            now.stray += 1
            continue
        here = at
        positions = range(at, at + len(one.payload))
        now.segments_again += any(position - origin in now.bytes for position in positions)
        for position in positions:
            if position - origin in now.bytes:
                now.again[position - origin] = now.again.get(position - origin, 0) + 1
            else:
                value = one.payload[position - at] if position - at < one.captured else None
                now.bytes[position - origin] = Byte(number, one.t_ns, value)
    return [_from_lowest(held) for held in found]


def _from_lowest(held: Held) -> Held:
    lowest = 0 if held.synchronised else min(held.bytes, default=0)
    held.bytes = {position - lowest: held.bytes[position] for position in sorted(held.bytes)}
    held.again = {position - lowest: times for position, times in held.again.items()}
    return held


def tables(sent: Sequence[Sent], codec: Codec) -> dict[str, list[dict[str, Any]]]:
    """Return rows of messages, gaps and decoding, with the columns that depend on reassembly and framing."""
    rows: dict[str, list[dict[str, Any]]] = {"messages": [], "gaps": [], "decoding": [], "memberships": []}
    for number, held in enumerate(hold(sent)):
        counts = dict.fromkeys(("messages", "malformed", "unfinished_bytes", "undecoded_bytes"), 0)
        counts |= {"connection": number, "segments": held.segments, "bytes": len(held.bytes)}
        counts |= {"stray_segments": held.stray, "retransmitted_bytes": sum(held.again.values())}
        counts["retransmitted_segments"] = held.segments_again
        found = list(_runs(dict.fromkeys(held.missing)))
        snapped = list(_runs({at: one.segment for at, one in held.bytes.items() if one.value is None}))
        for cause, ranges in (("missing", found), ("snapped", snapped)):
            counts[f"{cause}_bytes"] = sum(length for _, length in ranges)
            rows["gaps"] += [
                {"connection": number, "stream_offset": start, "length": length, "cause": cause}
                for start, length in ranges
            ]
        messages, stopped = _decode(held, codec, counts)
        rows["messages"] += [{"connection": number, **message} for message in messages]
        rows["decoding"].append({**counts, "messages": len(messages), "stopped": stopped})
    return rows


def _runs(segments: dict[int, int | None]) -> Iterator[tuple[int, int]]:
    """Yield start and length of consecutive positions of the same segment."""
    start = length = 0
    for position, segment in segments.items():
        if length and position == start + length and segment == segments[start]:
            length += 1
            continue
        if length:
            yield start, length
        start, length = position, 1
    if length:
        yield start, length


def _decode(held: Held, codec: Codec, counts: dict[str, int]) -> tuple[list[dict[str, Any]], str | None]:
    found: list[dict[str, Any]] = []
    if not held.synchronised:
        counts["undecoded_bytes"] = len(held.bytes)
        return found, NO_BEGINNING if held.bytes else None
    position, stopped = 0, None
    while position <= max(held.bytes, default=-1):
        if not all(held.known(position + n) for n in range(HEADER_BYTES)):
            later = [at for at in held.bytes if at > position and _begins(held, at)]
            stopped = f"bytes {position} to {later[0]} are not in the capture" if later else None
            break
        header = bytes(held.bytes[position + n].value or 0 for n in range(HEADER_BYTES))
        length, version, kind, flags = HEADER.unpack(header)
        whole = length + LENGTH_BYTES
        if version != VERSION or flags or not HEADER_BYTES <= whole <= FRAME_LIMIT_BYTES:
            stopped = f"no frame header at byte {position}"
            break
        found += _message(held, codec, position, whole, kind, counts)
        position += whole
    rest = sum(at >= position for at in held.bytes)
    counts["undecoded_bytes" if stopped else "unfinished_bytes"] += rest
    return found, stopped


def _begins(held: Held, at: int) -> bool:
    """Return whether a segment begins here, after bytes missing from the capture."""
    before = held.bytes.get(at - 1)
    return not held.known(at - 1) and (before is None or before.segment != held.bytes[at].segment)


def _fits(layout: MessageLayout, rest: int) -> bool:
    """Return whether a message can have this many bytes after its head."""
    if layout.tail is None:
        return rest == 0
    row_bytes = sum(struct.calcsize(">" + row.format) for row in layout.row_fields)
    return rest >= 0 and (not row_bytes or rest % row_bytes == 0)


def _message(
    held: Held, codec: Codec, start: int, whole: int, kind: int, counts: dict[str, int]
) -> Iterator[dict[str, Any]]:
    seen = [held.bytes[at] for at in range(start, start + whole) if at in held.bytes]
    layout, body = codec.by_type.get(kind), whole - HEADER_BYTES
    if layout is None or not _fits(layout, body - layout.head.size):
        counts["malformed"] += 1
        return
    known = next(n for n in count() if n == whole or not held.known(start + n))
    if len(seen) < whole:
        counts["unfinished_bytes"] += len(seen)
    elif known < HEADER_BYTES + layout.head.size:
        counts["undecoded_bytes"] += len(seen)
    else:
        hole = min(held.missing, default=start + whole)
        yield {
            "stream_offset": start,
            "length": whole,
            "type": layout.name,
            "t_first_ns": held.bytes[start].t_ns,
            "t_complete_ns": max(one.t_ns for at, one in held.bytes.items() if at < start + whole)
            if hole >= start + whole
            else None,
            "retransmitted": any(at in held.again for at in range(start, start + whole)),
        }


@dataclass(frozen=True)
class Stream:
    """The analysis result of one connection, given all its segments at once."""

    connection: ReassembledConnection
    settled: SettledRange
    snapped: tuple[np.ndarray, np.ndarray]


def reassemble(segments: TcpSegments) -> list[Stream]:
    """Reassemble a whole direction with the analysis's code."""
    connections: dict[int, ReassembledConnection] = {}
    for number, share in Numbering().split(segments):
        connections.setdefault(number, ReassembledConnection(number, share)).add(share)
    nothing = SettledRange(join(()), np.zeros(0), np.zeros((0, 2)), (np.zeros(0), np.zeros(0)))
    settled = [(connection, connection.end() or nothing) for connection in connections.values()]
    return [Stream(connection, found, found.pieces.snapped) for connection, found in settled]
