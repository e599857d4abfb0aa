"""Batches: `Events` messages as data. Making them from single events, taking them apart, cutting them
short.

A batch's payload is its events' bytes one after the other where all have one size, else a table of u32
sizes comes first (`event_bytes` is 0). Cutting makes a new batch over a view of the same bytes.
"""

import struct
from collections.abc import Sequence

from node.protocols.sprinkler.messages import Events, Kind, event_sizes

SIZE_BYTES = 4  # of one entry in the table of sizes


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
    events, start = [], SIZE_BYTES * count
    for size in event_sizes(count, payload):
        events.append(bytes(payload[start : start + size]))
        start += size
    return events


def event_payload(count: int, event_bytes: int, payload: bytes | memoryview) -> bytes | memoryview:
    """The events' bytes alone, without a table of sizes: what CRCs are computed over."""
    return payload if event_bytes else memoryview(payload)[SIZE_BYTES * count :]


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
        start = SIZE_BYTES * batch.count + sum(sizes[:skipped])
        payload = struct.pack(f">{count}I", *sizes[skipped:]) + bytes(batch.payload[start:])
    return Events(batch.kind, batch.stream, cnt + 1, count, batch.event_bytes, payload)
