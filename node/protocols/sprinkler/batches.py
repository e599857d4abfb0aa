"""Batches: `Events` messages as data. Making them from single events, taking them apart, cutting them
short.

A batch's payload is its events' bytes one after the other where all have one size, else a table of u32
sizes comes first (`event_bytes` is 0). Cutting makes a new batch over a view of the same bytes.
"""

import struct
from collections.abc import Sequence
from dataclasses import replace

from node.protocols.sprinkler.messages import U32_BYTES, Events, Kind, Predicate, event_sizes


def pack_events(events: Sequence[bytes]) -> tuple[int, bytes]:
    """event_bytes and payload of these events."""
    size = len(events[0])
    if size and set(map(len, events)) == {size}:
        return size, b"".join(events)
    return 0, struct.pack(f">{len(events)}I", *map(len, events)) + b"".join(events)


def unpack_events(count: int, event_bytes: int, payload: bytes | memoryview) -> list[bytes]:
    """The single events of a payload."""
    if event_bytes:
        whole = bytes(payload)
        return [whole[start : start + event_bytes] for start in range(0, len(whole), event_bytes)]
    events, start = [], U32_BYTES * count
    for size in event_sizes(count, payload):
        events.append(bytes(payload[start : start + size]))
        start += size
    return events


def event_payload(count: int, event_bytes: int, payload: bytes | memoryview) -> bytes | memoryview:
    """The events' bytes alone, without a table of sizes: what CRCs are computed over."""
    return payload if event_bytes else memoryview(payload)[U32_BYTES * count :]


def last_seq(batch: Events) -> int:
    """Sequence number of the batch's last event."""
    return batch.first_seq + batch.count - 1


def cut_before(batch: Events, cnt: int) -> Events:
    """The part of the batch after `cnt`, which lies within it."""
    skipped = cnt + 1 - batch.first_seq
    count = batch.count - skipped
    if batch.kind == Kind.TOMBSTONE:
        payload: bytes | memoryview = b""
    elif batch.event_bytes:
        payload = memoryview(batch.payload)[skipped * batch.event_bytes :]
    else:
        sizes = event_sizes(batch.count, batch.payload)
        start = U32_BYTES * batch.count + sum(sizes[:skipped])
        payload = struct.pack(f">{count}I", *sizes[skipped:]) + bytes(batch.payload[start:])
    return replace(batch, first_seq=cnt + 1, count=count, payload=payload)


def tombstone(stream: int, first_seq: int, last_seq: int) -> Events:
    """The placeholder for the events from first_seq to last_seq (paper 2.1)."""
    count = last_seq - first_seq + 1
    return Events(Kind.TOMBSTONE, Predicate.NONE, stream, first_seq, count, 0, 0, 0, b"")
