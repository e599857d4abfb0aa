"""Batches as NumPy arrays: sequence numbers and keys of their events, and batches of selected events."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from node.protocols.sprinkler.messages import U32_BYTES, Events, SparseEvents
from node.protocols.sprinkler.storage.batches import Batch, sized_payload, unpack_batch
from node.protocols.sprinkler.storage.key_index import Seqs

SAME_IN_JOINED = ("kind", "predicate", "stream", "event_bytes", "argument")


def sequence_numbers(batch: Batch) -> Seqs:
    """Return the sequence numbers of the events of a batch that is not a tombstone."""
    if isinstance(batch, SparseEvents):
        return batch.first_seq - 1 + np.frombuffer(batch.payload, ">u4", batch.count).cumsum(dtype=np.int64)
    return np.arange(batch.first_seq, batch.first_seq + batch.count)


def keyed_events(
    batch: Batch, seqs: Seqs, key_bytes: int, start: int, stop: int
) -> tuple[list[bytes], Seqs, NDArray[np.int64]]:
    """Return keys, sequence numbers and positions of the events from start to stop that have a key.

    Shorter events have none. seqs: the batch's `sequence_numbers`.
    """
    seqs = seqs[start:stop]
    positions = np.arange(start, stop)
    payload = bytes(sized_payload(batch))
    if batch.event_bytes:
        if batch.event_bytes < key_bytes:
            positions, seqs = positions[:0], seqs[:0]
        offsets = positions * batch.event_bytes
    else:
        sizes = np.frombuffer(payload, ">u4", batch.count).astype(np.int64)
        offsets = (U32_BYTES * batch.count + np.cumsum(sizes) - sizes)[start:stop]
        long_enough = sizes[start:stop] >= key_bytes
        positions, seqs, offsets = positions[long_enough], seqs[long_enough], offsets[long_enough]
    return [payload[at : at + key_bytes] for at in offsets.tolist()], seqs, positions


def may_be_one(first: Batch, second: Batch) -> bool:
    """Return whether events of both may be in one batch."""
    return all(getattr(first, name) == getattr(second, name) for name in SAME_IN_JOINED)


def join_batches(batches: Sequence[Batch]) -> tuple[Events, Seqs]:
    """Join consecutive batches into one without reaches; return it and the events' sequence numbers.

    It has the time of the last batch.
    """
    last, parts = batches[-1], [sized_payload(batch) for batch in batches]
    if not last.event_bytes:  # all sizes precede the events
        ends = [U32_BYTES * batch.count for batch in batches]
        parts = [part[:end] for part, end in zip(parts, ends, strict=True)] + [
            part[end:] for part, end in zip(parts, ends, strict=True)
        ]
    count = sum([batch.count for batch in batches])
    head = (last.kind, last.predicate, last.stream, batches[0].first_seq, count, last.event_bytes)
    seqs = [sequence_numbers(batch) for batch in batches]
    return Events(*head, last.argument, last.time_us, b"".join(parts)), np.concatenate(seqs)


def take_events(batch: Events, seqs: Seqs, taken: NDArray[np.bool_]) -> Batch | None:
    """Return a batch of the taken events, or None if there are none.

    batch: without reaches; seqs: its sequence numbers. The result covers the sequence numbers from the
    batch's first to the last taken event.
    """
    numbers = seqs[taken]
    if not len(numbers):
        return None
    if batch.event_bytes:
        table = np.frombuffer(batch.payload, np.uint8).reshape(batch.count, batch.event_bytes)
        payload = table[taken].tobytes()
    else:
        payload = _mixed(
            [event for event, is_taken in zip(unpack_batch(batch), taken.tolist(), strict=True) if is_taken]
        )
    batch_type: type[Batch] = Events
    if numbers[-1] - batch.first_seq >= len(numbers):
        batch_type = SparseEvents
        reaches = numbers.copy()
        reaches[0] -= batch.first_seq - 1
        reaches[1:] -= numbers[:-1]
        payload = reaches.astype(">u4").tobytes() + payload
    head = (batch.kind, batch.predicate, batch.stream, batch.first_seq, len(numbers), batch.event_bytes)
    return batch_type(*head, batch.argument, batch.time_us, payload)


def _mixed(events: list[bytes]) -> bytes:
    sizes = np.array([len(event) for event in events], ">u4")
    return sizes.tobytes() + b"".join(events)
