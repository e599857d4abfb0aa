"""Hist against a dumb one that keeps every event on its own."""

from hypothesis import given
from hypothesis import strategies as st

from node.protocols.sprinkler.messages import CODEC, EventKind, Events, Predicate
from node.protocols.sprinkler.storage.batch_list import BATCH_BYTES
from node.protocols.sprinkler.storage.batches import epoch_mark, pack_events, tombstone, unpack_events
from node.protocols.sprinkler.storage.history import EventHistory

batches = st.lists(st.lists(st.binary(max_size=12), min_size=1, max_size=8), max_size=30)


def stored(events_of_batches):
    history, first_seq = EventHistory([3], limit_bytes=1 << 20), 1
    for events in events_of_batches:
        event_bytes, payload = pack_events(events)
        history.append(
            Events(EventKind.DATA, 0, 3, first_seq, len(events), event_bytes, 0, 0, memoryview(payload))
        )
        first_seq += len(events)
    return history


@given(batches, st.integers(0, 300), st.integers(1, 400))
def test_a_cursor_reads_everything_after_it_once_and_in_order(events_of_batches, cnt, limit_bytes):
    every_event = [event for events in events_of_batches for event in events]
    stream = stored(events_of_batches).streams[3]
    assert stream.cnt == len(every_event)
    cursor = min(cnt, stream.cnt)
    got = []
    while found := stream.after(cursor, limit_bytes):
        assert len(found) == 1 or sum(map(CODEC.size_bytes, found)) <= limit_bytes
        for batch in found:
            assert batch.first_seq == cursor + 1
            events = unpack_events(batch.count, batch.event_bytes, batch.payload)
            cursor += len(events)
            got += events
    assert got == every_event[min(cnt, len(every_event)) :]


def test_a_cursor_ahead_of_the_history_waits():
    assert stored([[b"a", b"b"]]).streams[3].after(7, 1000) == []


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


def test_events_that_collect_have_room_in_a_full_history_whosever_they_are():
    history = EventHistory([0, 1], limit_bytes=16 * (BATCH_BYTES + 10))
    for seq in range(1, 17):
        history.append(Events(EventKind.DATA, 0, 0, seq, 1, 10, 0, 0, bytes(10)))
    for stream in (0, 1):
        assert not history.has_room(
            Events(EventKind.DATA, Predicate.NONE, stream, 17, 1, 10, 0, 0, bytes(10))
        )
        assert history.has_room(Events(EventKind.GC, Predicate.LAST, stream, 17, 1, 10, 5, 0, bytes(10)))
