"""Recv: the events that a client retains for its peers (paper 3.2, Fig. 3), the newest of all streams, within
a limit.

Batches are retained as they arrived, in the order of delivery, and only while there are peers that could
request them. Beyond the limit the oldest are discarded (discardEvent of Fig. 3), of any stream. Events are
found by binary search. Garbage collection events are not applied here: the events that they collect are old,
and are discarded anyway.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import replace

from node.protocols.sprinkler.storage.batch_list import BatchList
from node.protocols.sprinkler.storage.batches import Batch

COPIED_BELOW_BYTES = 4096  # a view of a small part would keep the whole receive buffer in memory
BATCH_OVERHEAD_BYTES = 128  # memory of a batch besides its payload, so that tombstones are bounded, too


class Recv:
    """The Recv of a client, for all streams."""

    __slots__ = ("_cnts", "_keeps", "_kept", "_limit_bytes", "_order", "bytes")

    def __init__(self, streams: Iterable[int], limit_bytes: int) -> None:
        self.bytes = 0
        self._keeps = True
        self._cnts = dict.fromkeys(streams, 0)
        self._kept = {stream: BatchList() for stream in self._cnts}
        self._limit_bytes = limit_bytes
        # the stream of each retained batch, in order of delivery
        self._order: deque[BatchList] = deque()

    def add(self, batch: Batch, cnt: int) -> None:
        """Retain a delivered batch that ends at `cnt`; older ones make room for it."""
        assert cnt > self._cnts[batch.stream], "delivered again"
        self._cnts[batch.stream] = cnt
        if not self._keeps:
            return
        payload = batch.payload
        if isinstance(payload, memoryview) and len(payload) < COPIED_BELOW_BYTES:
            batch = replace(batch, payload=bytes(payload))
        kept = self._kept[batch.stream]
        kept.append(batch, cnt)
        self._order.append(kept)
        self.bytes += len(payload) + BATCH_OVERHEAD_BYTES
        while self.bytes > self._limit_bytes:
            self._discard()

    def keep(self, *, keeps: bool) -> None:
        """Retain batches from now on, or stop and discard all, which saves processor caches."""
        self._keeps = keeps
        while self._order and not keeps:
            self._discard()

    def cnt(self, stream: int) -> int:
        """Return the last delivered event of this stream."""
        return self._cnts[stream]

    def after(self, stream: int, cnt: int, limit_bytes: int) -> Sequence[Batch]:
        """Return the retained batches that end after `cnt`, in order, of `limit_bytes` of payload, at least
        one.

        Events between `cnt` and the first of them are discarded.
        """
        kept = self._kept[stream]
        found: list[Batch] = []
        for position in range(kept.after(cnt), len(kept.batches)):
            if limit_bytes <= 0:
                break
            batch = kept.at(position)
            limit_bytes -= len(batch.payload)
            found.append(batch)
        return found

    def check(self) -> None:
        """Assert the limit."""
        assert self.bytes <= self._limit_bytes, "more is retained than the limit"

    def _discard(self) -> None:
        """Discard the oldest batch (discardEvent of Fig. 3)."""
        batch = self._order.popleft().drop_first()
        self.bytes -= len(batch.payload) + BATCH_OVERHEAD_BYTES
        assert (self.bytes > 0) == bool(self._order), "bytes without batches"
