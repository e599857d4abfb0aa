"""Memory of Hist: its limit, and what it retains of a batch."""

from node.protocols.sprinkler.messages import EventKind, Events, Predicate
from node.protocols.sprinkler.storage.batch_list import BATCH_BYTES
from node.protocols.sprinkler.storage.batches import epoch_mark, tombstone
from node.protocols.sprinkler.storage.history import EventHistory


def test_small_payloads_do_not_keep_the_chunk_that_they_came_in():
    chunk = bytes(1 << 20)
    history = EventHistory([0], limit_bytes=1 << 30)
    history.append(Events(EventKind.DATA, 0, 0, 1, 10, 10, 0, 0, memoryview(chunk)[:100]))
    (batch,) = history.streams[0].after(0, 1000)
    assert isinstance(batch.payload, bytes)


def test_room_is_what_the_limit_leaves():
    history = EventHistory([0], limit_bytes=10 + 2 * BATCH_BYTES)
    history.append(Events(EventKind.DATA, 0, 0, 1, 1, 6, 0, 0, b"sixsix"))
    assert history.has_room(Events(EventKind.DATA, 0, 0, 2, 1, 4, 0, 0, b"four"))
    assert not history.has_room(Events(EventKind.DATA, 0, 0, 2, 1, 5, 0, 0, b"fives"))


def test_discarded_events_need_no_room():
    history = EventHistory([0], limit_bytes=1)
    assert history.has_room(tombstone(0, 1, 5))
    assert history.has_room(epoch_mark(0, 1, 1))


def test_a_full_history_has_room_for_collecting_events_of_any_region():
    history = EventHistory([0, 1], limit_bytes=16 * (BATCH_BYTES + 10))
    for seq in range(1, 17):
        history.append(Events(EventKind.DATA, 0, 0, seq, 1, 10, 0, 0, bytes(10)))
    for stream in (0, 1):
        assert not history.has_room(
            Events(EventKind.DATA, Predicate.NONE, stream, 17, 1, 10, 0, 0, bytes(10))
        )
        assert history.has_room(Events(EventKind.GC, Predicate.LAST, stream, 17, 1, 10, 5, 0, bytes(10)))
