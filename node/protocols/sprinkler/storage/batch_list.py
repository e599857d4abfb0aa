"""The batches of one stream in Hist or Recv, in the order of the stream, with search by sequence number.

Tombstones are not stored: if a sequence number up to cnt has no batch, its event was collected. Batches are
removed at the head (old ones, by the predicates on age) or replaced in place by their remaining events (by
key). Removed entries at the head are deleted from the lists only periodically, so that a removal is cheap.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter

from node.protocols.sprinkler.storage.batches import Batch

TIDIED_FROM = 16  # empty entries at the head of the lists
BATCH_BYTES = 280  # memory of a batch besides its payload: its objects, and list entries
# part of BATCH_BYTES for the list entries, which remain for a while after the batch was removed
PLACE_BYTES = 64
CHECKED = 64  # number of newest batches that an invariant check covers
TIME = attrgetter("time_us")


@dataclass(slots=True, eq=False)
class BatchList:
    """Batches with rising sequence numbers. Positions change with `replace` and `drop_first`."""

    batches: list[Batch | None] = field(default_factory=list)  # None before `start`
    last_seqs: list[int] = field(default_factory=list)
    # number of events of each batch that are collected but still stored
    dead: list[int] = field(default_factory=list)
    start: int = 0
    bytes: int = 0  # of payload
    events: int = 0

    def __len__(self) -> int:
        return len(self.batches) - self.start

    @property
    def used_bytes(self) -> int:
        """Memory in use, as far as it grows with the stored events."""
        return self.bytes + BATCH_BYTES * len(self) + PLACE_BYTES * self.start

    def check(self) -> None:
        """Assert that the newest batches are in order and do not exceed the byte counter."""
        newest = self.batches[max(self.start, len(self.batches) - CHECKED) :]
        ends = self.last_seqs[len(self.batches) - len(newest) :]
        before = 0
        for batch, last in zip(newest, ends, strict=True):
            assert batch is not None, "an empty entry among batches"
            assert before < batch.first_seq <= last, "batches overlap, or are not in order"
            before = last
        newest_bytes = sum([len(batch.payload) for batch in newest if batch is not None])
        assert self.bytes >= newest_bytes, "wrong byte count"
        assert len(self.batches) == len(self.last_seqs) == len(self.dead), "lists of different lengths"

    def append(self, batch: Batch, last_seq: int) -> None:
        """Add a batch, which ends with `last_seq`."""
        self.batches.append(batch)
        self.last_seqs.append(last_seq)
        self.dead.append(0)
        self.bytes += len(batch.payload)
        self.events += batch.count

    def at(self, position: int) -> Batch:
        """Return the batch at a position that has one."""
        batch = self.batches[position]
        assert batch is not None
        return batch

    def after(self, seq: int) -> int:
        """Return the position of the first batch that ends after `seq`."""
        return bisect_right(self.last_seqs, seq, self.start)

    def since(self, time_us: int, first: int) -> int:
        """Return the position of the first batch from `first` on with this time or later.

        Times never decrease in an epoch.
        """
        return bisect_left(self.batches, time_us, first, key=TIME)

    def drop_first(self) -> Batch:
        """Remove and return the first batch."""
        batch = self.at(self.start)
        self.bytes -= len(batch.payload)
        self.events -= batch.count
        self.batches[self.start] = None
        self.start += 1
        if self.start >= TIDIED_FROM and 2 * self.start >= len(self.batches):
            del self.batches[: self.start], self.last_seqs[: self.start], self.dead[: self.start]
            self.start = 0
        return batch

    def replace(self, first: int, last: int, batches: Sequence[tuple[Batch, int]]) -> None:
        """Replace the batches at positions first to last, all present, by others (with their ends)."""
        for position in range(first, last + 1):
            batch = self.at(position)
            self.bytes -= len(batch.payload)
            self.events -= batch.count
        for batch, _ in batches:
            self.bytes += len(batch.payload)
            self.events += batch.count
        self.batches[first : last + 1] = [batch for batch, _ in batches]
        self.last_seqs[first : last + 1] = [end for _, end in batches]
        self.dead[first : last + 1] = [0] * len(batches)
