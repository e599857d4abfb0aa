"""Batches as NumPy arrays: sequence numbers and keys of their events, and a new batch of some of them."""

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from node.protocols.sprinkler.batches import Batch, sized_payload, unpack_batch
from node.protocols.sprinkler.key_index import NUMBER_BYTES, Seqs
from node.protocols.sprinkler.messages import U32_BYTES, Events, SparseEvents

SAME_IN_JOINED = ("kind", "predicate", "stream", "event_bytes", "argument")


def sequence_numbers(batch: Batch) -> Seqs:
    """The sequence numbers of the events of a batch, which is no tombstone."""
    if isinstance(batch, SparseEvents):
        return (
            batch.first_seq - 1 + np.cumsum(np.frombuffer(batch.payload, ">u4", batch.count), dtype=np.int64)
        )
    return np.arange(batch.first_seq, batch.first_seq + batch.count)


def keyed_events(batch: Batch, key_bytes: int, start: int, stop: int) -> tuple[Any, Seqs, NDArray[np.int64]]:
    """The events from start to stop that are long enough to have a key: keys, sequence numbers, positions.

    Keys of up to 8 bytes are an array of numbers, longer ones a list of bytes.
    """
    seqs = sequence_numbers(batch)[start:stop]
    positions = np.arange(start, stop)
    payload = np.frombuffer(sized_payload(batch), np.uint8)
    if batch.event_bytes:
        if batch.event_bytes < key_bytes:
            positions, seqs = positions[:0], seqs[:0]
        offsets = positions * batch.event_bytes
    else:
        sizes = np.frombuffer(payload, ">u4", batch.count).astype(np.int64)
        offsets = (U32_BYTES * batch.count + np.cumsum(sizes) - sizes)[start:stop]
        long_enough = sizes[start:stop] >= key_bytes
        positions, seqs, offsets = positions[long_enough], seqs[long_enough], offsets[long_enough]
    if key_bytes > NUMBER_BYTES:
        whole = payload.tobytes()
        return [whole[at : at + key_bytes] for at in offsets.tolist()], seqs, positions
    rows = np.zeros((len(offsets), NUMBER_BYTES), np.uint8)
    if batch.event_bytes and len(offsets):
        table = payload.reshape(batch.count, batch.event_bytes)
        rows[:, NUMBER_BYTES - key_bytes :] = table[start:stop, :key_bytes]
    elif len(offsets):
        rows[:, NUMBER_BYTES - key_bytes :] = payload[offsets[:, None] + np.arange(key_bytes)]
    return rows.view(">u8").reshape(-1).astype(np.uint64), seqs, positions


def may_be_one(first: Batch, second: Batch) -> bool:
    """Whether events of both may be in one batch."""
    return all(getattr(first, name) == getattr(second, name) for name in SAME_IN_JOINED)


def take_events(
    batches: Sequence[Batch], seqs: Sequence[Seqs], taken: Sequence[NDArray[np.bool_]]
) -> Batch | None:
    """One batch of the taken events of consecutive batches that may be one; None if none is taken.

    It covers the sequence numbers from the first batch's first to the last taken event, and has the time of
    the last batch.
    """
    numbers = np.concatenate([part[mask] for part, mask in zip(seqs, taken, strict=True)])
    if not len(numbers):
        return None
    first_seq, event_bytes = batches[0].first_seq, batches[0].event_bytes
    if event_bytes:
        tables = [
            np.frombuffer(sized_payload(batch), np.uint8).reshape(batch.count, event_bytes)[mask]
            for batch, mask in zip(batches, taken, strict=True)
        ]
        payload = np.concatenate(tables).tobytes()
    else:
        payload = _mixed(
            [
                event
                for batch, mask in zip(batches, taken, strict=True)
                for event, is_taken in zip(unpack_batch(batch), mask.tolist(), strict=True)
                if is_taken
            ]
        )
    reaches = np.diff(numbers, prepend=first_seq - 1)
    values = {field.name: getattr(batches[-1], field.name) for field in fields(Events)}
    values |= {"first_seq": first_seq, "count": len(numbers), "payload": payload}
    if (reaches == 1).all():
        return Events(**values)
    values["payload"] = reaches.astype(">u4").tobytes() + payload
    return SparseEvents(**values)


def _mixed(events: list[bytes]) -> bytes:
    sizes = np.array([len(event) for event in events], ">u4")
    return sizes.tobytes() + b"".join(events)
