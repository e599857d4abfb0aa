"""Batches: `Events` and `SparseEvents` messages as data. Making them from single events, taking them apart,
cutting them short.

A batch covers consecutive sequence numbers. It is one of four kinds: events without gaps, a tombstone
(`Events` of that kind), the beginning of an epoch (likewise), or sparse: events with collected ones before
each (its reaches say how many). The
events' bytes stand one after the other where all have one size, else a table of u32 sizes comes first
(`event_bytes` is 0). Cutting makes a new batch over a view of the same bytes where that is possible.
"""

import struct
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, chain

from node.core.epochs import first_of
from node.protocols.sprinkler.messages import (
    U32_BYTES,
    Events,
    Kind,
    Predicate,
    SparseEvents,
    event_sizes,
)

Batch = Events | SparseEvents
TOMBSTONE_RANGE_MAX = 0xFFFF_FFFF  # what the wire has room for
PLACEHOLDERS = frozenset({Kind.TOMBSTONE, Kind.EPOCH})  # kinds without events


def pack_events(events: Sequence[bytes]) -> tuple[int, bytes]:
    """event_bytes and payload of these events."""
    size = len(events[0])
    if size and list(map(len, events)).count(size) == len(events):  # half as long as making a set
        return size, b"".join(events)
    return 0, struct.pack(f">{len(events)}I", *map(len, events)) + b"".join(events)


def unpack_events(count: int, event_bytes: int, payload: bytes | memoryview) -> list[bytes]:
    """The single events of a payload without reaches."""
    if event_bytes:
        return list(chain.from_iterable(struct.iter_unpack(f"{event_bytes}s", payload)))
    events, start = [], U32_BYTES * count
    for size in event_sizes(count, payload):
        events.append(bytes(payload[start : start + size]))
        start += size
    return events


def unpack_batch(batch: Batch) -> list[bytes]:
    """The single events of a batch; a placeholder has none."""
    if batch.kind in PLACEHOLDERS:
        return []
    return unpack_events(batch.count, batch.event_bytes, sized_payload(batch))


def sized_payload(batch: Batch) -> bytes | memoryview:
    """The payload without the reaches: as that of an `Events` with the same events."""
    if isinstance(batch, SparseEvents):
        return memoryview(batch.payload)[U32_BYTES * batch.count :]
    return batch.payload


def event_payload(count: int, event_bytes: int, payload: bytes | memoryview) -> bytes | memoryview:
    """The events' bytes alone, over which CRCs are computed: `payload` without a table of sizes."""
    return payload if event_bytes else memoryview(payload)[U32_BYTES * count :]


def event_count(batch: Batch) -> int:
    """How many events the batch carries: none, if it is a placeholder."""
    return 0 if batch.kind in PLACEHOLDERS else batch.count


def reaches(batch: SparseEvents) -> tuple[int, ...]:
    """For each event: 1 and the number of collected events between it and the one before."""
    return event_sizes(batch.count, batch.payload)


def event_seqs(batch: Batch) -> Sequence[int]:
    """Sequence numbers of the events that the batch carries."""
    if isinstance(batch, SparseEvents):
        return list(accumulate(reaches(batch), initial=batch.first_seq - 1))[1:]
    return range(batch.first_seq, batch.first_seq + event_count(batch))


def covered(batch: Batch) -> int:
    """How many sequence numbers the batch covers."""
    if isinstance(batch, SparseEvents):
        return sum(reaches(batch))
    return batch.count or first_of(batch.argument) - batch.first_seq  # the beginning of an epoch has none


def last_seq(batch: Batch) -> int:
    """The last sequence number that the batch covers."""
    if type(batch) is Events and batch.count:  # as nearly always
        return batch.first_seq + batch.count - 1
    return batch.first_seq + covered(batch) - 1


def cut_before(batch: Batch, cnt: int) -> Batch:
    """The part of the batch after `cnt`, which lies within it: before its end."""
    if isinstance(batch, SparseEvents):
        seqs = event_seqs(batch)
        skipped = bisect_right(seqs, cnt)
        kept = list(reaches(batch)[skipped:])
        kept[0] = seqs[skipped] - cnt
        return _sparse_part(batch, cnt + 1, kept, skipped)
    if batch.kind == Kind.EPOCH:
        return replace(batch, first_seq=cnt + 1)
    skipped = cnt + 1 - batch.first_seq
    payload = b"" if batch.kind == Kind.TOMBSTONE else _part(batch, skipped, batch.count)
    return replace(batch, first_seq=cnt + 1, count=batch.count - skipped, payload=payload)


def cut_after(batch: Batch, cnt: int) -> Batch:
    """The part of the batch up to `cnt`, which lies within it: not before its beginning.

    It ends with an event if it has one; so the part of a sparse batch may end before `cnt`, with collected
    events between its end and `cnt`. The part of a sparse batch before its first event is a tombstone. The
    beginning of an epoch has no parts.
    """
    if isinstance(batch, SparseEvents):
        kept = bisect_right(event_seqs(batch), cnt)
        if not kept:
            return tombstone(batch.stream, batch.first_seq, cnt)
        return _sparse_part(batch, batch.first_seq, reaches(batch)[:kept], 0)
    count = cnt + 1 - batch.first_seq
    payload = b"" if batch.kind == Kind.TOMBSTONE else _part(batch, 0, count)
    return replace(batch, count=count, payload=payload)


def epoch_mark(stream: int, first_seq: int, epoch: int) -> Events:
    """The beginning of an epoch; what there was from first_seq on before it is lost."""
    return Events(Kind.EPOCH, Predicate.NONE, stream, first_seq, 0, 0, epoch, 0, b"")


def tombstone(stream: int, first_seq: int, last_seq: int) -> Events:
    """The placeholder for the events from first_seq to last_seq (paper 2.1)."""
    count = last_seq - first_seq + 1
    return Events(Kind.TOMBSTONE, Predicate.NONE, stream, first_seq, count, 0, 0, 0, b"")


def _sparse_part(batch: SparseEvents, first_seq: int, kept: Sequence[int], skipped: int) -> SparseEvents:
    count = len(kept)
    payload = struct.pack(f">{count}I", *kept) + bytes(_part(batch, skipped, skipped + count))
    return replace(batch, first_seq=first_seq, count=count, payload=payload)


def _part(batch: Batch, start: int, stop: int) -> bytes | memoryview:
    """Payload of the batch's events from `start` to `stop`, without reaches."""
    payload = memoryview(sized_payload(batch))
    if batch.event_bytes:
        return payload[start * batch.event_bytes : stop * batch.event_bytes]
    sizes = event_sizes(batch.count, payload)
    first = U32_BYTES * batch.count + sum(sizes[:start])
    part = payload[first : first + sum(sizes[start:stop])]
    return struct.pack(f">{stop - start}I", *sizes[start:stop]) + bytes(part)
