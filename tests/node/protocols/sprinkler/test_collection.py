"""Collection in Hist against a dumb evaluator: a list of single events, and section 2.1's definitions."""

from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st

from node.protocols.sprinkler.batches import (
    event_seqs,
    last_seq,
    pack_events,
    unpack_batch,
)
from node.protocols.sprinkler.history import History
from node.protocols.sprinkler.messages import CODEC, Events, Kind, Predicate

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
        """g.P(e) and e before g (paper 2.1)."""
        if self.kind != Kind.GC or other.seq >= self.seq:
            return False
        if self.predicate == Predicate.BEFORE:
            return other.seq < self.argument
        if self.predicate == Predicate.LAST:
            return other.seq < self.seq - self.argument
        if self.predicate == Predicate.OLDER_THAN:
            return other.time_us < self.time_us - self.argument
        return (
            (other.kind == Kind.DATA or other.predicate == Predicate.SAME_KEY)
            and len(other.payload) >= self.argument
            and other.payload[: self.argument] == self.payload[: self.argument]
        )


@dataclass
class Dumb:
    """filter(Hist) by definition."""

    events: list[Event] = field(default_factory=list)
    committed: int = 0

    def collected(self) -> set[int]:
        collectors = [event for event in self.events[: self.committed] if event.kind == Kind.GC]
        return {event.seq for event in self.events for g in collectors if g.matches(event)}


payloads = st.builds(lambda key, rest: key + rest, st.sampled_from(KEYS), st.binary(max_size=2))
short = st.lists(st.binary(max_size=3), min_size=1, max_size=6)
prefixes = st.sampled_from([(Predicate.BEFORE, 30), (Predicate.LAST, 9), (Predicate.LAST, 0)]) | st.tuples(
    st.just(Predicate.OLDER_THAN), st.integers(0, 12)
)
published = st.one_of(
    st.tuples(st.just((Kind.GC, Predicate.SAME_KEY, 2)), st.lists(payloads, min_size=1, max_size=12)),
    st.tuples(st.just((Kind.DATA, Predicate.NONE, 0)), st.lists(payloads, min_size=1, max_size=12) | short),
)
aged = st.tuples(prefixes.map(lambda rule: (Kind.GC, *rule)), short)
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
    """One step on both."""
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


def check_reader(stream, dumb, cnt, limit_bytes, beyond):
    """A reader gets every event, or a tombstone if it is collected; in order, and without holes."""
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


@settings(max_examples=100, deadline=None)
@given(steps)
def test_readers_get_each_event_or_a_tombstone_that_a_committed_event_accounts_for(script):
    history, dumb, clock = History([STREAM], 1 << 30), Dumb(), [0]
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
        st.tuples(st.just("publish"), st.tuples(st.just((Kind.GC, Predicate.LAST, 20)), short), st.just(1)),
        st.tuples(st.just("commit"), st.integers(1, 20)),
        st.tuples(st.just("collect")),
    ),
    max_size=30,
)


@settings(max_examples=100, deadline=None)
@given(exact)
def test_what_lives_is_exactly_what_no_committed_event_matches(script):
    history, dumb, clock = History([STREAM], 1 << 30), Dumb(), [0]
    for step in script:
        apply(history, dumb, step, clock)
    finish(history)
    stream = history.streams[STREAM]
    assert stream.live == len(dumb.events) - len(dumb.collected())
    held = [batch for batch in stream.after(0, 1 << 30) if batch.kind != Kind.TOMBSTONE]
    assert stream.stored >= sum(batch.count for batch in held) >= stream.live
