"""Events on connections of programs with unknown message formats, found by their markers.

An event's payload begins with its marker (`node.core.marker`), whatever framing a broker adds. The decoder
searches for the marker's magic number and accepts an event if the CRC-32 over the run's event size is
correct. It needs no framing: an event may begin anywhere in a segment, a segment may hold several events, an
event may span several segments. `analysis.capture.codings` lists how it may be written; connections may
differ. After bytes missing from the capture the search continues.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any

import numpy as np
import pyarrow as pa

from analysis.arrays import Bytes
from analysis.capture.codings import JoinedBytes, MarkerEncoding, encodings
from analysis.capture.groups import is_group
from analysis.capture.pcap.decode import DecodingCounts, KnownRange, message_batch, seen_columns
from analysis.capture.pcap.files.byte_ranges import ByteRanges
from analysis.capture.pcap.frames import contents, runs
from analysis.capture.pcap.reassemble import SettledRange
from analysis.capture.websocket import COMPRESSED, WebSocketStream
from analysis.messages.marked import NEW, PASSED
from node.core.marker import Marker


@dataclass(frozen=True, slots=True)
class MarkerSearch:
    """Search parameters. size_bytes: size of an event. publishers: the streams that each address publishes.
    receivers: addresses of hosts that only receive events. serves: whether any process forwards events.
    """

    size_bytes: int
    publishers: Mapping[str, frozenset[int]] = field(default_factory=dict)
    receivers: frozenset[str] = frozenset()
    serves: bool = True

    def types(self, src: str, dst: str, streams: Sequence[int]) -> pa.Array:
        """Return the message type of each event sent from src to dst, given the events' streams.

        An event is NEW when its publisher sends it to a host other than a receiver, and PASSED otherwise. A
        group may have servers as members if there are any.
        """
        takes_only = dst in self.receivers or (not self.serves and is_group(dst))
        own = frozenset[int]() if takes_only else self.publishers.get(src, frozenset())
        if own.isdisjoint(streams):
            return pa.repeat(pa.scalar(PASSED), len(streams))
        return pa.array([NEW if stream in own else PASSED for stream in streams])


@dataclass(slots=True)
class FoundMarkers(DecodingCounts):
    """Markers found in a block of bytes, in order: begin, end, stream and sequence number of each.
    rest: offset from which the bytes must be searched again with those that follow.
    """

    at: list[int] = field(default_factory=list)
    end: list[int] = field(default_factory=list)
    stream: list[int] = field(default_factory=list)
    seq: list[int] = field(default_factory=list)
    rest: int = 0

    def add(self, at: int, end: int, marker: Marker) -> None:
        self.at.append(at)
        self.end.append(end)
        self.stream.append(marker.stream)
        self.seq.append(marker.seq)

    def count(self, counts: DecodingCounts) -> None:
        """Add the markers to a stream's counts."""
        counts.messages += len(self.at)
        counts.malformed += self.malformed
        counts.unfinished_bytes += self.unfinished_bytes
        counts.undecoded_bytes += self.undecoded_bytes
        counts.stopped = counts.stopped or self.stopped


def find_markers(joined: JoinedBytes, ways: Sequence[MarkerEncoding]) -> FoundMarkers:
    """Find the markers in some bytes. Unless these are final, an incomplete event at the end is left for the
    next call.
    """
    found = FoundMarkers()
    text, settled = joined.text, 0
    begins = MarkerStarts(text, ways)
    while (first := begins.first(settled)) is not None:
        at, written = first
        start, length = joined.position(at), written.length
        is_cut_off = at + length > len(text)
        if is_cut_off and not joined.is_final:
            found.rest = start
            return found
        end = start + length if is_cut_off else joined.position(at + length - 1) + 1
        marker = written.read(text[at : at + length])
        if marker is None and (is_cut_off or end - start > length):
            end = start + length  # an apparent chunk-size line may be part of the event
            marker = written.read(joined.plain[start:end])
        if marker is not None:
            found.add(start, end, marker)
            settled = joined.index(end)
            continue
        settled = at + 1
        if is_cut_off:
            found.unfinished_bytes = found.unfinished_bytes or joined.end - start
        else:
            found.malformed += 1
    longest = max(len(written.begin) for written in ways)
    last = max(settled, len(text) - longest + 1, 0)
    found.rest = joined.end if joined.is_final else joined.position(last)
    return found


class MarkerStarts:
    """Offsets in a block of bytes at which events may begin."""

    def __init__(self, text: bytes, ways: Sequence[MarkerEncoding]) -> None:
        self._text = text
        self._next = [(text.find(written.begin), written) for written in ways]

    def first(self, at: int) -> tuple[int, MarkerEncoding] | None:
        """Return the first place at or after `at`, or None. `at` must not decrease between calls."""
        self._next = [
            (place if place < 0 or place >= at else self._text.find(written.begin, at), written)
            for place, written in self._next
        ]
        places = [each for each in self._next if each[0] >= 0]
        return min(places, key=itemgetter(0), default=None)


class StreamSearch:
    """The search of one stream, given in parts that may overlap."""

    def __init__(self, size_bytes: int) -> None:
        self._ways = encodings(size_bytes)
        self._websocket = WebSocketStream()

    def find(self, content: bytes, start: int, begin: int, *, is_final: bool) -> FoundMarkers:
        """Find the markers from index `begin` on. start: the stream offset of the content."""
        stream = self._websocket
        if stream.is_websocket is None:
            stream.decide(content, start, is_final=is_final)
            if stream.is_websocket is None:
                return FoundMarkers(rest=begin)
        if not stream.is_websocket:
            return find_markers(JoinedBytes.from_chunked(content, begin, is_final=is_final), self._ways)
        found = find_markers(stream.joined(content, start, begin, is_final=is_final), self._ways)
        found.undecoded_bytes, stream.compressed_bytes = stream.compressed_bytes, 0
        found.stopped = COMPRESSED if found.undecoded_bytes else None
        return found


class MarkerDecoder:
    """Finds markers in one stream that arrives in parts; the counterpart of `MessageDecoder`.

    `names` holds the columns that are the same for all messages (capture, host, …).
    """

    def __init__(self, data: Bytes, markers: MarkerSearch, names: Mapping[str, Any]) -> None:
        self.counts = DecodingCounts()
        self._data = data
        self._searched = StreamSearch(markers.size_bytes)
        self._markers = markers
        self._names = names
        self._known = KnownRange.nothing()
        self._position = 0  # everything before was searched

    def decode(self, part: SettledRange | None, *, ended: bool) -> Iterator[pa.RecordBatch]:
        """Search the bytes that the stream's next part completes, and count. ended: no part follows."""
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
        """Search the pieces from first to last, which have no gap between them."""
        for content, start, is_last in contents(self._data, pieces, first, last, lambda: self._position):
            begin = max(self._position - start, 0)
            found = self._searched.find(content, start, begin, is_final=is_last and not goes_on)
            found.count(self.counts)
            if found.at:
                yield self._batch(found, start)
            self._position = start + found.rest

    def _batch(self, found: FoundMarkers, at: int) -> pa.RecordBatch:
        start, end = np.array(found.at, np.int64) + at, np.array(found.end, np.int64) + at
        columns = seen_columns(start, end - start, self._known) | event_columns(
            found.stream, found.seq, self._markers, self._names
        )
        return message_batch(self._names, columns, start.size)


def event_columns(
    stream: Sequence[int], seq: Sequence[int], markers: MarkerSearch, names: Mapping[str, Any]
) -> dict[str, pa.Array]:
    """Return the columns that identify events. names: holds their common src and dst."""
    count = len(seq)
    return {
        "type": markers.types(names["src"].as_py(), names["dst"].as_py(), stream),
        "stream": pa.array(np.array(stream, np.uint32).astype(np.int32)),
        "first_seq": pa.array(np.array(seq, np.uint64).astype(np.int64)),
        "count": pa.repeat(pa.scalar(1, pa.int32()), count),
        "covered": pa.repeat(pa.scalar(1, pa.int64()), count),
        "payload_length": pa.repeat(pa.scalar(markers.size_bytes, pa.int32()), count),
    }
