"""Events in the plaintext of one TLS stream, searched like a cleartext stream (`analysis.capture.markers`).

An event's stream offset is the offset of its plaintext within its record. Current ciphers keep the order and
size of the bytes behind the record's header (some of TLS 1.2 insert 8 bytes), so the packets that carry an
event are found by its offset.

A receiver can only read a complete record, since its authentication tag comes last. So an event is complete
when the last segment of its last record has arrived. Its first time is that of the first byte of its first
record.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from analysis.capture.markers import MarkerSearch, StreamSearch, event_columns
from analysis.capture.pcap.decode import message_batch
from analysis.capture.tls.records import HEADER
from analysis.capture.tls.sessions import ROW, TlsStream

SEARCHED_BYTES = 1 << 18
"""Plaintext bytes searched at a time."""


@dataclass(slots=True)
class StreamPlaintext:
    """The plaintext of a stream that was not searched yet. rows: its records; starts: where each begins."""

    stream: TlsStream
    markers: MarkerSearch
    searched: StreamSearch = field(init=False)
    start: int = 0  # offset of the content in the plaintext
    content: bytes = b""
    more: list[bytes] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    rows: list[Any] = field(default_factory=list)
    size: int = 0

    def __post_init__(self) -> None:
        self.searched = StreamSearch(self.markers.size_bytes)

    def add(self, row: Any, plaintext: bytes) -> Iterator[pa.RecordBatch]:
        """Append the next record's plaintext, and yield the events found."""
        self.starts.append(self.size)
        self.rows.append(row)
        self.more.append(plaintext)
        self.size += len(plaintext)
        if self.size >= SEARCHED_BYTES:
            yield from self.search(is_final=False)

    def search(self, *, is_final: bool) -> Iterator[pa.RecordBatch]:
        """Search the plaintext so far, and yield the events found. is_final: no record follows."""
        content = b"".join((self.content, *self.more))
        found = self.searched.find(content, self.start, 0, is_final=is_final)
        found.count(self.stream.counts)
        if found.at:
            yield self._batch(found.at, found.end, found.stream, found.seq)
        self.content, self.more = content[found.rest :], []
        self.start += found.rest
        first = max(int(np.searchsorted(self.starts, found.rest, side="right")) - 1, 0)
        self.starts = [start - found.rest for start in self.starts[first:]]
        self.rows = self.rows[first:]
        self.size = len(self.content)

    def _batch(self, at: list[int], end: list[int], stream: list[int], seq: list[int]) -> pa.RecordBatch:
        starts, rows = np.array(self.starts), np.array(self.rows, ROW)
        begin, last = np.array(at, np.int64), np.array(end, np.int64) - 1
        first_row = np.searchsorted(starts, begin, side="right") - 1
        last_row = np.searchsorted(starts, last, side="right") - 1
        offset = _in_stream(begin, starts, rows, first_row)
        following = _in_stream(last, starts, rows, last_row) + 1
        again = np.concatenate(([0], np.cumsum(rows["again"].astype(np.int64))))
        columns = event_columns(stream, seq, self.markers, self.stream.names) | {
            "stream_offset": pa.array(offset),
            "length": pa.array(np.maximum(following - offset, 1)),
            "t_first_ns": pa.array(rows["first_ns"][first_row]),
            "t_complete_ns": pa.array(rows["complete_ns"][last_row]),
            "retransmitted": pa.array(again[last_row + 1] > again[first_row]),
        }
        return message_batch(self.stream.names, columns, offset.size)


def _in_stream(at: Any, starts: Any, rows: Any, row: Any) -> Any:
    """Return the stream offsets of plaintext bytes, at most the last byte of their record."""
    place = np.minimum(HEADER.size + at - starts[row], rows["length"][row].astype(np.int64) - 1)
    return rows["at"][row] + place
