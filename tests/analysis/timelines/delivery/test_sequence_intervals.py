"""Pieces say of every event what looking at every event by itself says."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analysis.timelines.delivery.sequence_intervals import (
    NEVER,
    Batches,
    common,
    cut_stream,
    digest,
    repeats,
    total,
    union,
)

BATCHES = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 8), st.integers(0, 100)), max_size=12)


def batches(rows):
    return Batches(*(np.array([row[i] for row in rows], np.int64) for i in range(3)))


def earliest(rows):
    """Per sequence number, when it first came."""
    found = {}
    for first, count, t in rows:
        for seq in range(first, first + count):
            found[seq] = min(t, found.get(seq, NEVER))
    return found


@given(BATCHES, BATCHES, BATCHES)
def test_every_event_has_the_times_of_its_piece(published, at_a, at_b):
    cut_ = cut_stream(batches(published), {"a": batches(at_a), "b": batches(at_b)})
    found = {
        seq: (int(cut_.published_ns[i]), int(cut_.at("a")[i]), int(cut_.at("b")[i]))
        for i in range(len(cut_.count))
        for seq in range(cut_.first_seq[i], cut_.first_seq[i] + cut_.count[i])
    }
    sources = [earliest(rows) for rows in (published, at_a, at_b)]
    wanted = {seq: tuple(source.get(seq, NEVER) for source in sources) for seq in set().union(*sources)}
    assert found == wanted


@given(BATCHES)
def test_union_holds_each_sequence_number_once_in_maximal_runs(rows):
    first, end = union(batches(rows))
    members = [seq for a, b in zip(first, end, strict=True) for seq in range(a, b)]
    assert members == sorted(earliest(rows))
    assert all(b < a for a, b in zip(first[1:], end[:-1], strict=True))
    assert total((first, end)) == len(members)


@given(BATCHES, BATCHES)
def test_common_holds_the_sequence_numbers_of_both(some, others):
    found = common(union(batches(some)), union(batches(others)))
    assert total(found) == len(set(earliest(some)) & set(earliest(others)))


@given(BATCHES)
def test_repeats_counts_what_an_earlier_batch_had(rows):
    wanted, had = [], set()
    for first, count, _ in rows:
        mine = set(range(first, first + count))
        wanted.append(len(mine & had))
        had |= mine
    assert repeats(batches(rows)).tolist() == wanted


def test_digests_tell_sets_of_the_same_size_apart():
    one, other = (union(batches([(first, 5, 0)])) for first in (1, 2))
    assert digest(one) == digest(union(batches([(1, 3, 0), (4, 2, 9)])))
    assert digest(one) != digest(other)
