"""The limit of a history is one of memory: its counter agrees with Python's use, for batches of any size."""

import gc
import tracemalloc

import numpy as np
import pytest

from node.core.epochs import first_seq_of_epoch
from node.protocols.sprinkler.messages import EventKind, Events, Predicate
from node.protocols.sprinkler.storage.history import EventHistory

pytestmark = pytest.mark.slow

LIMIT_BYTES = 2 << 20
CHUNK_BYTES = 64 << 10
NOW_US = 10**12


def fill(history, count, size, *, collects=None, distinct=1, limit_batches=10**6):
    """Store batches of `count` events as received (views of larger chunks) until there is no room."""
    seq, rng = first_seq_of_epoch(2), np.random.default_rng(3)
    history.streams[0].cnt = seq - 1
    chunk = memoryview(bytearray(max(CHUNK_BYTES, count * size)))
    for number in range(limit_batches):
        start = (number * count * size) % (len(chunk) - count * size + 1)
        payload = chunk[start : start + count * size]
        if collects is not None:
            keys = rng.integers(0, distinct, count).tolist()
            payload = memoryview(b"".join(b"%0*d" % (size, key) for key in keys))
        kind, predicate, argument = (
            (EventKind.GC, *collects) if collects else (EventKind.DATA, Predicate.NONE, 0)
        )
        time_us = NOW_US + number * 1000
        batch = Events(kind, predicate, 0, seq, count, size, argument, time_us, payload)
        if not history.has_room(batch):
            return number
        history.append(batch)
        seq += count
        history.commit(0, seq - 1)
        history.collect_some()
    return limit_batches


def measured(count, size, **given):
    """Return the number of stored batches, and the memory in use: as counted, and as measured."""
    fill(EventHistory([0], LIMIT_BYTES), count, size, **{**given, "limit_batches": 2})  # what is made once
    gc.collect()
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        history = EventHistory([0], LIMIT_BYTES)
        batches = fill(history, count, size, **given)
        gc.collect()
        after, _ = tracemalloc.get_traced_memory()
        return batches, history.used_bytes, after - before
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(("count", "size"), [(1, 10), (1500, 10)])
def test_a_full_history_uses_its_limit_and_not_more(count, size):
    batches, counted, used = measured(count, size)
    assert batches > 100
    assert counted > 0.98 * LIMIT_BYTES, "it is full"
    assert 0.85 * LIMIT_BYTES < used < 1.05 * LIMIT_BYTES


def test_the_remains_of_collected_events_are_counted():
    _, counted, used = measured(20, 10, collects=(Predicate.LAST, 40_000), limit_batches=4_000)
    assert 0.8 * counted < used < 1.05 * counted + CHUNK_BYTES


def test_keys_are_counted():
    size = 24
    _, counted, used = measured(200, size, collects=(Predicate.SAME_KEY, size), distinct=10**8)
    assert counted > 0.8 * LIMIT_BYTES, "an index of keys grows by steps"
    assert 0.6 * LIMIT_BYTES < used < 1.1 * LIMIT_BYTES
