"""The batches of one stream in Hist, in the order of the stream, and finding one by sequence number.

Tombstones are not stored: where a sequence number up to cnt has no batch, its event was collected. Batches
leave at the head (old ones, by the predicates on age) or are replaced in place by what is left of them (by
key). What was taken off the head is cut from the lists only now and then, so that it costs nothing by itself.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from operator import attrgetter

from node.protocols.sprinkler.storage.batches import Batch

TIDIED_FROM = 16  # empty places at the head of the lists
BATCH_BYTES = 280  # of memory for a batch besides its payload: its objects, and places in lists
PLACE_BYTES = 64  # of these for the places, which stay for a while when the batch has gone
CHECKED = 64  # of the newest batches, when someone asks whether all is as it must be
TIME = attrgetter("time_us")


class BatchList:
    """Batches with rising sequence numbers. Positions change with `replace` and `drop_first`."""

    __slots__ = ("batches", "bytes", "dead", "events", "last_seqs", "start")

    def __init__(self) -> None:
        self.batches: list[Batch | None] = []  # None before `start`
        self.last_seqs: list[int] = []
        self.dead: list[int] = []  # how many events of each batch are collected but still there
        self.start = 0
        self.bytes = 0  # of payload
        self.events = 0

    def __len__(self) -> int:
        return len(self.batches) - self.start

    @property
    def used_bytes(self) -> int:
        """Memory that is used, as far as it grows with what is kept."""
        return self.bytes + BATCH_BYTES * len(self) + PLACE_BYTES * self.start

    def check(self) -> None:
        """Assert that the newest batches are in order, and that what is counted is not less than they are."""
        newest = self.batches[max(self.start, len(self.batches) - CHECKED) :]
        ends = self.last_seqs[len(self.batches) - len(newest) :]
        before = 0
        for batch, last in zip(newest, ends, strict=True):
            assert batch is not None, "an empty place among batches"
            assert before < batch.first_seq <= last, "batches that overlap, or not in order"
            before = last
        newest_bytes = sum([len(batch.payload) for batch in newest if batch is not None])
        assert self.bytes >= newest_bytes, "bytes counted wrong"
        assert len(self.batches) == len(self.last_seqs) == len(self.dead), "lists that differ"

    def append(self, batch: Batch, last_seq: int) -> None:
        """Add a batch, which ends with `last_seq`."""
        self.batches.append(batch)
        self.last_seqs.append(last_seq)
        self.dead.append(0)
        self.bytes += len(batch.payload)
        self.events += batch.count

    def at(self, position: int) -> Batch:
        """The batch at a position that has one."""
        batch = self.batches[position]
        assert batch is not None
        return batch

    def after(self, seq: int) -> int:
        """Position of the first batch that ends after `seq`."""
        return bisect_right(self.last_seqs, seq, self.start)

    def since(self, time_us: int, first: int) -> int:
        """Position of the first batch from `first` on of this time or later. Times never fall in an epoch."""
        return bisect_left(self.batches, time_us, first, key=TIME)

    def drop_first(self) -> None:
        """Take the first batch away."""
        batch = self.at(self.start)
        self.bytes -= len(batch.payload)
        self.events -= batch.count
        self.batches[self.start] = None
        self.start += 1
        if self.start >= TIDIED_FROM and 2 * self.start >= len(self.batches):
            del self.batches[: self.start], self.last_seqs[: self.start], self.dead[: self.start]
            self.start = 0

    def replace(self, first: int, last: int, batches: Sequence[tuple[Batch, int]]) -> None:
        """Put batches (with their ends) where those at positions first to last are, all of them alive."""
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
