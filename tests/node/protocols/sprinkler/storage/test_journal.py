"""The journal and its compaction compared with memory.

After any writes, commits, truncations and collections, a restart from any state of the disk restores the data
that was synced then, and the disk stays small.
"""

import copy
from collections import Counter
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.core import machine as m
from node.core.errors import StorageError
from node.protocols.sprinkler import messages as wire
from node.protocols.sprinkler.parameters import SprinklerParameters
from node.protocols.sprinkler.publishing.publications import Publications
from node.protocols.sprinkler.storage.batches import event_seqs, last_seq, pack_events, unpack_batch
from node.protocols.sprinkler.storage.compaction import record_bytes
from node.protocols.sprinkler.storage.history import EventHistory
from node.protocols.sprinkler.storage.journal import Journal
from node.sim.storage import SimulatedDisk

STREAMS = (0, 1)
SEGMENT_BYTES = 2_000
PARAMETERS = SprinklerParameters(segment_limit_bytes=SEGMENT_BYTES)


class Replica:
    """Hist, publications and a journal on a disk that syncs on request."""

    def __init__(self, disk: SimulatedDisk | None = None) -> None:
        self.disk = disk or SimulatedDisk()
        self.history = EventHistory(STREAMS, 1 << 30)
        self.publications = Publications(kept_batches=8, kept_publishers=4)
        self.waiting: list[m.Append | m.Rewrite] = []
        self.effects: list[list[m.Effect]] = []
        self.journal = Journal(self.history, self.publications, self.waiting.append, PARAMETERS)
        self.journal.restore(
            m.StoredSegment(number, tuple(messages)) for number, messages in self.disk.segments.items()
        )
        self.appended = 0
        self.time_us = 0
        self.published = Counter()

    def store(self, stream, events, predicate=wire.Predicate.NONE, argument=0):
        event_bytes, payload = pack_events(events)
        cnt = self.history.streams[stream].cnt
        self.time_us += 1000
        self.published[stream] += 1
        publication = wire.Publication(stream, cnt + 1, len(events), self.published[stream], 1, "r0/driver-0")
        self.publications.add(publication)
        self.journal.write(publication)
        kind = wire.EventKind.GC if predicate else wire.EventKind.DATA
        batch = wire.Events(
            kind, predicate, stream, cnt + 1, len(events), event_bytes, argument, self.time_us, payload
        )
        self.history.append(batch)
        self.journal.write(batch)

    def commit(self, stream):
        self.history.commit(stream, self.journal.stored(stream))
        self.history.collect_some()

    def truncate(self, stream):
        self.history.truncate(stream, self.history.streams[stream].committed)
        if stream == 0:
            self.publications.forget_beyond(stream, self.history.streams[stream].cnt)
        self.journal.truncate(stream)

    def settle(self):
        before = len(self.waiting)
        self.journal.flush()
        self.effects.append(self.waiting[before:])

    def sync(self, count=None):
        for operation in self.waiting[:count]:
            self.disk.execute(operation)
            self.appended += isinstance(operation, m.Append)
        del self.waiting[:count]
        self.journal.note_synced(self.appended)


def events_of(history, stream):
    """Return the live events by number, after all possible collection."""
    while history.collect_some():
        pass
    state, cnt, found = history.streams[stream], 0, {}
    while cnt < state.cnt:
        for batch in state.after(cnt, 1 << 20):
            found.update(zip(event_seqs(batch), unpack_batch(batch), strict=True))
            cnt = last_seq(batch)
    return found


def back(disk):
    """Return a replica that starts from a copy of the disk."""
    return Replica(copy.deepcopy(disk))


def check_back(replica):
    """Check that a restart restores all stored data; data truncated only in memory may return, too."""
    again = back(replica.disk)
    for stream, state in replica.history.streams.items():
        stored, restored = replica.journal.stored(stream), again.history.streams[stream]
        assert restored.committed <= state.committed <= stored <= restored.cnt
        original = copy.deepcopy(replica.history)
        original.truncate(stream, stored)
        again.history.truncate(stream, stored)
        again.history.commit(stream, state.committed)
        assert events_of(again.history, stream) == events_of(original, stream)
        for publication in replica.publications.beyond(stream, 0):
            if publication.first_seq + publication.count - 1 <= stored:
                publisher = (stream, "r0/driver-0", 1)
                assert again.publications.known(publisher, publication.first_request) == publication


steps = st.lists(
    st.one_of(
        st.tuples(st.just("store"), st.sampled_from(STREAMS), st.integers(1, 30), st.integers(0, 40)),
        st.tuples(st.just("before"), st.just(1), st.integers(0, 300), st.just(0)),
        st.tuples(st.just("last"), st.just(1), st.integers(0, 100), st.just(0)),
        st.tuples(st.just("same key"), st.just(0), st.integers(0, 20), st.just(0)),
        st.tuples(st.just("commit"), st.sampled_from(STREAMS), st.just(0), st.just(0)),
        st.tuples(st.just("truncate"), st.sampled_from(STREAMS), st.just(0), st.just(0)),
        st.tuples(st.just("settle"), st.just(0), st.just(0), st.just(0)),
        st.tuples(st.just("sync"), st.just(0), st.integers(1, 4), st.just(0)),
    ),
    min_size=1,
    max_size=120,
)


@given(steps)
def test_a_restart_from_any_state_of_the_disk_restores_all_synced_data(script):
    replica = Replica()
    for serial, (what, stream, count, size) in enumerate(script):
        if what == "store":
            key = (serial % 7).to_bytes(4, "big")
            replica.store(stream, [key + bytes([at]) * (size + at % 3) for at in range(count)])
        elif what == "before":
            replica.store(stream, [b"collect"], wire.Predicate.BEFORE, count)
        elif what == "last":
            replica.store(stream, [b"collect"], wire.Predicate.LAST, count)
        elif what == "same key":
            replica.store(stream, [(count % 7).to_bytes(4, "big") + b"collect"], wire.Predicate.SAME_KEY, 4)
        elif what == "commit":
            replica.commit(stream)
        elif what == "truncate":
            replica.truncate(stream)
        elif what == "settle":
            replica.settle()
        else:
            replica.sync(count)
            check_back(replica)
    replica.settle()
    replica.sync()
    check_back(replica)


def filled(replica, rounds, rule, rng):
    """Write many batches under a rule; yield after each."""
    for number in range(rounds):
        keys = [rng.randrange(50).to_bytes(4, "big") for _ in range(10)]
        replica.store(0, [key + bytes(20) for key in keys])
        if rule == "same key":
            replica.store(0, [key + b"new" for key in keys], wire.Predicate.SAME_KEY, 4)
        elif number % 5 == 4:
            replica.store(0, [b"collect"], wire.Predicate.LAST, 500)
        replica.settle()
        replica.sync()
        replica.commit(0)
        yield number


@pytest.mark.parametrize("rule", ["last", "same key"])
@pytest.mark.slow
def test_the_disk_stays_within_a_small_factor_of_the_live_data(rule):
    """An input compacts at most one segment."""
    replica = Replica()
    most = appended = rewritten = 0
    for number in filled(replica, 2000, rule, Random(1)):
        effects = replica.effects[-1]
        assert sum(isinstance(effect, m.Rewrite) for effect in effects) <= 1
        for effect in effects:
            size = sum(map(record_bytes, effect.messages))
            if isinstance(effect, m.Append):
                appended += size
            else:
                assert size <= SEGMENT_BYTES
                rewritten += size
        if number > 1000 and number % 50 == 0:
            most = max(most, bytes_on(replica.disk))
    live = sum(map(record_bytes, replica.history.streams[0].after(0, 1 << 30)))
    assert appended > 20 * most
    assert most < 3 * live + 8 * SEGMENT_BYTES, (most, live)
    assert 0 < rewritten < 2 * appended


def bytes_on(disk):
    return sum(record_bytes(message) for messages in disk.segments.values() for message in messages)


def test_everything_collected_ends_as_a_tombstone_of_a_few_bytes():
    replica = Replica()
    for _ in filled(replica, 500, "none", Random(3)):
        pass
    replica.store(0, [b"collect"], wire.Predicate.BEFORE, replica.history.streams[0].cnt + 1)
    for _ in range(300):
        replica.settle()
        replica.sync()
        replica.commit(0)
        replica.store(1, [b"other stream" * 20])
    old = [size for number, size in sizes(replica.disk) if number < 50]
    assert sum(old) < 4 * SEGMENT_BYTES
    check_back(replica)


def sizes(disk):
    return [(number, sum(map(record_bytes, messages))) for number, messages in disk.segments.items()]


def test_the_last_configuration_is_restored_however_old():
    replica = Replica()
    replica.journal.write(wire.Configuration(7, 3, ()))
    for _ in filled(replica, 500, "last", Random(4)):
        pass
    assert back(replica.disk).journal.configuration == wire.Configuration(7, 3, ())


def test_a_stream_counts_as_complete_on_disk_only_after_its_events():
    """Stop the disk in the middle of an append, so that only its first messages are stored."""
    replica = Replica()
    replica.store(0, [b"taken back"])
    replica.journal.write(wire.Whole(3))
    replica.settle()
    (append,) = replica.waiting
    assert isinstance(append.messages[-1], wire.Whole)
    assert sum(isinstance(message, wire.Whole) for message in append.messages) == 1


def test_a_replica_that_starts_over_does_not_restore_its_former_state():
    replica = Replica()
    for _ in filled(replica, 100, "last", Random(5)):
        pass
    replica.history = EventHistory(STREAMS, 1 << 30)
    replica.journal.start_over(replica.history)
    replica.settle()
    replica.store(0, [b"first of the new"])
    replica.settle()
    replica.sync()
    assert replica.journal.stored(0) == 1
    again = back(replica.disk)
    assert events_of(again.history, 0) == {1: b"first of the new"}


def test_a_truncation_known_early_to_compaction_leaves_no_gap():
    replica = Replica()
    for _ in range(3):
        replica.store(1, [bytes(100)] * 30)  # a segment each
        replica.settle()
    replica.truncate(1)
    for _ in range(6):
        replica.store(0, [bytes(500)])
        replica.settle()
    assert any(isinstance(effect, m.Rewrite) for effects in replica.effects for effect in effects)
    for _ in range(len(replica.waiting)):
        replica.sync(1)
        check_back(replica)
    assert back(replica.disk).history.streams[1].cnt == 0


def test_truncated_events_do_not_count_as_stored_after_their_sync():
    replica = Replica()
    replica.store(1, [b"a", b"b", b"c"])
    replica.settle()
    replica.truncate(1)
    assert replica.journal.note_synced(1) == []
    assert replica.journal.stored(1) == 0


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ((wire.Events(0, 0, 1, 5, 1, 1, 0, 0, b"x"),), "events 1 to 4 of stream 1 are missing"),
        ((wire.Events(0, 0, 9, 1, 1, 1, 0, 0, b"x"),), "stream 9"),
        ((wire.Token(1),), "Token: not a proxy's log"),
    ],
)
def test_an_inconsistent_log_is_an_error(messages, reason):
    disk = SimulatedDisk({3: list(messages)})
    with pytest.raises(StorageError, match=reason):
        Replica(disk)


def test_a_slow_or_failed_disk_accepts_no_more_events():
    replica = Replica()
    assert replica.journal.has_room
    replica.journal.note_failed()
    assert not replica.journal.has_room
    replica.journal.note_synced(0)
    assert replica.journal.has_room
    for _ in range(70):
        replica.store(1, [bytes(1_000_000)])
        replica.settle()
    assert not replica.journal.has_room
    replica.sync()
    assert replica.journal.has_room


def test_marks_record_commits():
    replica = Replica()
    replica.store(1, [b"a"])
    replica.settle()
    replica.sync()
    replica.commit(1)
    replica.store(1, [b"b"])
    replica.settle()
    replica.sync()
    again = back(replica.disk)
    assert (again.history.streams[1].cnt, again.history.streams[1].committed) == (2, 1)
    assert not any(isinstance(message, wire.Follow) for message in replica.disk.segments[1])
    assert any(isinstance(message, wire.Stored) for message in replica.disk.segments[1])
