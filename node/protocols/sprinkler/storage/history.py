"""Hist: the events that a proxy stores (paper 3.1), as ordered batches for each stream, with reading from a
cursor and collection (3.4).

The state of a reader (another proxy or a client) is only a counter. `after` finds the next batches by binary
search, so a reader one hour behind costs the same as one that is a batch behind, and a slow reader costs no
memory. For collected events it returns tombstones, merged as far as possible, or sparse batches; so `after`
is the paper's filter(Hist). Between two epochs of a stream it returns the beginning of the later one.

Only committed garbage collection events collect, because no replica can lose them. Events collected by a
predicate on age are invisible to readers at once; `collect_some` frees them, and finds events collected by
key, in small portions in proportion to the committed events. Until then, readers may still receive an event
that is collected by key (they receive it and the newer one, in order).

Invariants (paper 3.1): nothing in Hist has seq > cnt, and Hist has every event <= cnt, or has collected it
for a garbage collection event in Hist. `EventHistory.limit_bytes` bounds all memory that Hist uses, payload
and overhead; callers check `has_room` before they append.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from node.core.epochs import epoch_of, first_seq_of_epoch
from node.protocols.sprinkler import predicates
from node.protocols.sprinkler.messages import CODEC, EventKind, Predicate, Publish
from node.protocols.sprinkler.storage.batch_list import BATCH_BYTES, BatchList
from node.protocols.sprinkler.storage.batches import (
    PLACEHOLDERS,
    TOMBSTONE_RANGE_MAX,
    Batch,
    cut_after,
    cut_before,
    epoch_mark,
    event_seqs,
    last_seq,
    tombstone,
)

if TYPE_CHECKING:
    from node.protocols.sprinkler.storage.key_collection import KeyCollection

Payload = bytes | memoryview
APPLIED_AT_ONCE = 1024  # committed batches whose predicates are processed in one call
DROPPED_AT_ONCE = 64  # collected batches that are freed in one call
WORK_PER_EVENT = 8  # event inspections for each committed event: more than collection by key needs
WORK_AT_LEAST = 4096  # minimum of event inspections in one call
COLLECTING_SHARE = 16  # of the limit, this part is reserved for events that collect
ENDS_MAX = 8  # former epochs whose ends are remembered
HEAD_BYTES = CODEC.size_bytes(tombstone(0, 1, 1))  # of a frame with a batch, sparse or not


@dataclass(slots=True, eq=False)
class StreamHistory:
    """One stream's events up to `cnt`; all replicas have those up to `committed`."""

    stream: int
    cnt: int = 0
    committed: int = 0
    ends: tuple[int, ...] = ()  # the last events of former epochs, as far as remembered
    counted_bytes: int = 0  # part of `used_bytes` that `EventHistory` has counted
    collected: int = 0  # everything up to here is collected by a predicate on age
    key_bytes: int | None = None  # of the stream's SAME_KEY events
    _keys_since: int = 0  # the first of these
    _keys: "KeyCollection | None" = None  # created when the first of these is committed
    _list: BatchList = field(default_factory=BatchList)
    _applied: int = 0  # predicates are applied up to here
    _fresh: int = 0  # committed since the last `collect_some`
    _last_collecting: int = 0  # end of the last batch of garbage collection events, or later

    @property
    def bytes(self) -> int:
        """Bytes of stored payload of this stream."""
        return self._list.bytes

    @property
    def used_bytes(self) -> int:
        """Bytes of memory that this stream uses, payload and overhead."""
        return self._list.used_bytes + (self._keys.used_bytes if self._keys is not None else 0)

    @property
    def stored(self) -> int:
        """Stored events, including those collected but not yet freed."""
        return self._list.events

    @property
    def live(self) -> int:
        """Events that are not collected, as far as collection has progressed."""
        live = self._list.events - (self._keys.dead if self._keys else 0)
        for position in range(self._list.start, len(self._list.batches)):
            batch = self._list.at(position)
            if batch.first_seq > self.collected:
                break
            gone = sum(seq <= self.collected for seq in event_seqs(batch))
            live -= gone if self._keys is None else self._keys.alive_until(batch, self.collected)
        return live

    def check(self) -> None:
        """Assert the invariants of the stream."""
        assert self.committed <= self.cnt, "committed events that are not stored"
        assert self.collected <= self.committed, "collected uncommitted events"
        assert not self._list or self._list.last_seqs[-1] <= self.cnt, "stored beyond cnt (paper 3.1)"
        self._list.check()

    def append(self, batch: Batch) -> None:
        """Store a batch that directly follows cnt. Placeholders only advance cnt."""
        assert batch.first_seq == self.cnt + 1
        if batch.kind == EventKind.EPOCH and self.cnt:
            self.ends = (*self.ends, self.cnt)[-ENDS_MAX:]
        before, self.cnt = self.cnt, last_seq(batch)
        assert self.cnt > before, "an empty batch"
        assert batch.kind == EventKind.EPOCH or not before or epoch_of(self.cnt) == epoch_of(before), (
            "an unmarked epoch"
        )
        if batch.kind in PLACEHOLDERS:
            return
        if batch.kind == EventKind.GC:
            self._last_collecting = self.cnt
            if self.key_bytes is None and batch.predicate == Predicate.SAME_KEY:
                self.key_bytes, self._keys_since = batch.argument, batch.first_seq
        self._list.append(batch, self.cnt)

    def after(self, cnt: int, limit_bytes: int, upto: int | None = None) -> list[Batch]:
        """Return batches after `cnt`, in order and without gaps, up to `upto`, with placeholders between
        them.

        Their size on the wire is at most `limit_bytes`, but at least one is returned if there is one.
        """
        end = self.cnt if upto is None or upto > self.cnt else upto
        found: list[Batch] = []
        if cnt >= end:
            return found
        position = self._list.after(cnt if cnt > self.collected else self.collected)
        while cnt < end:
            piece, last = self._next(cnt, end, position)
            assert piece.first_seq == cnt + 1 <= last <= end, "a gap, or too many events"
            limit_bytes -= HEAD_BYTES + len(piece.payload)
            if found and limit_bytes < 0:
                break
            found.append(piece)
            cnt = last
            if piece.kind not in PLACEHOLDERS:
                position += 1
        return found

    def _next(self, cnt: int, end: int, position: int) -> tuple[Batch, int]:
        """Return the batch that follows `cnt`, and its end. The next stored batch is at `position`."""
        if position < len(self._list.batches):
            batch = self._list.at(position)
            last = self._list.last_seqs[position]
            if batch.first_seq == cnt + 1 and last <= end and cnt >= self.collected:
                return batch, last  # the usual case
            first = max(batch.first_seq, self.collected + 1)
            if first <= cnt + 1:
                if batch.first_seq <= cnt:
                    batch = cut_before(batch, cnt)
                if last > end:
                    batch = cut_after(batch, end)
                    last = last_seq(batch)
                return batch, last
            gap_end = min(first - 1, end)
        else:
            gap_end = end
        epoch = epoch_of(gap_end)
        if epoch > epoch_of(cnt):
            return epoch_mark(self.stream, cnt + 1, epoch), first_seq_of_epoch(epoch) - 1
        gap_end = min(gap_end, cnt + TOMBSTONE_RANGE_MAX)
        return tombstone(self.stream, cnt + 1, gap_end), gap_end

    def truncate(self, cnt: int) -> None:
        """Remove everything after `cnt`, which is not committed."""
        assert cnt >= self.committed  # committed events stay
        if cnt >= self.cnt:
            return
        kept = self._list
        first = kept.after(cnt)
        if first < len(kept.batches):
            batch = kept.at(first)
            rest: list[tuple[Batch, int]] = []
            dead = kept.dead[first]
            if batch.first_seq <= cnt:
                part = cut_after(batch, cnt)
                if part.kind != EventKind.TOMBSTONE:
                    rest = [(part, last_seq(part))]
            kept.replace(first, len(kept.batches) - 1, rest)
            if rest:
                kept.dead[first] = dead  # they are committed, so all of them are in the part
        self.cnt = cnt
        self.ends = tuple(end for end in self.ends if end < cnt)
        if cnt < self._keys_since:
            self.key_bytes, self._keys_since = None, 0

    def commit(self, cnt: int) -> bool:
        """Note that all replicas have the events up to `cnt`: garbage collection events among them may
        collect.

        Returns whether there is work for `collect_some`.
        """
        cnt = min(cnt, self.cnt)
        before = self.committed
        if cnt <= before:
            return self._has_work()
        self.committed = cnt
        if self._keys is None and self._last_collecting <= self._applied:
            self._applied = cnt
        else:
            self._apply_some()
        assert self.collected < cnt, "collected by an uncommitted event"
        assert self._applied <= cnt, "applied an uncommitted event"
        if self._has_work():
            self._fresh += cnt - max(before, first_seq_of_epoch(epoch_of(cnt)) - 1)
            return True
        self._fresh = 0
        return False

    def _has_work(self) -> bool:
        kept = self._list
        has_collected = bool(kept) and kept.last_seqs[kept.start] <= self.collected
        return has_collected or self._keys is not None or self._applied < self.committed

    def collect_some(self) -> bool:
        """Continue collecting, in a small portion. Return whether there is more to do."""
        work, self._fresh = WORK_AT_LEAST + WORK_PER_EVENT * self._fresh, 0
        if self._applied < self.committed:
            self._apply_some()
        kept = self._list
        for _ in range(DROPPED_AT_ONCE):
            if not kept or kept.last_seqs[kept.start] > self.collected:
                break
            if self._keys is not None:
                self._keys.dropped(kept.start)
            kept.drop_first()
        more = bool(kept) and kept.last_seqs[kept.start] <= self.collected
        if self._keys is not None:
            more |= self._keys.collect_some(self._applied, work)
        return more or self._applied < self.committed

    def _apply_some(self) -> None:
        """Apply the predicates of committed events, up to a limit per call."""
        kept = self._list
        first = kept.after(self._applied)
        for position in range(first, min(first + APPLIED_AT_ONCE, len(kept.batches))):
            batch = kept.at(position)
            if batch.first_seq > self.committed:
                break
            last = kept.last_seqs[position]
            if last > self.committed:
                batch = cut_after(batch, self.committed)
                last = last_seq(batch)
            self._applied = last
            if batch.kind == EventKind.GC:
                self._apply(batch, last)
        else:
            if first + APPLIED_AT_ONCE < len(kept.batches):
                return
        self._applied = self.committed

    def _apply(self, batch: Batch, last: int) -> None:
        """Apply a predicate: that of the batch's last event covers those of the others."""
        if batch.predicate == Predicate.SAME_KEY:
            if self._keys is None and batch.argument == self.key_bytes:
                # NumPy costs every process 14 MB: only processes that collect by key import it
                from node.protocols.sprinkler.storage.key_collection import KeyCollection  # noqa: PLC0415

                self._keys = KeyCollection(self._list, self.key_bytes)
            return
        if batch.predicate == Predicate.OLDER_THAN:
            # An epoch may begin with another time: only its own stamps are compared, and once one of its
            # events is old enough, all those of former epochs are.
            first = self._list.after(first_seq_of_epoch(epoch_of(batch.first_seq)) - 1)
            position = self._list.since(batch.time_us - batch.argument, first)
            if position == first:
                return
            position = min(position, len(self._list.batches) - 1)  # a peer's times may decrease
            end = min(self._list.at(position).first_seq, batch.first_seq) - 1
        else:
            end = predicates.prefix_end(batch, last)
        self.collected = max(self.collected, end)


class EventHistory:
    """All streams of a proxy."""

    def __init__(self, streams: Iterable[int], limit_bytes: int) -> None:
        self.streams = {stream: StreamHistory(stream) for stream in streams}
        self.limit_bytes = limit_bytes
        self.used_bytes = 0  # memory of all streams, payload and overhead
        self.grown: dict[int, None] = {}  # streams with a commit since the last call of `HistorySamples.due`
        self._collecting: dict[int, None] = {}  # streams that may have something to collect

    @property
    def bytes(self) -> int:
        """Bytes of stored payload of all streams."""
        return sum([stream.bytes for stream in self.streams.values()])

    def has_room(self, batch: Batch | Publish) -> bool:
        """Return whether a batch may be stored; placeholders always may, because they are not stored.

        Part of the limit is reserved for events that collect, also of other regions, because they free
        memory: otherwise a stream that fills the rest would exclude them permanently.
        """
        if batch.kind in PLACEHOLDERS:
            return True
        collects = batch.predicate != Predicate.NONE
        limit_bytes = self.limit_bytes + self.limit_bytes // COLLECTING_SHARE * collects
        return self.used_bytes + BATCH_BYTES + len(batch.payload) <= limit_bytes

    def check(self) -> None:
        """Assert the invariants of all streams."""
        for stream in self.streams.values():
            stream.check()
        used_bytes = sum([stream.used_bytes for stream in self.streams.values()])
        assert self.used_bytes == used_bytes, "wrong byte count of all streams"

    def refusal(self, publish: Publish) -> str | None:
        """Return why this may not be published, or None: it would undo an earlier collection (paper 2.1)."""
        return predicates.refusal(publish, self.streams[publish.stream].key_bytes)

    def append(self, batch: Batch) -> None:
        """Store a batch that directly follows its stream's cnt.

        A view of a receive buffer is copied: it would keep the whole buffer in memory, which is not counted.
        """
        if isinstance(batch.payload, memoryview):
            batch = replace(batch, payload=bytes(batch.payload))
        state = self.streams[batch.stream]
        state.append(batch)
        if batch.kind not in PLACEHOLDERS:
            added_bytes = BATCH_BYTES + len(batch.payload)
            state.counted_bytes += added_bytes
            self.used_bytes += added_bytes

    def commit(self, stream: int, cnt: int) -> None:
        """Commit the stream up to `cnt`, which all replicas have: its garbage collection events collect."""
        state = self.streams[stream]
        if state.commit(cnt):
            self._collecting[stream] = None
            self._count(state)
        self.grown[stream] = None

    def truncate(self, stream: int, cnt: int) -> None:
        """Remove the stream's events after `cnt`, which are not committed."""
        state = self.streams[stream]
        state.truncate(cnt)
        self._collecting[stream] = None
        self._count(state)

    def start_over(self, stream: int) -> None:
        """Remove all events of a stream."""
        self.used_bytes -= self.streams[stream].counted_bytes
        self.streams[stream] = StreamHistory(stream)

    def collect_some(self) -> bool:
        """Continue collecting on every stream; called once per input. Return whether there is more to do."""
        if not self._collecting:
            return False
        for stream in list(self._collecting):
            state = self.streams[stream]
            if not state.collect_some():
                del self._collecting[stream]
            self._count(state)
        return bool(self._collecting)

    def _count(self, state: StreamHistory) -> None:
        """Update the memory counter after a change of a stream."""
        used_bytes = state.used_bytes
        self.used_bytes += used_bytes - state.counted_bytes
        state.counted_bytes = used_bytes
