"""Collection by key in one stream (paper 3.4): finding the events that SAME_KEY events collect, and removing
them.

Work is done in bounded portions, in the order of the stream:
1. index: enter the keys of committed events. If the later event is a SAME_KEY event, the previous event with
  the key is dead. Data events collect nothing: earlier events with their key wait in `_earlier`.
2. settle: count the dead events of each batch, many at a time.
3. compact: replace a batch with half of its events dead by a sparse one, joined with its neighbour if both
are
  small. So the stored events are at most about twice the live ones, and batches do not become ever smaller.
Dead events have no mark: an event is alive if the index has it.

A joined batch has the time of its newest events: OLDER_THAN may collect the others later than it could.
"""

from bisect import bisect_left
from collections import deque
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from node.protocols.sprinkler.predicates import collects_by_key, has_keys
from node.protocols.sprinkler.storage.batch_list import BatchList
from node.protocols.sprinkler.storage.batches import TOMBSTONE_RANGE_MAX, Batch, last_seq
from node.protocols.sprinkler.storage.event_arrays import (
    join_batches,
    keyed_events,
    may_be_one,
    sequence_numbers,
    take_events,
)
from node.protocols.sprinkler.storage.key_index import SWEPT_FROM, KeyIndex, Seqs

PORTION = 8192  # events that are indexed in one step
SETTLED_AT_ONCE = 32_768  # dead events
JOINED_BYTES = 65_536  # maximum size of joined batches
EARLIER_BYTES = 256  # memory for a key with an event before its last one
SMALL_BYTES = 8192  # a smaller batch is a candidate for joining even if all of it is live


class KeyCollection:
    """State of one stream's keys. It changes the stream's list of batches."""

    def __init__(self, batches: BatchList, key_bytes: int) -> None:
        self.dead = 0  # events that are collected but still in the list
        self._list = batches
        self._key_bytes = key_bytes
        self._index = KeyIndex()
        self._indexed = 0  # keys are entered up to here
        self._earlier: dict[bytes, list[int]] = {}  # key -> live events before the last one with it
        self._earlier_limit = SWEPT_FROM  # size at which entries of dropped events are removed
        self._pending: list[Seqs] = []  # dead, not settled
        self._pending_count = 0
        self._halfdead: deque[int] = deque()  # ends of batches that may be compacted

    @property
    def used_bytes(self) -> int:
        """Memory in use, besides the batches."""
        return self._index.used_bytes + EARLIER_BYTES * len(self._earlier) + 8 * self._pending_count

    def dropped(self, position: int) -> None:
        """Prepare for the removal of the first batch, which is at this position."""
        end = self._list.last_seqs[position]
        pending = self._pending_count
        if pending:
            self._forget_pending(self._index.floor + 1, end)
        self.dead -= self._list.dead[position] + pending - self._pending_count
        self._index.floor = end

    def alive_until(self, batch: Batch, seq: int) -> int:
        """Return how many of the batch's events up to `seq` are not collected by key."""
        seqs = sequence_numbers(batch)
        return int((self._alive(batch, seqs) & (seqs <= seq)).sum())

    def collect_some(self, applied: int, work: int) -> bool:
        """Continue up to `applied`, with about `work` event inspections. Return whether more is left."""
        while work > 0:
            if self._pending_count >= SETTLED_AT_ONCE:
                work -= self._settle()
            elif self._halfdead:
                work -= self._compact(self._halfdead.popleft())
            elif self._indexed < applied:
                work -= self._index_some(applied)
            elif self._pending_count > len(self._list) // 2:
                work -= self._settle()
            else:
                return False
        return True

    # --- 1. index

    def _index_some(self, applied: int) -> int:
        position = self._list.after(self._indexed)
        if position == len(self._list.batches) or self._list.at(position).first_seq > applied:
            self._indexed = applied
            return 1
        batch, end = self._list.at(position), self._list.last_seqs[position]
        if not self._has_keys(batch):
            self._indexed = min(end, applied)
            return 1
        seqs = sequence_numbers(batch)
        start = int(seqs.searchsorted(self._indexed, "right"))
        stop = min(start + PORTION, int(seqs.searchsorted(applied, "right")))
        keys, keyed, _ = keyed_events(batch, seqs, self._key_bytes, start, stop)
        if len(keyed):
            self._enter(keys, keyed, collecting=collects_by_key(batch))
        if stop < batch.count:
            self._indexed = applied if start == stop else int(seqs[stop - 1])
            return stop - start + 1
        self._indexed = min(end, applied)
        if len(batch.payload) < SMALL_BYTES or 2 * self._list.dead[position] >= batch.count:
            self._halfdead.append(end)
        return stop - start + 1

    def _has_keys(self, batch: Batch) -> bool:
        return has_keys(batch) and (not collects_by_key(batch) or batch.argument == self._key_bytes)

    def _enter(self, keys: Sequence[bytes], seqs: Seqs, *, collecting: bool) -> None:
        positions, displaced = self._index.exchange(keys, seqs)
        if collecting:
            self._is_dead(np.array(displaced, np.int64))
            if self._earlier:
                for key in keys:
                    earlier = np.array(self._earlier.pop(key, ()), np.int64)
                    self._is_dead(earlier[earlier > self._index.floor])
            return
        for seq, position in sorted(zip(displaced, positions, strict=True)):
            self._earlier.setdefault(keys[position], []).append(seq)
        if len(self._earlier) > self._earlier_limit:
            floor = self._index.floor
            self._earlier = {key: seqs for key, seqs in self._earlier.items() if seqs[-1] > floor}
            self._earlier_limit = 2 * len(self._earlier) + SWEPT_FROM

    def _is_dead(self, seqs: Seqs) -> None:
        if len(seqs):
            self._pending.append(seqs)
            self._pending_count += len(seqs)
            self.dead += len(seqs)

    # --- 2. settle

    def _settle(self) -> int:
        """Count the dead events of each batch."""
        dead = np.sort(np.concatenate(self._pending))
        self._pending, self._pending_count = [], 0
        kept = self._list
        here = dead[dead > self._index.floor]
        self.dead -= len(dead) - len(here)  # dropped meanwhile
        ends = np.array(kept.last_seqs[kept.start :], np.int64)
        counts = np.bincount(np.searchsorted(ends, here), minlength=len(ends))
        for offset in np.nonzero(counts)[0].tolist():
            position = kept.start + offset
            before = kept.dead[position]
            kept.dead[position] = after = before + int(counts[offset])
            count = kept.at(position).count
            if 2 * before < count <= 2 * after:
                self._halfdead.append(kept.last_seqs[position])
        return len(dead) + len(ends)

    # --- 3. compact

    def _compact(self, end: int) -> int:
        """Remove the dead events from the batch that ends here, and join it with the one before."""
        kept = self._list
        position = kept.after(end - 1)
        if position == len(kept.batches) or kept.last_seqs[position] != end or end > self._indexed:
            return 1
        batch = kept.at(position)
        live_bytes = len(batch.payload) * (batch.count - kept.dead[position]) // batch.count
        first = position
        while first > kept.start and self._may_join(first - 1, batch, live_bytes, end):
            first -= 1
            live_bytes += len(kept.at(first).payload)
        if first == position and 2 * kept.dead[position] < batch.count:
            return 1
        joined = [kept.at(at) for at in range(first, position + 1)]
        whole, seqs = join_batches(joined)
        gone = sum(kept.dead[first : position + 1])
        rest = take_events(whole, seqs, self._alive(whole, seqs))
        unsettled = whole.count - gone - (rest.count if rest else 0)
        kept.replace(first, position, [(rest, last_seq(rest))] if rest else [])
        self.dead -= gone + unsettled
        if unsettled:
            self._forget_pending(whole.first_seq, end)
        return whole.count

    def _may_join(self, position: int, batch: Batch, live_bytes: int, end: int) -> bool:
        """Return whether the batch at this position is worth joining with its successor."""
        before = self._list.at(position)
        size = len(before.payload)
        return (
            size <= 2 * live_bytes  # so that no event is copied often
            and size + live_bytes <= JOINED_BYTES
            and end - before.first_seq < TOMBSTONE_RANGE_MAX
            and may_be_one(before, batch)
            and self._list.last_seqs[position] <= self._indexed
        )

    def _forget_pending(self, first: int, last: int) -> None:
        """Forget dead events that were removed before they were counted."""
        seqs = np.concatenate(self._pending)
        self._pending = [seqs[(seqs < first) | (seqs > last)]]
        self._pending_count = len(self._pending[0])

    def _alive(self, batch: Batch, seqs: Seqs) -> NDArray[np.bool_]:
        """Return which events of an indexed batch are not collected by key."""
        if not self._has_keys(batch):
            return np.ones(batch.count, np.bool_)
        keys, keyed, positions = keyed_events(batch, seqs, self._key_bytes, 0, batch.count)
        is_last: NDArray[np.bool_] = (self._index.last(keys) == keyed) | (keyed > self._indexed)
        if self._earlier:
            for at in np.nonzero(~is_last)[0].tolist():
                earlier = self._earlier.get(keys[at], [])
                place = bisect_left(earlier, seqs[positions[at]])
                is_last[at] = place < len(earlier) and earlier[place] == seqs[positions[at]]
        if len(keyed) == batch.count:
            return is_last
        alive = np.ones(batch.count, np.bool_)
        alive[positions] = is_last
        return alive
