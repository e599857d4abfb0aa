"""Collection in Hist compared with a simple evaluator: a list of single events, and section 2.1's
definitions.
"""

import tracemalloc
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from node.protocols.sprinkler.messages import CODEC, EventKind, Events, Predicate, Publish, SparseEvents
from node.protocols.sprinkler.storage.batches import (
    cut_after,
    cut_before,
    event_seqs,
    last_seq,
    pack_events,
    tombstone,
    unpack_batch,
)
from node.protocols.sprinkler.storage.history import EventHistory

STREAM = 3
KEYS = [b"aa", b"bb", b"cc", b"dd"]


@dataclass
class Event:
    seq: int
    kind: int
    predicate: int
    argument: int
    time_us: int
    payload: bytes

    def matches(self, other: "Event") -> bool:
        """Evaluate g.P(e) and e before g (paper 2.1)."""
        if self.kind != EventKind.GC or other.seq >= self.seq:
            return False
        if self.predicate == Predicate.BEFORE:
            return other.seq < self.argument
        if self.predicate == Predicate.LAST:
            return other.seq < self.seq - self.argument
        if self.predicate == Predicate.OLDER_THAN:
            return other.time_us < self.time_us - self.argument
        return (
            (other.kind == EventKind.DATA or other.predicate == Predicate.SAME_KEY)
            and len(other.payload) >= self.argument
            and other.payload[: self.argument] == self.payload[: self.argument]
        )


@dataclass
class Dumb:
    """filter(Hist) by definition."""

    events: list[Event] = field(default_factory=list)
    committed: int = 0

    def collected(self) -> set[int]:
        collectors = [event for event in self.events[: self.committed] if event.kind == EventKind.GC]
        return {event.seq for event in self.events for g in collectors if g.matches(event)}


payloads = st.builds(lambda key, rest: key + rest, st.sampled_from(KEYS), st.binary(max_size=2))
short = st.lists(st.binary(max_size=3), min_size=1, max_size=6)
prefixes = st.sampled_from([(Predicate.BEFORE, 30), (Predicate.LAST, 9), (Predicate.LAST, 0)]) | st.tuples(
    st.just(Predicate.OLDER_THAN), st.integers(0, 12)
)
published = st.one_of(
    st.tuples(st.just((EventKind.GC, Predicate.SAME_KEY, 2)), st.lists(payloads, min_size=1, max_size=12)),
    st.tuples(
        st.just((EventKind.DATA, Predicate.NONE, 0)), st.lists(payloads, min_size=1, max_size=12) | short
    ),
)
aged = st.tuples(prefixes.map(lambda rule: (EventKind.GC, *rule)), short)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), published | aged, st.integers(0, 5)),
        st.tuples(st.just("publish"), published, st.integers(0, 5)),
        st.tuples(st.just("commit"), st.integers(0, 12)),
        st.tuples(st.just("collect")),
        st.tuples(st.just("truncate"), st.integers(0, 30)),
        st.tuples(st.just("read"), st.integers(0, 200), st.integers(1, 400), st.integers(0, 40)),
    ),
    max_size=40,
)


def apply(history, dumb, step, clock):
    """Apply one step to both."""
    stream = history.streams[STREAM]
    if step[0] == "publish":
        ((kind, predicate, argument), events), pause_us = step[1:]
        clock[0] += pause_us
        size, payload = pack_events(events)
        first = stream.cnt + 1
        batch = Events(kind, predicate, STREAM, first, len(events), size, argument, clock[0], payload)
        history.append(batch)
        for offset, event in enumerate(events):
            dumb.events.append(Event(first + offset, kind, predicate, argument, clock[0], event))
    elif step[0] == "commit":
        dumb.committed = min(dumb.committed + step[1], len(dumb.events))
        history.commit(STREAM, dumb.committed)
    elif step[0] == "collect":
        history.collect_some()
    elif step[0] == "truncate":
        cnt = min(dumb.committed + step[1], len(dumb.events))
        history.truncate(STREAM, cnt)
        del dumb.events[cnt:]
    else:
        check_reader(stream, dumb, *step[1:])
    history.check()


def check_reader(stream, dumb, cnt, limit_bytes, beyond):
    """Check that a reader gets every event, or a tombstone if it is collected; in order, without gaps."""
    cnt = min(cnt, stream.cnt)
    upto = min(dumb.committed + beyond, stream.cnt)
    collected = dumb.collected()
    while found := stream.after(cnt, limit_bytes, upto):
        assert len(found) == 1 or sum(map(CODEC.size_bytes, found)) <= limit_bytes
        for batch in found:
            batch.check()
            assert batch.first_seq == cnt + 1
            given = dict(zip(event_seqs(batch), unpack_batch(batch), strict=True))
            for seq in range(cnt + 1, last_seq(batch) + 1):
                event = dumb.events[seq - 1]
                if seq in given:
                    assert given[seq] == event.payload
                    assert (batch.kind, batch.predicate, batch.argument) == (
                        event.kind,
                        event.predicate,
                        event.argument,
                    )
                else:
                    assert seq in collected
            cnt = last_seq(batch)
            assert cnt <= upto
    assert cnt >= upto


@given(steps)
def test_readers_get_each_event_or_a_tombstone_that_a_committed_event_accounts_for(script):
    history, dumb, clock = EventHistory([STREAM], 1 << 30), Dumb(), [0]
    for step in script:
        apply(history, dumb, step, clock)
    stream = history.streams[STREAM]
    assert stream.cnt == len(dumb.events)
    assert stream.committed == dumb.committed
    while history.collect_some():
        pass
    for cnt in range(0, stream.cnt + 1, 3):
        check_reader(stream, dumb, cnt, 1 << 20, 1 << 20)


def finish(history):
    while history.collect_some():
        pass


# Without predicates on time, whose joined batches may stay longer, the count is exact.
exact = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), published, st.just(1)),
        st.tuples(
            st.just("publish"), st.tuples(st.just((EventKind.GC, Predicate.LAST, 20)), short), st.just(1)
        ),
        st.tuples(st.just("commit"), st.integers(1, 20)),
        st.tuples(st.just("collect")),
    ),
    max_size=30,
)


@given(exact)
def test_live_events_are_those_that_no_committed_predicate_matches(script):
    history, dumb, clock = EventHistory([STREAM], 1 << 30), Dumb(), [0]
    for step in script:
        apply(history, dumb, step, clock)
    finish(history)
    stream = history.streams[STREAM]
    assert stream.live == len(dumb.events) - len(dumb.collected())
    held = [batch for batch in stream.after(0, 1 << 30) if batch.kind != EventKind.TOMBSTONE]
    assert stream.stored >= sum(batch.count for batch in held) >= stream.live


def keyed(history, events, argument=2):
    size, payload = pack_events(events)
    first = history.streams[STREAM].cnt + 1
    history.append(
        Events(EventKind.GC, Predicate.SAME_KEY, STREAM, first, len(events), size, argument, 0, payload)
    )


@pytest.mark.parametrize(
    ("events", "predicate", "argument", "why"),
    [
        ([b"aab", b"bbc"], Predicate.SAME_KEY, 2, None),
        ([b"aab"], Predicate.SAME_KEY, 1, "undo"),
        ([b"aab"], Predicate.SAME_KEY, 3, "undo"),
        ([b"aab", b"a"], Predicate.SAME_KEY, 2, "no key"),
        ([b"a", b"b"], Predicate.SAME_KEY, 2, "no key"),
        ([b"aab"], Predicate.SAME_KEY, 0, "1 to 255"),
        ([bytes(300)], Predicate.SAME_KEY, 256, "1 to 255"),
        ([b""], Predicate.BEFORE, 1 << 40, None),
        ([b""], Predicate.LAST, 1 << 40, None),
        ([b""], Predicate.OLDER_THAN, 1 << 40, None),
        ([b""], Predicate.NONE, 0, None),
    ],
)
def test_an_event_that_would_undo_a_collection_by_key_is_refused(events, predicate, argument, why):
    history = EventHistory([STREAM], 1 << 20)
    keyed(history, [b"aab"])
    refused = history.refusal(publication(events, predicate, argument))
    assert refused is None if why is None else why in refused


def publication(events, predicate, argument):
    size, payload = pack_events(events)
    kind = EventKind.GC if predicate else EventKind.DATA
    return Publish(kind, predicate, STREAM, 1, len(events), size, argument, payload)


def test_the_length_of_keys_is_free_again_when_those_events_were_truncated():
    history = EventHistory([STREAM], 1 << 20)
    keyed(history, [b"aab"])
    history.truncate(STREAM, 0)
    assert history.refusal(publication([b"aab"], Predicate.SAME_KEY, 3)) is None


def test_events_of_predicates_on_age_have_no_key():
    """Check it, because otherwise the collected events would return with the key's events (finality, 2.1)."""
    history = EventHistory([STREAM], 1 << 20)
    size, payload = pack_events([b"aa"])
    history.append(Events(EventKind.GC, Predicate.LAST, STREAM, 1, 1, size, 5, 0, payload))
    keyed(history, [b"aa", b"aa"])
    history.commit(STREAM, 3)
    finish(history)
    assert history.streams[STREAM].live == 2


def test_a_late_subscriber_gets_a_merged_tombstone_and_then_live_events():
    history = EventHistory([STREAM], 1 << 20)
    for _ in range(50):
        first = history.streams[STREAM].cnt + 1
        history.append(Events(EventKind.GC, Predicate.LAST, STREAM, first, 10, 4, 25, 0, bytes(40)))
        history.commit(STREAM, first + 9)
        history.collect_some()
    found = history.streams[STREAM].after(0, 1 << 20)
    assert found[0] == tombstone(STREAM, 1, 474)
    assert [(batch.kind, batch.first_seq, batch.count) for batch in found[1:]] == [
        (EventKind.GC, 475, 6),
        (EventKind.GC, 481, 10),
        (EventKind.GC, 491, 10),
    ]


@given(st.lists(st.tuples(st.integers(1, 4), st.binary(max_size=3)), min_size=1, max_size=9), st.data())
def test_cutting_a_sparse_batch_loses_no_event(rows, data):
    size, payload = pack_events([event for _, event in rows])
    table = b"".join(reach.to_bytes(4) for reach, _ in rows)
    batch = SparseEvents(EventKind.DATA, 0, STREAM, 5, len(rows), size, 0, 0, table + payload)
    batch.check()
    events = list(zip(event_seqs(batch), unpack_batch(batch), strict=True))
    cnt = data.draw(st.integers(5, max(5, last_seq(batch) - 1)))
    if cnt < last_seq(batch):
        head, tail = cut_after(batch, cnt), cut_before(batch, cnt)
        tail.check()
        assert (head.first_seq, tail.first_seq, last_seq(tail)) == (5, cnt + 1, last_seq(batch))
        parts = [*zip(event_seqs(head), unpack_batch(head), strict=True)]
        parts += zip(event_seqs(tail), unpack_batch(tail), strict=True)
        assert parts == events


def test_memory_is_bounded_by_live_events():
    """Append 2 million events of 100 bytes and keep the last 10,000: 1 MB instead of 200."""
    history, payload = EventHistory([STREAM], 1 << 40), bytes(65_500)
    stream = history.streams[STREAM]
    tracemalloc.start()
    while stream.cnt < 2_000_000:
        history.append(
            Events(EventKind.GC, Predicate.LAST, STREAM, stream.cnt + 1, 655, 100, 10_000, 0, payload[:])
        )
        assert history.bytes < 1_300_000
        history.commit(STREAM, stream.cnt)
        history.collect_some()
    kept, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert stream.live == 10_001
    assert kept < 2_000_000


def test_memory_of_millions_of_keys_follows_the_live_events():
    """Repeat each key after all others many times: only one event of each lives."""
    history = EventHistory([STREAM], 1 << 40)
    stream, batch = history.streams[STREAM], 5000
    for lap in range(8):
        for first_key in range(0, 40_000, batch):
            events = [key.to_bytes(2) + bytes(8) for key in range(first_key, first_key + batch)]
            keyed(history, events)
            history.commit(STREAM, stream.cnt)
            history.collect_some()
            assert stream.stored <= 2 * 40_000 + 4 * batch, lap
    finish(history)
    assert stream.live == 40_000
    assert stream.stored <= 80_000


def test_one_call_processes_a_bounded_part_of_a_backlog():
    history = EventHistory([STREAM], 1 << 40)
    stream = history.streams[STREAM]
    for _ in range(400):
        keyed(history, [b"aa" + bytes(8)] * 1000)
        history.commit(STREAM, stream.cnt)
    finish(history)
    assert stream.stored <= 2000
    for _ in range(1000):
        first = stream.cnt + 1
        history.append(Events(EventKind.DATA, Predicate.NONE, STREAM, first, 10, 10, 0, 0, bytes(100)))
    last = stream.cnt + 1
    history.append(Events(EventKind.GC, Predicate.BEFORE, STREAM, last, 1, 1, last, 0, b"x"))
    history.commit(STREAM, stream.cnt)
    assert len(stream.after(0, 1 << 30)) == 2  # readers see it collected at once
    stored = stream.stored
    assert history.collect_some()
    assert 0 < stored - stream.stored <= 700  # what it frees in one call
    finish(history)
    assert stream.stored == 1
