"""Markers in the streams of programs whose messages nobody here knows: which events went over a connection.

An event's payload begins with its marker (`node.core.marker`), whatever a broker puts around it. So bytes are
searched for the marker's magic, and what follows is an event if its CRC-32 is right over as many bytes as the
run's events have. Nothing is known of framing, and nothing has to be: an event may stand anywhere in a
segment, several in one, or one in several, and a line that begins a chunk of HTTP's chunked transfer
(RFC 9112, 7.1) may stand in its midst. Search goes on behind bytes that the capture lacks.

A payload may stand there as it is, or as text (base64, hexadecimal digits), in one connection as this and in
another as that. Bytes that are encrypted or compressed show nothing.
"""

import base64
import binascii
import bisect
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from analysis.capture.pcap.decode import Decoding, KnownRange, seen_columns
from analysis.capture.pcap.files.byte_ranges import ByteRanges
from analysis.capture.pcap.files.format import Bytes
from analysis.capture.pcap.frames import copied, runs, windows
from analysis.capture.pcap.reassemble import SettledRange
from analysis.messages.marked import NEW, PASSED
from analysis.schemas import MESSAGES
from node.core.marker import MAGIC, Marker, read_marker

CHUNK_LINE = re.compile(rb"\r\n[0-9a-fA-F]{1,8}\r\n")
UNFINISHED_LINE = re.compile(rb"\r(\n([0-9a-fA-F]{1,8}\r?)?)?\Z")
LINE_BYTES_MAX = 12


@dataclass(frozen=True, slots=True)
class Markers:
    """What to search for. size_bytes: of an event. publishers: the streams on which each address publishes.
    takers: addresses of those that take events and do nothing else.
    """

    size_bytes: int
    publishers: Mapping[str, frozenset[int]] = field(default_factory=dict)
    takers: frozenset[str] = frozenset()

    def types(self, src: str, dst: str, streams: Sequence[int]) -> pa.Array:
        """What events of these streams are called on their way from src to dst.

        A publisher may pass on what others published, and what it hands to a taker has arrived there.
        """
        own = frozenset[int]() if dst in self.takers else self.publishers.get(src, frozenset())
        if own.isdisjoint(streams):
            return pa.repeat(pa.scalar(PASSED), len(streams))
        return pa.array([NEW if stream in own else PASSED for stream in streams])

    def written(self) -> "tuple[Written, ...]":
        """The ways in which an event's bytes can stand on the wire."""
        size, digits = self.size_bytes, MAGIC.hex()
        return (
            Written(MAGIC, size, bytes),
            Written(base64.b64encode(MAGIC)[:5], (size + 2) // 3 * 4, base64.b64decode),
            Written(digits.encode(), 2 * size, binascii.unhexlify),
            Written(digits.upper().encode(), 2 * size, binascii.unhexlify),
        )


@dataclass(frozen=True, slots=True)
class Written:
    """An event on the wire: what it begins with, its length in bytes, and its payload."""

    begin: bytes
    length: int
    payload: Callable[[bytes], bytes]

    def read(self, text: bytes) -> Marker | None:
        """The marker of an event that these bytes are; None if they are none, or it is not whole."""
        if len(text) < self.length:
            return None
        try:
            marker = read_marker(self.payload(text))
        except ValueError:  # no such text
            return None
        return marker if marker is not None and marker.is_whole else None


@dataclass(slots=True)
class Found:
    """Markers in some bytes, in their order: where each begins and ends, and which event it is. rest: from
    there on nothing is settled.
    """

    at: list[int] = field(default_factory=list)
    end: list[int] = field(default_factory=list)
    stream: list[int] = field(default_factory=list)
    seq: list[int] = field(default_factory=list)
    malformed: int = 0
    unfinished_bytes: int = 0
    rest: int = 0

    def add(self, at: int, end: int, marker: Marker) -> None:
        self.at.append(at)
        self.end.append(end)
        self.stream.append(marker.stream)
        self.seq.append(marker.seq)


def find_markers(content: bytes, begin: int, ways: Sequence[Written], *, is_final: bool) -> Found:
    """The markers from `begin` on. is_final: no bytes follow these; otherwise an event that may go on in
    them is left for the next time.
    """
    found = Found()
    joined = Joined.of(content, begin, is_final=is_final)
    text, settled = joined.text, 0
    begins = Begins(text, ways)
    while (first := begins.first(settled)) is not None:
        at, written = first
        start, length = joined.position(at), written.length
        is_cut_off = at + length > len(text)
        if is_cut_off and not is_final:
            found.rest = start
            return found
        end = start + length if is_cut_off else joined.position(at + length - 1) + 1
        marker = written.read(text[at : at + length])
        if marker is None and (is_cut_off or end - start > length):
            end = start + length  # what looks like a line of a chunk may be the event's own
            marker = written.read(content[start:end])
        if marker is not None:
            found.add(start, end, marker)
            settled = joined.index(end)
            continue
        settled = at + 1
        if is_cut_off:
            found.unfinished_bytes = found.unfinished_bytes or len(content) - start
        else:
            found.malformed += 1
    longest = max(len(written.begin) for written in ways)
    last = max(settled, len(text) - longest + 1, 0)
    found.rest = len(content) if is_final else joined.position(last)
    return found


class Begins:
    """Where events may begin in some bytes."""

    def __init__(self, text: bytes, ways: Sequence[Written]) -> None:
        self._text = text
        self._next = [(text.find(written.begin), written) for written in ways]

    def first(self, at: int) -> tuple[int, Written] | None:
        """The first place from `at` on, which does not go back; None if there is none."""
        self._next = [
            (place if place < 0 or place >= at else self._text.find(written.begin, at), written)
            for place, written in self._next
        ]
        places = [each for each in self._next if each[0] >= 0]
        return min(places, key=itemgetter(0), default=None)


@dataclass(frozen=True, slots=True)
class Joined:
    """Bytes without the lines that begin chunks, of which some may be none: `text`, whose bytes from
    `starts[i]` on stood from `positions[i]` on.
    """

    text: bytes
    starts: list[int]
    positions: list[int]

    @classmethod
    def of(cls, content: bytes, begin: int, *, is_final: bool) -> "Joined":
        """is_final: otherwise a line that may go on behind the end is left out too."""
        parts, starts, positions, size = [], [], [], 0
        for line in CHUNK_LINE.finditer(content, begin):
            parts.append(content[begin : line.start()])
            starts.append(size)
            positions.append(begin)
            size += len(parts[-1])
            begin = line.end()
        end = len(content)
        if not is_final and (unfinished := UNFINISHED_LINE.search(content, max(begin, end - LINE_BYTES_MAX))):
            end = unfinished.start()
        return cls(b"".join([*parts, content[begin:end]]), [*starts, size], [*positions, begin])

    def position(self, index: int) -> int:
        """Where a byte of `text` stood."""
        piece = bisect.bisect_right(self.starts, index) - 1
        return self.positions[piece] + index - self.starts[piece]

    def index(self, position: int) -> int:
        """The first byte of `text` that stood there or behind it."""
        piece = bisect.bisect_right(self.positions, position) - 1
        index = self.starts[piece] + position - self.positions[piece]
        return min([index, *self.starts[piece + 1 : piece + 2]])


class MarkerDecoder:
    """Finds markers in one stream, which comes part by part; as `Decoder` decodes one.

    `names` has the values of the columns that are the same for all messages (capture, host, …).
    """

    def __init__(self, data: Bytes, markers: Markers, names: Mapping[str, Any]) -> None:
        self.counts = Decoding()
        self._data = data
        self._ways = markers.written()
        self._markers = markers
        self._names = names
        self._known = KnownRange.nothing()
        self._position = 0  # everything before was searched

    def decode(self, part: SettledRange | None, *, ended: bool) -> Iterator[pa.RecordBatch]:
        """Search what is whole with the stream's next part, and count. ended: nothing comes after it."""
        if part is not None:
            self._known = self._known.with_next(part)
        pieces = self._known.pieces
        for first, last in runs(pieces) if pieces.start.size else ():
            end = int(pieces.known_end[last])
            if end > self._position:
                goes_on = not ended and end == int(pieces.end[-1])
                yield from self._search(pieces, first, last, goes_on=goes_on)
        self._known = self._known.after(self._position)

    def _search(
        self, pieces: ByteRanges, first: int, last: int, *, goes_on: bool
    ) -> Iterator[pa.RecordBatch]:
        """Search pieces first to last, whose bytes follow each other without a hole."""
        first += int(np.searchsorted(pieces.end[first:last], self._position, side="right"))
        rest, rest_start = b"", int(pieces.start[first])
        for piece, following in windows(pieces, first, last):
            content = rest + copied(self._data, pieces, piece, following)
            begin = max(self._position - rest_start, 0)
            is_final = following > last and not goes_on
            found = find_markers(content, begin, self._ways, is_final=is_final)
            self.counts.messages += len(found.at)
            self.counts.malformed += found.malformed
            self.counts.unfinished_bytes += found.unfinished_bytes
            if found.at:
                yield self._batch(found, rest_start)
            rest, rest_start = content[found.rest :], rest_start + found.rest
            self._position = rest_start

    def _batch(self, found: Found, at: int) -> pa.RecordBatch:
        start, end = np.array(found.at, np.int64) + at, np.array(found.end, np.int64) + at
        columns = seen_columns(start, end - start, self._known) | event_columns(
            found.stream, found.seq, self._markers, self._names
        )
        return message_batch(self._names, columns, start.size)


def event_columns(
    stream: Sequence[int], seq: Sequence[int], markers: Markers, names: Mapping[str, Any]
) -> dict[str, pa.Array]:
    """Which events these are. names: has src and dst of all of them."""
    count = len(seq)
    return {
        "type": markers.types(names["src"].as_py(), names["dst"].as_py(), stream),
        "stream": pa.array(np.array(stream, np.uint32).astype(np.int32)),
        "first_seq": pa.array(np.array(seq, np.uint64).astype(np.int64)),
        "count": pa.repeat(pa.scalar(1, pa.int32()), count),
        "covered": pa.repeat(pa.scalar(1, pa.int64()), count),
        "payload_length": pa.repeat(pa.scalar(markers.size_bytes, pa.int32()), count),
    }


def message_batch(names: Mapping[str, Any], columns: Mapping[str, pa.Array], rows: int) -> pa.RecordBatch:
    """Rows of MESSAGES; names: the columns that are the same in all of them. What neither has is null."""
    arrays = [
        columns[each.name].cast(each.type, safe=False)
        if each.name in columns
        else pa.repeat(names[each.name], rows)
        if each.name in names
        else pa.nulls(rows, each.type)
        for each in MESSAGES
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=MESSAGES)
