"""Compaction of a replica's log: what was collected from Hist (3.4) leaves the disk, too.

A segment is looked at by asking Hist what is left of the numbers that it covers. If that is at most half of
the segment, it is written again as Hist has it now: batches become sparse, what is gone becomes a tombstone.
Small neighbours become one, so that a prefix in which everything is collected ends as a single tombstone of a
few bytes. The log stays within a small factor of what is live.

Work is bounded: for every byte that is appended, `LOOKED_PER_BYTE` bytes of older segments are looked at, one
segment at most per step, in turn; and not at all if nothing was collected since the last look.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from node.core import machine as m
from node.core.log import PREFIX_BYTES
from node.protocols.sprinkler.messages import CODEC, Counter, Events, Follow, Publication, SparseEvents
from node.protocols.sprinkler.publishing.publications import Publications
from node.protocols.sprinkler.storage.batches import last_seq
from node.protocols.sprinkler.storage.history import History

LOOKED_PER_BYTE = 2
Span = tuple[int, int]  # first and last sequence number


def record_bytes(message: Any) -> int:
    """How much a message takes on disk."""
    return CODEC.size_bytes(message) + PREFIX_BYTES


class Segment:
    """What is known of one segment of the log, without its content."""

    __slots__ = ("bytes", "collected", "follows", "number", "publications", "records", "spans")

    def __init__(self, number: int) -> None:
        self.number = number
        self.bytes = 0
        self.records = 0
        self.spans: dict[int, Span] = {}  # by stream: the events in it
        self.publications: dict[int, Span] = {}  # by stream: first numbers of those in it
        self.follows: dict[int, int] = {}  # by stream: the lowest truncation in it
        self.collected = -1  # events that were collected from Hist when it was last looked at

    def add(self, message: Any) -> None:
        """A message that is in it."""
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
                told = {counter.stream: counter.cnt for counter in counters}
                self.truncate(told)
                for stream, cnt in told.items():
                    self.follows[stream] = min(cnt, self.follows.get(stream, cnt))

    def truncate(self, counters: Mapping[int, int]) -> None:
        """Events beyond these counters are void, here and in every segment before."""
        for stream, (first, last) in list(self.spans.items()):
            kept = min(last, counters.get(stream, last))
            if kept < first:
                del self.spans[stream]
            else:
                self.spans[stream] = (first, kept)

    def absorb(self, later: "Segment") -> None:
        """Become this segment and the next one together; its size is not yet known."""
        self.truncate(later.follows)
        for stream, span in later.spans.items():
            self.spans[stream] = joined(self.spans.get(stream), span)
        for stream, cnt in later.follows.items():
            self.follows[stream] = min(cnt, self.follows.get(stream, cnt))
        for stream, span in later.publications.items():
            self.publications[stream] = joined(self.publications.get(stream), span)

    def is_over(self, limit_bytes: int, limit_records: int) -> bool:
        """Whether the next one should be begun."""
        return self.bytes >= limit_bytes or self.records >= limit_records


class Compaction:
    """The closed segments of one log, in order. `emit` asks for an effect."""

    def __init__(
        self,
        history: History,
        publications: Publications,
        emit: Callable[[m.Effect], None],
        segment_limit_bytes: int,
    ) -> None:
        self.history = history
        self._publications = publications
        self._emit = emit
        self._limit_bytes = segment_limit_bytes
        self._small_bytes = segment_limit_bytes // 4
        self._segments: list[Segment] = []
        self._next = 0  # place of the segment to look at next
        self._allowed_bytes = 0  # that may be looked at

    @property
    def bytes(self) -> int:
        """Size of all closed segments."""
        return sum(segment.bytes for segment in self._segments)

    def closed(self, segment: Segment) -> None:
        """Nothing more will come into this segment."""
        self._segments.append(segment)

    def truncated(self, counters: Iterable[Counter]) -> None:
        """Events beyond these counters are void in all of them."""
        told = {counter.stream: counter.cnt for counter in counters}
        for segment in self._segments:
            segment.truncate(told)

    def step(self, appended_bytes: int) -> None:
        """So much was appended: look at one segment, if it is time."""
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
            self._look(self._next - 1)

    def _look(self, at: int) -> None:
        """Write a segment again if little is left of it; with the one before, if both are small."""
        segment = self._segments[at]
        before = self._segments[at - 1] if at else None
        left = list(self._left(segment, first=not at))
        left_bytes = sum(map(record_bytes, left))
        if before is not None and before.bytes <= self._small_bytes and left_bytes <= self._small_bytes:
            numbers = (before.number, segment.number)
            merged = Segment(before.number)
            merged.absorb(before)
            merged.absorb(segment)
            self._put(at - 1, at, numbers, merged)
        elif 2 * left_bytes <= segment.bytes:
            kept = Segment(segment.number)
            kept.absorb(segment)
            self._put(at, at, (segment.number,), kept)

    def _put(self, first: int, last: int, numbers: tuple[int, ...], segment: Segment) -> None:
        left = tuple(self._left(segment, first=not first))
        if not first:
            segment.follows.clear()
        segment.records = len(left)
        segment.bytes = sum(map(record_bytes, left))
        segment.collected = self._collected()
        self._emit(m.Rewrite(numbers, left))
        self._segments[first : last + 1] = [segment] if left else []
        self._next = first + 1

    def _left(self, segment: Segment, *, first: bool) -> Iterator[Any]:
        """What a segment would hold if it were written now. The first one has nothing before to truncate."""
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
        """How many events Hist has collected so far: the more, the less is left in some segment."""
        return sum(each.cnt - each.stored + each.collected for each in self.history.streams.values())


def joined(span: Span | None, other: Span) -> Span:
    """The span from the start of one to the end of the other."""
    return other if span is None else (min(span[0], other[0]), max(span[1], other[1]))
