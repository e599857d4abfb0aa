"""The indices of keys against a dictionary."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.protocols.sprinkler.messages import EventKind, Events, Predicate
from node.protocols.sprinkler.storage.history import EventHistory
from node.protocols.sprinkler.storage.key_index import FILLED, SEGMENT, LongKeyIndex, NumberIndex


class Dumb:
    """A reference index that handles one event at a time."""

    def __init__(self):
        self.last = {}

    def exchange(self, keys, seqs, floor):
        displaced = []
        for key, seq in zip(keys, seqs, strict=True):
            if self.last.get(key, 0) > floor:
                displaced.append((key, self.last[key]))
            self.last[key] = seq
        return sorted(displaced)


def numbers(keys):
    return np.array(keys, np.uint64)


def texts(keys):
    return [key.to_bytes(9) for key in keys]


KINDS = [(NumberIndex, numbers), (LongKeyIndex, texts)]


@pytest.mark.parametrize(("kind", "as_keys"), KINDS)
@given(
    calls=st.lists(
        st.lists(st.sampled_from([0, 1, 2, 3, 2**63, 2**64 - 1]) | st.integers(0, 2**64 - 1), max_size=30),
        max_size=8,
    )
)
def test_an_index_knows_the_last_event_of_each_key(kind, as_keys, calls):
    index, dumb, seq = kind(), Dumb(), 0
    for call in calls:
        seqs = np.arange(seq + 1, seq + 1 + len(call))
        seq += len(call)
        positions, displaced = index.exchange(as_keys(call), seqs)
        got = sorted(zip([call[at] for at in positions.tolist()], displaced.tolist(), strict=True))
        assert got == dumb.exchange(call, seqs.tolist(), 0)
    asked = [key for call in calls for key in call] + [77]
    assert index.last(as_keys(asked)).tolist() == [dumb.last.get(key, 0) for key in asked]


@pytest.mark.parametrize(("kind", "as_keys"), KINDS)
def test_an_index_of_many_keys_grows_and_loses_none(kind, as_keys):
    index, count = kind(), 60_000
    keys = [number * 0x9E3779B97F4A7C15 & (1 << 64) - 1 for number in range(count)]
    for start in range(0, count, 8000):
        part = keys[start : start + 8000]
        _, displaced = index.exchange(as_keys(part), np.arange(start + 1, start + 1 + len(part)))
        assert not len(displaced)
    assert index.last(as_keys(keys)).tolist() == list(range(1, count + 1))


def test_keys_that_differ_little_are_spread_over_the_segments():
    index, count = NumberIndex(), 200_000
    for start in range(0, count, 8000):
        index.exchange(np.arange(start, start + 8000, dtype=np.uint64), np.arange(start + 1, start + 8001))
    assert len(index) == count
    assert index._used.max() <= FILLED
    assert len(index._keys) / count < 4
    assert len(index._keys) % SEGMENT == 0


@pytest.mark.parametrize(("kind", "as_keys"), KINDS)
def test_entries_of_events_that_are_gone_make_room_for_new_ones(kind, as_keys):
    index, seq = kind(), 0
    for lap in range(60):
        keys = list(range(lap * 2000, lap * 2000 + 2000))
        index.exchange(as_keys(keys), np.arange(seq + 1, seq + 2001))
        seq += 2000
        index.floor = max(0, seq - 4000)
    size = len(index._keys) if kind is NumberIndex else len(index._last)
    assert size < 40_000  # of 120,000 keys, 4000 live


def test_events_that_are_gone_are_not_displaced_again():
    index = NumberIndex()
    index.exchange(numbers([5]), np.array([1]))
    index.floor = 1
    positions, displaced = index.exchange(numbers([5]), np.array([2]))
    assert not len(positions)
    assert not len(displaced)


@pytest.mark.parametrize("key_bytes", [1, 8, 9])
@pytest.mark.parametrize("mixed", [False, True], ids=["one size", "mixed sizes"])
def test_keys_of_any_length_collect(key_bytes, mixed):
    history = EventHistory([0], 1 << 20)
    prefix = b"\x01" * (key_bytes - 1)
    events = [prefix + bytes([number % 7]) + b"." * (1 + mixed * (number % 3)) for number in range(70)]
    payload = b"".join(events)
    if mixed:
        payload = b"".join(len(event).to_bytes(4) for event in events) + payload
    size = 0 if mixed else len(events[0])
    history.append(Events(EventKind.GC, Predicate.SAME_KEY, 0, 1, 70, size, key_bytes, 0, payload))
    history.commit(0, 70)
    while history.collect_some():
        pass
    assert history.streams[0].live == 7
    [found] = history.streams[0].after(0, 1 << 20)
    assert bytes(found.payload).endswith(b"".join(events[-7:]))
