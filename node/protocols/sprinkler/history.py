"""Hist: the events that a proxy stores (paper 3.1), as ordered batches for each stream, and reading from a
cursor.

Readers (other proxies and clients) hold nothing but a counter: how far they got. `after` finds the next
batches by binary search, so a reader costs the same whether it is one batch or an hour behind, and a slow
one costs no memory.

Invariants (paper 3.1): nothing in Hist has seq > cnt, and Hist holds every event <= cnt. Collection is not
done here yet; `History.limit_bytes` bounds what is kept, and whoever adds asks `has_room` first.
"""

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import replace

from node.protocols.sprinkler.batches import cut_before, last_seq
from node.protocols.sprinkler.messages import CODEC, Events, Publish

COPIED_BELOW_BYTES = (
    4096  # a memory view costs more than a copy that small, and would keep its whole chunk alive
)


class StreamHistory:
    """One stream's events up to `cnt`, without holes."""

    __slots__ = ("_batches", "_last_seqs", "cnt", "committed")

    def __init__(self) -> None:
        self.cnt = 0
        self.committed = 0  # what all replicas have (3.3)
        self._batches: list[Events] = []
        self._last_seqs: list[int] = []  # of _batches, for searching

    def append(self, batch: Events) -> None:
        """Store a batch that follows directly on cnt."""
        assert batch.first_seq == self.cnt + 1  # noqa: S101 - our own bug, not an input's
        self.cnt = last_seq(batch)
        self._batches.append(batch)
        self._last_seqs.append(self.cnt)

    def truncate(self, cnt: int) -> int:
        """Drop the batches that end after `cnt`; returns their bytes."""
        dropped = 0
        while self._last_seqs and self._last_seqs[-1] > cnt:
            self._last_seqs.pop()
            dropped += len(self._batches.pop().payload)
        self.cnt = self._last_seqs[-1] if self._last_seqs else 0
        return dropped

    def after(self, cnt: int, limit_bytes: int, upto: int | None = None) -> list[Events]:
        """The batches after `cnt`, in order: what fits in `limit_bytes` on the wire, but at least one.

        None that ends after `upto`.
        """
        found = self._after(cnt, limit_bytes)
        while upto is not None and found and last_seq(found[-1]) > upto:
            found.pop()
        return found

    def _after(self, cnt: int, limit_bytes: int) -> list[Events]:
        if cnt >= self.cnt:
            return []
        index = bisect_right(self._last_seqs, cnt)
        batch = self._batches[index]
        if batch.first_seq <= cnt:
            batch = cut_before(batch, cnt)
        found = [batch]
        limit_bytes -= CODEC.size_bytes(batch)
        for position in range(index + 1, len(self._batches)):
            batch = self._batches[position]
            limit_bytes -= CODEC.size_bytes(batch)
            if limit_bytes < 0:
                break
            found.append(batch)
        return found


class History:
    """All streams of a proxy."""

    def __init__(self, streams: Iterable[int], limit_bytes: int) -> None:
        self.streams = {stream: StreamHistory() for stream in streams}
        self.limit_bytes = limit_bytes
        self.bytes = 0

    def has_room(self, payload: bytes | memoryview) -> bool:
        """Whether a batch with this payload may be kept."""
        return self.bytes + len(payload) <= self.limit_bytes

    def append(self, batch: Events) -> None:
        """Store a batch that follows directly on its stream's cnt."""
        payload = batch.payload
        if isinstance(payload, memoryview) and len(payload) < COPIED_BELOW_BYTES:
            batch = replace(batch, payload=bytes(payload))
        self.bytes += len(payload)
        self.streams[batch.stream].append(batch)

    def commit(self, stream: int, cnt: int) -> None:
        """All replicas have the stream up to `cnt`."""
        self.streams[stream].committed = cnt

    def truncate(self, stream: int, cnt: int) -> None:
        """Drop what came after `cnt`, which is not committed."""
        self.bytes -= self.streams[stream].truncate(cnt)

    def refusal(self, publish: Publish) -> str | None:
        """Why a publication may not be stored."""
        return None
