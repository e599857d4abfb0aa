"""Markers in the streams of programs whose messages nobody here knows: which events went over a connection.

An event's payload begins with its marker (`node.core.marker`), whatever a broker puts around it. So bytes are
searched for the marker's magic, and what follows is an event if its CRC-32 is right over as many bytes as the
run's events have. Nothing is known of framing, and nothing has to be: an event may stand anywhere in a
segment, several in one, or one in several. Search goes on behind bytes that the capture lacks.

A payload that a protocol writes as text (base64, hexadecimal digits) is searched for as that. Bytes that are
encrypted or compressed show nothing.
"""

import base64
import binascii
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from analysis.capture.pcap.byte_ranges import ByteRanges
from analysis.capture.pcap.decode import Decoding, KnownRange, seen_columns
from analysis.capture.pcap.format import Bytes, Integers
from analysis.capture.pcap.frames import copied, runs, windows
from analysis.capture.pcap.reassemble import SettledRange
from analysis.schemas import MESSAGES
from node.core.declaration import Form
from node.core.marker import MAGIC, read_marker

NEW, PASSED = "NEW_EVENT", "PASSED_EVENT"
"""Types of rows: an event that its publisher hands over, and one that anybody else passes on."""


@dataclass(frozen=True, slots=True)
class Markers:
    """What to search for. size_bytes: of an event. publishers: addresses that events come from first."""

    size_bytes: int
    form: Form = "bytes"
    publishers: frozenset[str] = frozenset()

    def type_from(self, address: str) -> str:
        """What an event that comes from there is called."""
        return NEW if address in self.publishers else PASSED

    def written(self) -> "Written":
        """How an event's bytes stand on the wire."""
        size = self.size_bytes
        if self.form == "base64":
            return Written(base64.b64encode(MAGIC)[:5], (size + 2) // 3 * 4, base64.b64decode)
        if self.form == "hexadecimal":
            return Written(MAGIC.hex().encode(), 2 * size, binascii.unhexlify)
        return Written(MAGIC, size, bytes)


@dataclass(frozen=True, slots=True)
class Written:
    """An event on the wire: what it begins with, its length in bytes, and its payload."""

    begin: bytes
    length: int
    payload: Callable[[bytes], bytes]


@dataclass(slots=True)
class Found:
    """Markers in some bytes, in their order. rest: from there on nothing is settled."""

    at: list[int] = field(default_factory=list)
    stream: list[int] = field(default_factory=list)
    seq: list[int] = field(default_factory=list)
    malformed: int = 0
    unfinished_bytes: int = 0
    rest: int = 0


def find_markers(content: bytes, begin: int, written: Written, *, is_final: bool) -> Found:
    """The markers from `begin` on. is_final: no bytes follow these; otherwise an event that may go on in
    them is left for the next time.
    """
    found = Found()
    end, length, at = len(content), written.length, begin
    while (at := content.find(written.begin, at)) >= 0:
        if at + length > end:
            if not is_final:
                found.rest = at
                return found
            found.unfinished_bytes = found.unfinished_bytes or end - at
            at += 1
            continue
        try:
            marker = read_marker(written.payload(content[at : at + length]))
        except ValueError:  # no such text
            marker = None
        if marker is None or not marker.is_whole:
            found.malformed += 1
            at += 1
            continue
        found.at.append(at)
        found.stream.append(marker.stream)
        found.seq.append(marker.seq)
        at += length
        begin = at
    found.rest = end if is_final else max(begin, end - len(written.begin) + 1)
    return found


class MarkerDecoder:
    """Finds markers in one stream, which comes part by part; as `Decoder` decodes one.

    `names` has the values of the columns that are the same for all messages (capture, host, …).
    """

    def __init__(self, data: Bytes, markers: Markers, names: Mapping[str, Any]) -> None:
        self.counts = Decoding()
        self._data = data
        self._written = markers.written()
        self._size_bytes = markers.size_bytes
        self._names = {**names, "type": pa.scalar(markers.type_from(names["src"].as_py()))}
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
            found = find_markers(content, begin, self._written, is_final=is_final)
            self.counts.messages += len(found.at)
            self.counts.malformed += found.malformed
            self.counts.unfinished_bytes += found.unfinished_bytes
            if found.at:
                yield self._batch(found, np.array(found.at, np.int64) + rest_start)
            rest, rest_start = content[found.rest :], rest_start + found.rest
            self._position = rest_start

    def _batch(self, found: Found, start: Integers) -> pa.RecordBatch:
        length = np.full(start.size, self._written.length)
        columns = seen_columns(start, length, self._known) | event_columns(
            found.stream, found.seq, self._size_bytes
        )
        return message_batch(self._names, columns, start.size)


def event_columns(stream: Sequence[int], seq: Sequence[int], size_bytes: int) -> dict[str, pa.Array]:
    """Which events these are."""
    count = len(seq)
    return {
        "stream": pa.array(np.array(stream, np.uint32).astype(np.int32)),
        "first_seq": pa.array(np.array(seq, np.uint64).astype(np.int64)),
        "count": pa.repeat(pa.scalar(1, pa.int32()), count),
        "covered": pa.repeat(pa.scalar(1, pa.int64()), count),
        "payload_length": pa.repeat(pa.scalar(size_bytes, pa.int32()), count),
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
