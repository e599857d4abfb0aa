"""Compaction of a replica's log: events collected from Hist (3.4) are removed from the disk, too.

A segment is checked by querying Hist for the remaining events of its numbers. If these are at most half of
the segment, it is rewritten from Hist: batches become sparse, removed events become a tombstone. Small
adjacent segments are merged, so that a prefix in which everything is collected ends as a single tombstone of
a few bytes. The log stays within a small factor of the live data.

Work is bounded: for every appended byte, `LOOKED_PER_BYTE` bytes of older segments are checked, at most one
segment per step, in turn; none if nothing was collected since the last check.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from node.core import machine as m
from node.protocols.sprinkler.messages import CODEC, Counter, Events, Follow, Publication, SparseEvents
from node.protocols.sprinkler.publishing.publications import Publications
from node.protocols.sprinkler.storage.batches import last_seq
from node.protocols.sprinkler.storage.history import EventHistory

LOOKED_PER_BYTE = 2
RECORD_BYTES = 16  # of a message on disk, besides its frame
Span = tuple[int, int]  # first and last sequence number


def record_bytes(message: Any) -> int:
    """Return the size of a message on disk."""
    return CODEC.size_bytes(message) + RECORD_BYTES


@dataclass(slots=True, eq=False)
class SegmentSummary:
    """Summary of one segment of the log, without its content."""

    number: int
    bytes: int = 0
    records: int = 0
    spans: dict[int, Span] = field(default_factory=dict)  # by stream: its events
    # by stream: first numbers of its publications
    publications: dict[int, Span] = field(default_factory=dict)
    follows: dict[int, int] = field(default_factory=dict)  # by stream: its lowest truncation
    collected: int = -1  # number of events collected from Hist at the last check

    def add(self, message: Any) -> None:
        """Add a message of the segment to the summary."""
        self.records += 1
        self.bytes += record_bytes(message)
        match message:
            case Events() | SparseEvents():
                span = (message.first_seq, last_seq(message))
                self.spans[message.stream] = joined(self.spans.get(message.stream), span)
            case Publication():
                span = (message.first_seq, message.first_seq)
                self.publications[message.stream] = joined(self.publications.get(message.stream), span)
            case Follow(_, counters):
                cnts = {counter.stream: counter.cnt for counter in counters}
                self.truncate(cnts)
                for stream, cnt in cnts.items():
                    self.follows[stream] = min(cnt, self.follows.get(stream, cnt))

    def truncate(self, counters: Mapping[int, int]) -> None:
        """Void events beyond these counters, here and in every segment before."""
        for stream, (first, last) in list(self.spans.items()):
            kept = min(last, counters.get(stream, last))
            if kept < first:
                del self.spans[stream]
            else:
                self.spans[stream] = (first, kept)

    def absorb(self, later: "SegmentSummary") -> None:
        """Merge the next segment into this one; the size is not yet known."""
        self.truncate(later.follows)
        for stream, span in later.spans.items():
            self.spans[stream] = joined(self.spans.get(stream), span)
        for stream, cnt in later.follows.items():
            self.follows[stream] = min(cnt, self.follows.get(stream, cnt))
        for stream, span in later.publications.items():
            self.publications[stream] = joined(self.publications.get(stream), span)

    def is_over(self, limit_bytes: int, limit_records: int) -> bool:
        """Return whether the next segment should be begun."""
        return self.bytes >= limit_bytes or self.records >= limit_records


class Compaction:
    """The closed segments of one log, in order. `emit` emits an effect."""

    def __init__(
        self,
        history: EventHistory,
        publications: Publications,
        emit: Callable[[m.Effect], None],
        segment_limit_bytes: int,
    ) -> None:
        self.history = history
        self._publications = publications
        self._emit = emit
        self._limit_bytes = segment_limit_bytes
        self._small_bytes = segment_limit_bytes // 4
        self._segments: list[SegmentSummary] = []
        self._next = 0  # position of the segment to check next
        self._allowed_bytes = 0  # that may be checked

    @property
    def bytes(self) -> int:
        """Size of all closed segments."""
        return sum(segment.bytes for segment in self._segments)

    def closed(self, segment: SegmentSummary) -> None:
        """Add a complete segment."""
        self._segments.append(segment)

    def truncated(self, counters: Iterable[Counter]) -> None:
        """Void events beyond these counters in all segments."""
        cnts = {counter.stream: counter.cnt for counter in counters}
        for segment in self._segments:
            segment.truncate(cnts)

    def step(self, appended_bytes: int) -> None:
        """Check one segment if due, after `appended_bytes` were appended."""
        self._allowed_bytes += LOOKED_PER_BYTE * appended_bytes
        self._allowed_bytes = min(self._allowed_bytes, LOOKED_PER_BYTE * self._limit_bytes)
        if self._allowed_bytes <= 0 or not self._segments:
            return
        self._next %= len(self._segments)
        segment = self._segments[self._next]
        self._next += 1
        collected = self._collected()
        if segment.collected != collected:
            segment.collected = collected
            self._allowed_bytes -= segment.bytes
            self._check_segment(self._next - 1)

    def _check_segment(self, at: int) -> None:
        """Rewrite a segment if little is left of it; merge it with the one before if both are small."""
        segment = self._segments[at]
        before = self._segments[at - 1] if at else None
        left = list(self._remaining(segment, first=not at))
        left_bytes = sum(map(record_bytes, left))
        if before is not None and before.bytes <= self._small_bytes and left_bytes <= self._small_bytes:
            numbers = (before.number, segment.number)
            merged = SegmentSummary(before.number)
            merged.absorb(before)
            merged.absorb(segment)
            self._rewrite(at - 1, at, numbers, merged)
        elif 2 * left_bytes <= segment.bytes:
            kept = SegmentSummary(segment.number)
            kept.absorb(segment)
            self._rewrite(at, at, (segment.number,), kept)

    def _rewrite(self, first: int, last: int, numbers: tuple[int, ...], segment: SegmentSummary) -> None:
        left = tuple(self._remaining(segment, first=not first))
        if not first:
            segment.follows.clear()
        segment.records = len(left)
        segment.bytes = sum(map(record_bytes, left))
        segment.collected = self._collected()
        self._emit(m.Rewrite(numbers, left))
        self._segments[first : last + 1] = [segment] if left else []
        self._next = first + 1

    def _remaining(self, segment: SegmentSummary, *, first: bool) -> Iterator[Any]:
        """Yield the messages of a segment if it were rewritten now. first: no earlier events are left to
        truncate.
        """
        if segment.follows and not first:
            yield Follow(0, tuple(Counter(stream, cnt) for stream, cnt in segment.follows.items()))
        for stream, (first_seq, last) in segment.publications.items():
            for publication in self._publications.beyond(stream, first_seq - 1):
                if first_seq <= publication.first_seq <= last:
                    yield publication
        for stream, (first_seq, last) in segment.spans.items():
            cnt = first_seq - 1
            while cnt < last:
                batches = self.history.streams[stream].after(cnt, self._small_bytes, last)
                yield from batches
                cnt = last_seq(batches[-1])

    def _collected(self) -> int:
        """Return the number of events collected from Hist so far; segments shrink only if it grows."""
        return sum(each.cnt - each.stored + each.collected for each in self.history.streams.values())


def joined(span: Span | None, other: Span) -> Span:
    """Return the span from the start of one to the end of the other."""
    return other if span is None else (min(span[0], other[0]), max(span[1], other[1]))
