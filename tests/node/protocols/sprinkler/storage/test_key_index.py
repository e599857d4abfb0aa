"""Keys of any length, and the memory of their index."""

import numpy as np
import pytest

from node.protocols.sprinkler.messages import EventKind, Events, Predicate
from node.protocols.sprinkler.storage.history import EventHistory
from node.protocols.sprinkler.storage.key_index import KeyIndex


def test_entries_of_events_that_are_gone_make_room_and_are_not_displaced_again():
    index, seq = KeyIndex(), 0
    for lap in range(60):
        keys = [number.to_bytes(4) for number in range(lap * 2000, lap * 2000 + 2000)]
        assert index.exchange(keys, np.arange(seq + 1, seq + 2001)) == ([], [])
        seq += 2000
        index.floor = max(0, seq - 4000)
    assert len(index) < 40_000  # of 120,000 keys, 4000 live
    assert index.exchange([(0).to_bytes(4), keys[0]], np.array([seq + 1, seq + 2])) == ([1], [seq - 1999])


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
