"""Recv: the newest batches of all streams within a bound, found by number (paper 3.2, Fig. 3)."""

from node.protocols.sprinkler.messages import Events
from node.protocols.sprinkler.region.recv import BATCH_OVERHEAD_BYTES, COPIED_BELOW_BYTES, Recv
from node.protocols.sprinkler.storage.batches import last_seq, tombstone

BATCH_BYTES = 100 + BATCH_OVERHEAD_BYTES


def batch(first_seq, stream=0, payload=bytes(100)):
    return Events(0, 0, stream, first_seq, 10, len(payload) // 10, 0, 0, payload)


def filled(batches, limit_bytes=1 << 20, streams=(0,)):
    received = Recv(streams, limit_bytes)
    for number in range(batches):
        received.add(batch(10 * number + 1), 10 * number + 10)
    return received


def firsts(found):
    return [each.first_seq for each in found]


def test_a_read_returns_at_most_the_limit_but_at_least_one_batch():
    received = filled(5)
    assert firsts(received.after(0, 0, 150)) == [1, 11]
    assert firsts(received.after(0, 0, 1)) == [1]


def test_beyond_the_bound_the_oldest_batches_are_discarded():
    received = filled(100, limit_bytes=10 * BATCH_BYTES)
    assert received.bytes == 10 * BATCH_BYTES
    assert firsts(received.after(0, 0, 1 << 20)) == list(range(901, 1000, 10))
    assert received.cnt(0) == 1000


def test_the_oldest_batches_of_any_stream_are_discarded():
    received = Recv((0, 1), 4 * BATCH_BYTES)
    received.add(batch(1, stream=1), 10)
    for number in range(4):
        received.add(batch(10 * number + 1), 10 * number + 10)
    assert received.after(1, 0, 1 << 20) == []
    assert received.cnt(1) == 10
    assert firsts(received.after(0, 0, 1 << 20)) == [1, 11, 21, 31]


def test_many_discarded_batches_leave_nothing_behind():
    received = filled(10_000, limit_bytes=5 * BATCH_BYTES)
    assert len(received._kept[0].batches) < 2000
    assert firsts(received.after(0, 99_960, 1 << 20)) == [99_961, 99_971, 99_981, 99_991]


def test_tombstones_count_against_the_bound_too():
    received = Recv((0,), 10 * BATCH_OVERHEAD_BYTES)
    for number in range(50):
        received.add(tombstone(0, 10 * number + 1, 10 * number + 10), 10 * number + 10)
    found = received.after(0, 0, 1 << 20)
    assert len(found) == 10
    assert last_seq(found[-1]) == 500


def test_small_parts_of_a_chunk_are_copied_and_large_ones_are_not():
    chunk = memoryview(bytes(10 * COPIED_BELOW_BYTES))
    received = Recv((0,), 1 << 20)
    received.add(batch(1, payload=chunk[:100]), 10)
    received.add(batch(11, payload=chunk[100 : 100 + 10 * (COPIED_BELOW_BYTES // 10 + 1)]), 20)
    small, large = received.after(0, 0, 1 << 20)
    assert type(small.payload) is bytes
    assert large.payload.obj is chunk.obj


def test_batches_beyond_the_bound_are_not_kept():
    received = filled(1, limit_bytes=50)
    assert received.after(0, 0, 1 << 20) == []
    assert received.bytes == 0


def test_without_possible_requests_nothing_is_kept():
    received = filled(5)
    received.keep(keeps=False)
    assert received.bytes == 0
    received.add(batch(51), 60)
    assert received.cnt(0) == 60
    received.keep(keeps=True)
    received.add(batch(61), 70)
    assert firsts(received.after(0, 0, 1 << 20)) == [61]
