"""Hypothesis strategies for every message of the codec, with telling numbers among all others."""

from hypothesis import strategies as st

from node.protocols.sprinkler import messages as wire
from tests.node.protocols.sprinkler.one_machine import NAMES

streams = st.one_of(st.integers(0, 1), st.integers(0, 2**32 - 1))
cnts = st.one_of(st.integers(0, 40), st.integers(0, 2**64 - 1))
seqs = st.one_of(st.integers(1, 40), st.integers(1, 2**64 - 1))
small = st.integers(1, 12)
numbers = st.one_of(st.integers(0, 5), st.integers(0, 2**64 - 1))
counters = st.lists(st.builds(wire.Counter, streams, cnts), max_size=4).map(tuple)
predicates = st.sampled_from(
    [(0, 0, 0)] + [(1, p, a) for p in (1, 2, 3, 4) for a in (0, 1, 4, 10, 2**64 - 1)]
)
hops = st.lists(st.builds(wire.Hop, streams, st.integers(0, 3)), max_size=6, unique=True).map(tuple)
replicas = st.lists(
    st.builds(wire.Replica, st.one_of(st.integers(0, 3), st.just(2**32 - 1)), st.integers(0, 2), numbers),
    max_size=4,
).map(tuple)

neighbours = st.builds(
    wire.Neighbour, st.one_of(st.integers(0, 20), st.just(wire.THE_PROXY)), st.integers(0, 2**32 - 1)
)


@st.composite
def batches(draw):
    kind, predicate, argument = draw(predicates)
    count, size = draw(small), draw(st.integers(1, 9))
    return wire.Events(
        kind, predicate, draw(streams), draw(seqs), count, size, argument, draw(numbers), bytes(count * size)
    )


@st.composite
def sparse_batches(draw):
    batch = draw(batches())
    reaches = [draw(st.sampled_from([1, 1, 2, 2**32 - 1])) for _ in range(batch.count)]
    payload = b"".join(reach.to_bytes(4, "big") for reach in reaches) + batch.payload
    return wire.SparseEvents(
        batch.kind, batch.predicate, batch.stream, batch.first_seq, batch.count, batch.event_bytes,
        batch.argument, batch.time_us, payload,
    )  # fmt: skip


@st.composite
def publications(draw):
    batch = draw(batches())
    return wire.Publish(
        batch.kind, batch.predicate, batch.stream, batch.first_seq, batch.count, batch.event_bytes,
        batch.argument, batch.payload,
    )  # fmt: skip


anything = st.one_of(
    st.builds(wire.Hello, st.sampled_from(wire.Role), numbers, st.sampled_from(NAMES)),
    st.builds(wire.Advertisement, counters),
    st.builds(wire.Paths, hops),
    st.builds(wire.Subscribe, streams, cnts),
    st.builds(wire.Unsubscribe, streams),
    batches(),
    sparse_batches(),
    st.builds(
        lambda stream, first, count: wire.Events(2, 0, stream, first, count, 0, 0, 0, b""),
        streams, seqs, st.one_of(small, st.just(2**32 - 1)),
    ),
    st.builds(
        lambda stream, first, epoch: wire.Events(3, 0, stream, first, 0, 0, epoch, 0, b""),
        streams, st.integers(1, 40), st.integers(1, 3),
    ),
    publications(),
    st.builds(wire.Published, streams, seqs, seqs, small),
    st.builds(wire.Refused, st.integers(0, 12), streams, cnts, st.just("because")),
    st.builds(wire.View, st.lists(neighbours, max_size=5).map(tuple)),
    st.builds(wire.Notify, counters),
    st.builds(wire.Request, streams, st.integers(1, 40), st.integers(40, 2**64 - 1)),
    st.builds(wire.Answered, streams, seqs, cnts, cnts),
    st.builds(wire.Publication, streams, seqs, small, seqs, numbers, st.sampled_from(NAMES)),
    st.builds(wire.Follow, numbers, counters),
    st.builds(wire.Stored, counters),
    st.builds(wire.Token, numbers),
    st.builds(wire.Configuration, numbers, numbers, replicas),
    st.builds(wire.Joined, numbers),
    st.builds(wire.Whole, numbers),
    st.builds(wire.Status, numbers, numbers, st.integers(0, 2)),
)  # fmt: skip
greetings = st.sampled_from(NAMES)
steps = st.lists(
    st.one_of(
        st.tuples(st.just("accept"), greetings, st.integers(0, 3)),
        st.tuples(st.just("dialled"), st.integers(0, 3), st.integers(0, 3)),
        st.tuples(st.just("messages"), st.integers(0, 5), st.lists(anything, min_size=1, max_size=5)),
        st.tuples(st.just("messages"), st.integers(0, 5), st.lists(anything, min_size=1, max_size=5)),
        st.tuples(st.just("messages"), st.integers(0, 5), st.lists(anything, min_size=1, max_size=5)),
        st.tuples(st.just("malformed"), st.integers(0, 5), st.just(0)),
        st.tuples(st.just("lost"), st.integers(0, 5), st.just(0)),
        st.tuples(st.just("time"), st.integers(0, 3_000_000), st.just(0)),
        st.tuples(st.just("disk"), st.booleans(), st.just(0)),
    ),
    max_size=40,
)
