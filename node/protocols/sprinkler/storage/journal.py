"""A replica's Hist on disk (the paper's future work, 7): writing, syncing and restoring.

The journal writes the protocol's own messages to the log (`node.core.machine.Append`): EVENTS and
SPARSE_EVENTS as they are stored, PUBLICATION before its events, CONFIGURATION as it is received, STORED for
the events that the chain has committed, and FOLLOW when a returning replica drops uncommitted events: events
beyond its counters are void. WHOLE records that the region's stream was complete in that configuration. All
messages of one input form one Append.

A replica counts only synced events as its own: `stored` is the counter that it reports up the chain, that a
tail commits, and so what is acknowledged and served. Use in the proxy:

  Started        restore(given.stored), before anything else
  storing        after history.append(batch): write(batch); after publications.add(p): write(p)
  committing     with stored(stream) in the place of the stream's cnt
  truncation     after history.truncate(stream, cnt): truncate(stream); for an empty Hist: start_over(it)
  configuration  write(configuration), of one that this replica belongs to
  settle         flush(), once per input
  Synced         for stream in note_synced(appended): commit, as after STORED
  StorageFailed  note_failed()
  PUBLISH        refused with HISTORY_FULL unless `has_room`; other senders of events are not read meanwhile

A replica without durability has a `Volatile` instead: nothing is written, and everything it has counts as
stored. Compaction is in `node.protocols.sprinkler.storage.compaction`.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from node.core import machine as m
from node.core.errors import StorageError
from node.protocols.sprinkler.messages import (
    Configuration,
    Counter,
    Events,
    Follow,
    Publication,
    SparseEvents,
    Stored,
    Whole,
)
from node.protocols.sprinkler.parameters import SprinklerParameters
from node.protocols.sprinkler.publishing.publications import Publications
from node.protocols.sprinkler.storage.batches import cut_before, last_seq
from node.protocols.sprinkler.storage.compaction import Compaction, SegmentSummary, record_bytes
from node.protocols.sprinkler.storage.history import EventHistory

SEGMENT_RECORDS = 4096  # so that processing a segment of small batches is bounded, too
FULL_REASON = "the disk accepts no more data for now"


class Volatile:
    """Journal of a replica without durability: it writes nothing to disk."""

    configuration: Configuration | None = None  # the last one that this replica belonged to
    whole: Whole | None = None  # the last configuration in which the region's stream was complete
    has_failed: bool = False  # the disk accepts nothing for now

    def __init__(self, history: EventHistory) -> None:
        self._history = history

    @property
    def has_room(self) -> bool:
        """Whether more events may be accepted: the disk works and is not far behind."""
        return True

    def restore(self, stored: Iterable[m.StoredSegment]) -> None:
        """Restore Hist and the publications that an earlier process left."""

    def write(self, *messages: Any) -> None:
        """Write these messages with the next `flush`."""

    def note_committed(self) -> None:
        """Note that more is committed, which must be recorded on disk soon."""

    def truncate(self, stream: int) -> None:
        """Note that Hist has been truncated to its present cnt: later events are void on disk, too."""

    def start_over(self, history: EventHistory) -> None:
        """Void everything stored and continue with this empty Hist."""
        self._history = history

    def flush(self) -> None:
        """Append the messages of this input; called once per input."""

    def note_synced(self, appended: int) -> Sequence[int]:
        """Note that the first `appended` Append effects are durable. Return the streams with more durable
        events.
        """
        return ()

    def note_failed(self) -> None:
        """Note that the disk accepts nothing until the next `note_synced`."""

    def check(self) -> None:
        """Assert that no more events count as stored than exist."""
        for number, stream in self._history.streams.items():
            assert self.stored(number) <= stream.cnt, "stored more events than there are"

    def stored(self, stream: int) -> int:
        """Return the last durable event of the stream; without a disk, the last one in memory."""
        return self._history.streams[stream].cnt


class Journal(Volatile):
    """The journal of a durable replica. `emit` emits an effect."""

    def __init__(
        self,
        history: EventHistory,
        publications: Publications,
        emit: Callable[[m.Effect], None],
        parameters: SprinklerParameters,
    ) -> None:
        super().__init__(history)
        self._publications = publications
        self._emit = emit
        self._segment_limit_bytes = parameters.segment_limit_bytes
        self._unsynced_limit_bytes = parameters.unsynced_limit_bytes
        self.compaction = Compaction(history, publications, emit, parameters.segment_limit_bytes)
        self._current = SegmentSummary(1)
        self._waiting: list[Any] = []  # written in this input
        self._appended = 0
        self._unsynced: deque[tuple[int, int, dict[int, int]]] = deque()  # Append: number, bytes, counters
        self._unsynced_bytes = 0
        self._synced = dict.fromkeys(history.streams, 0)
        self._committed = dict.fromkeys(history.streams, 0)  # as written
        self._is_unmarked = False  # more is committed than the disk records
        # during restore: events missing before later ones that are not yet void
        self._holes: dict[int, str] = {}

    @property
    def has_room(self) -> bool:
        """Whether more events may be accepted: the disk works and is not far behind."""
        return not self.has_failed and self._unsynced_bytes < self._unsynced_limit_bytes

    def stored(self, stream: int) -> int:
        """Return the last durable event of the stream."""
        return self._synced[stream]

    # --- Restoring

    def restore(self, stored: Iterable[m.StoredSegment]) -> None:
        """Restore Hist and the publications that an earlier process left, and collect what it had collected.

        Events that were truncated later may be present without their predecessors, because compaction has
        already removed these. Raises StorageError if the log is inconsistent.
        """
        for segment in stored:
            known = SegmentSummary(segment.number)
            for message in segment.messages:
                self._replay(message, segment.number)
                known.add(message)
            self._history.collect_some()
            self.compaction.closed(known)
            self._current = SegmentSummary(segment.number + 1)
        for hole in self._holes.values():
            raise StorageError(hole)
        for stream, history in self._history.streams.items():
            assert history.committed <= history.cnt, "committed events that are missing"
            self._synced[stream] = history.cnt
            self._committed[stream] = history.committed

    def _replay(self, message: Any, segment: int) -> None:
        match message:
            case Events() | SparseEvents():
                self._replay_batch(message, segment)
            case Publication():
                self._publications.add(message)
            case Follow(_, counters):
                for counter in self._known(counters):
                    self._replay_truncation(counter.stream, counter.cnt)
                    self._publications.forget_beyond(counter.stream, counter.cnt)
                self.compaction.truncated(counters)
            case Stored(counters):
                for counter in self._known(counters):
                    cnt = self._history.streams[counter.stream].cnt
                    self._history.commit(counter.stream, min(cnt, counter.cnt))
            case Configuration():
                self.configuration = message
            case Whole():
                self.whole = message
            case _:
                raise StorageError(f"segment {segment} has a {type(message).__name__}: not a proxy's log")

    def _replay_batch(self, batch: Events | SparseEvents, segment: int) -> None:
        stream = self._history.streams.get(batch.stream)
        if stream is None:
            raise StorageError(f"segment {segment} has stream {batch.stream}, which is not in this run")
        if last_seq(batch) <= stream.cnt:
            return
        if batch.first_seq > stream.cnt + 1:
            missing = f"{stream.cnt + 1} to {batch.first_seq - 1}"
            self._holes.setdefault(
                batch.stream, f"segment {segment}: events {missing} of stream {batch.stream} are missing"
            )
            return
        self._history.append(batch if batch.first_seq > stream.cnt else cut_before(batch, stream.cnt))

    def _replay_truncation(self, stream: int, cnt: int) -> None:
        state = self._history.streams[stream]
        if cnt <= state.cnt:
            self._holes.pop(stream, None)
        if cnt < state.committed:  # it started over
            self._history.start_over(stream)
        elif cnt < state.cnt:
            self._history.truncate(stream, cnt)

    def _known(self, counters: Iterable[Counter]) -> list[Counter]:
        return [counter for counter in counters if counter.stream in self._history.streams]

    # --- Writing

    def write(self, *messages: Any) -> None:
        """Write these messages with the next `flush`."""
        self._waiting.extend(messages)
        for message in messages:
            if isinstance(message, Configuration):
                self.configuration = message
            elif isinstance(message, Whole):
                self.whole = message

    def note_committed(self) -> None:
        """Record the commit with the next messages, or alone when the disk is idle."""
        self._is_unmarked = True

    def truncate(self, stream: int) -> None:
        """Note that Hist has been truncated to its present cnt: later events are void on disk, too."""
        cnt = self._history.streams[stream].cnt
        self.write(Follow(0, (Counter(stream, cnt),)))
        for counters in (self._synced, *(entry[2] for entry in self._unsynced)):
            if stream in counters:
                counters[stream] = min(counters[stream], cnt)

    def start_over(self, history: EventHistory) -> None:
        """Void everything stored and continue with this empty Hist."""
        self._history = self.compaction.history = history
        for stream in history.streams:
            self.truncate(stream)

    def flush(self) -> None:
        """Append the written messages, and occasionally run a step of compaction."""
        if not self._waiting and (not self._is_unmarked or self._unsynced):
            return
        messages, self._waiting = self._waiting, []
        if self._current.is_over(self._segment_limit_bytes, SEGMENT_RECORDS):
            self.compaction.closed(self._current)
            self._current = SegmentSummary(self._current.number + 1)
        messages = self._marks(messages, first=not self._current.records) + messages
        if not messages:
            return
        counters: dict[int, int] = {}
        size_bytes = 0
        for message in messages:
            self._current.add(message)
            if isinstance(message, Follow):
                self.compaction.truncated(message.counters)
            size_bytes += record_bytes(message)
            if isinstance(message, Events | SparseEvents):
                counters[message.stream] = self._history.streams[message.stream].cnt
        self._emit(m.Append(self._current.number, tuple(messages)))
        self._appended += 1
        self._unsynced.append((self._appended, size_bytes, counters))
        self._unsynced_bytes += size_bytes
        if not self.has_failed:
            self.compaction.step(size_bytes)

    def _marks(self, messages: Sequence[Any], *, first: bool) -> list[Any]:
        """Return STORED for changed commit counters; at a segment's start, also the replica's position.

        Positions that `messages` contain themselves are left out: they hold only after the messages before
        them.
        """
        marks: list[Any] = []
        if first:
            standing = (self.configuration, self.whole)
            marks += [mark for mark in standing if mark is not None and mark not in messages]
        grown = {
            stream: history.committed
            for stream, history in self._history.streams.items()
            if first or history.committed != self._committed[stream]
        }
        self._committed.update(grown)
        self._is_unmarked = False
        if grown:
            marks.append(Stored(tuple(Counter(stream, cnt) for stream, cnt in grown.items())))
        return marks

    # --- Results from the disk

    def note_synced(self, appended: int) -> Sequence[int]:
        """Note that the first `appended` Append effects are durable. Return the streams with more durable
        events.
        """
        assert appended <= self._appended, "the disk reports more than was written"
        self.has_failed = False
        grown: dict[int, None] = {}
        while self._unsynced and self._unsynced[0][0] <= appended:
            _, size_bytes, counters = self._unsynced.popleft()
            self._unsynced_bytes -= size_bytes
            for stream, cnt in counters.items():
                if cnt > self._synced[stream]:
                    assert cnt <= self._history.streams[stream].cnt, "void events on disk"
                    self._synced[stream] = cnt
                    grown[stream] = None
        assert self._unsynced or not self._unsynced_bytes, "bytes without messages"
        return list(grown)

    def note_failed(self) -> None:
        """Note that the disk accepts nothing until the next `note_synced`."""
        self.has_failed = True
