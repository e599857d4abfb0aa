"""Batches: `Events` and `SparseEvents` messages as data; packing, unpacking and cutting them.

A batch covers consecutive sequence numbers. It is one of four kinds: events without gaps, a tombstone
(`Events` of that kind), the beginning of an epoch (likewise), or sparse: events with collected ones before
each (counted by its reaches). The events' bytes are concatenated if all have one size; otherwise a table of
u32 sizes precedes them (`event_bytes` is 0). Cutting creates a new batch over a view of the same bytes if
possible.
"""

import struct
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from itertools import accumulate, chain

from node.core.epochs import first_seq_of_epoch
from node.protocols.sprinkler.messages import (
    U32_BYTES,
    EventKind,
    Events,
    Predicate,
    SparseEvents,
    event_sizes,
)

Batch = Events | SparseEvents
TOMBSTONE_RANGE_MAX = 0xFFFF_FFFF  # maximum of the wire format
PLACEHOLDERS = frozenset({EventKind.TOMBSTONE, EventKind.EPOCH})  # kinds without events


def pack_events(events: Sequence[bytes]) -> tuple[int, bytes]:
    """Return event_bytes and payload of these events."""
    size = len(events[0])
    if size and list(map(len, events)).count(size) == len(events):  # takes half as long as creating a set
        return size, b"".join(events)
    return 0, struct.pack(f">{len(events)}I", *map(len, events)) + b"".join(events)


def unpack_events(count: int, event_bytes: int, payload: bytes | memoryview) -> list[bytes]:
    """Return the single events of a payload without reaches."""
    if event_bytes:
        return list(chain.from_iterable(struct.iter_unpack(f"{event_bytes}s", payload)))
    events, start = [], U32_BYTES * count
    for size in event_sizes(count, payload):
        events.append(bytes(payload[start : start + size]))
        start += size
    return events


def unpack_batch(batch: Batch) -> list[bytes]:
    """Return the single events of a batch; a placeholder has none."""
    if batch.kind in PLACEHOLDERS:
        return []
    return unpack_events(batch.count, batch.event_bytes, sized_payload(batch))


def sized_payload(batch: Batch) -> bytes | memoryview:
    """Return the payload without the reaches, as in an `Events` with the same events."""
    if isinstance(batch, SparseEvents):
        return memoryview(batch.payload)[U32_BYTES * batch.count :]
    return batch.payload


def event_payload(count: int, event_bytes: int, payload: bytes | memoryview) -> bytes | memoryview:
    """Return the events' bytes alone, over which CRCs are computed: `payload` without a table of sizes."""
    return payload if event_bytes else memoryview(payload)[U32_BYTES * count :]


def event_count(batch: Batch) -> int:
    """Return the number of events in the batch; 0 for a placeholder."""
    return 0 if batch.kind in PLACEHOLDERS else batch.count


def reaches(batch: SparseEvents) -> tuple[int, ...]:
    """Return for each event 1 plus the number of collected events between it and its predecessor."""
    return event_sizes(batch.count, batch.payload)


def event_seqs(batch: Batch) -> Sequence[int]:
    """Return the sequence numbers of the events in the batch."""
    if isinstance(batch, SparseEvents):
        return list(accumulate(reaches(batch), initial=batch.first_seq - 1))[1:]
    return range(batch.first_seq, batch.first_seq + event_count(batch))


def covered(batch: Batch) -> int:
    """Return the number of sequence numbers that the batch covers."""
    if isinstance(batch, SparseEvents):
        return sum(reaches(batch))
    # the beginning of an epoch has count 0
    return batch.count or first_seq_of_epoch(batch.argument) - batch.first_seq


def last_seq(batch: Batch) -> int:
    """Return the last sequence number that the batch covers."""
    if type(batch) is Events and batch.count:  # the usual case
        return batch.first_seq + batch.count - 1
    return batch.first_seq + covered(batch) - 1


def cut_before(batch: Batch, cnt: int) -> Batch:
    """Return the part of the batch after `cnt`, which is within the batch and before its end."""
    if isinstance(batch, SparseEvents):
        seqs = event_seqs(batch)
        skipped = bisect_right(seqs, cnt)
        kept = list(reaches(batch)[skipped:])
        kept[0] = seqs[skipped] - cnt
        return _sparse_part(batch, cnt + 1, kept, skipped)
    if batch.kind == EventKind.EPOCH:
        return replace(batch, first_seq=cnt + 1)
    skipped = cnt + 1 - batch.first_seq
    payload = b"" if batch.kind == EventKind.TOMBSTONE else _part(batch, skipped, batch.count)
    return replace(batch, first_seq=cnt + 1, count=batch.count - skipped, payload=payload)


def cut_after(batch: Batch, cnt: int) -> Batch:
    """Return the part of the batch up to `cnt`, which is within the batch and not before its beginning.

    The part ends with an event if it has one; so the part of a sparse batch may end before `cnt`, with
    collected events between its end and `cnt`. The part of a sparse batch before its first event is a
    tombstone. The beginning of an epoch has no parts.
    """
    if isinstance(batch, SparseEvents):
        kept = bisect_right(event_seqs(batch), cnt)
        if not kept:
            return tombstone(batch.stream, batch.first_seq, cnt)
        return _sparse_part(batch, batch.first_seq, reaches(batch)[:kept], 0)
    count = cnt + 1 - batch.first_seq
    payload = b"" if batch.kind == EventKind.TOMBSTONE else _part(batch, 0, count)
    return replace(batch, count=count, payload=payload)


def epoch_mark(stream: int, first_seq: int, epoch: int) -> Events:
    """Return the beginning of an epoch; earlier events from first_seq on are lost."""
    return Events(EventKind.EPOCH, Predicate.NONE, stream, first_seq, 0, 0, epoch, 0, b"")


def tombstone(stream: int, first_seq: int, last_seq: int) -> Events:
    """Return the placeholder for the events from first_seq to last_seq (paper 2.1)."""
    count = last_seq - first_seq + 1
    return Events(EventKind.TOMBSTONE, Predicate.NONE, stream, first_seq, count, 0, 0, 0, b"")


def _sparse_part(batch: SparseEvents, first_seq: int, kept: Sequence[int], skipped: int) -> SparseEvents:
    count = len(kept)
    payload = struct.pack(f">{count}I", *kept) + bytes(_part(batch, skipped, skipped + count))
    return replace(batch, first_seq=first_seq, count=count, payload=payload)


def _part(batch: Batch, start: int, stop: int) -> bytes | memoryview:
    """Return the payload of the batch's events from `start` to `stop`, without reaches."""
    payload = memoryview(sized_payload(batch))
    if batch.event_bytes:
        return payload[start * batch.event_bytes : stop * batch.event_bytes]
    sizes = event_sizes(batch.count, payload)
    first = U32_BYTES * batch.count + sum(sizes[:start])
    part = payload[first : first + sum(sizes[start:stop])]
    return struct.pack(f">{stop - start}I", *sizes[start:stop]) + bytes(part)
