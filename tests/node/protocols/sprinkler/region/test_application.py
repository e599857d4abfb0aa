"""Delivered batches: their records, and the events that an application gets (paper 2.1)."""

import struct

from node.core import machine as m
from node.core.deliveries import RecordKind
from node.protocols.sprinkler.messages import EventKind, Events, SparseEvents
from node.protocols.sprinkler.region.application import DeliveredEvent, events_of, record_of
from node.protocols.sprinkler.storage.batches import last_seq, tombstone


def sizes(*numbers):
    return struct.pack(f">{len(numbers)}I", *numbers)


def test_events_of_different_sizes_are_returned_one_by_one():
    batch = Events(EventKind.DATA, 0, 3, 11, 3, 0, 0, 0, sizes(1, 0, 3) + b"abbb")
    assert [event.data for event in events_of(batch)] == [b"a", b"", b"bbb"]
    assert record_of(batch, 13) == m.Record(RecordKind.DELIVERED, 3, 11, 3, 3, b"abbb")


def test_a_tombstone_is_one_event_that_ends_with_the_last_covered():
    batch = tombstone(3, 11, 1_000_010)
    assert list(events_of(batch)) == [DeliveredEvent(EventKind.TOMBSTONE, 3, 1_000_010, 1_000_000, b"")]
    assert record_of(batch, 1_000_010) == m.Record(RecordKind.TOMBSTONE, 3, 11, 1_000_000, 1_000_000)


def test_sparse_events_become_tombstones_and_events():
    batch = SparseEvents(EventKind.DATA, 0, 3, 11, 3, 1, 0, 0, sizes(3, 1, 2) + b"abc")
    assert last_seq(batch) == 16
    assert list(events_of(batch)) == [
        DeliveredEvent(EventKind.TOMBSTONE, 3, 12, 2, b""),
        DeliveredEvent(EventKind.DATA, 3, 13, 1, b"a"),
        DeliveredEvent(EventKind.DATA, 3, 14, 1, b"b"),
        DeliveredEvent(EventKind.TOMBSTONE, 3, 15, 1, b""),
        DeliveredEvent(EventKind.DATA, 3, 16, 1, b"c"),
    ]
    assert record_of(batch, 16) == m.Record(RecordKind.SPARSE, 3, 11, 3, 6, b"abc")
