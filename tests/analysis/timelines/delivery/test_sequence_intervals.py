"""Operations on intervals of sequence numbers equal those on sets of numbers."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analysis.timelines.delivery.sequence_intervals import (
    Batches,
    common,
    difference,
    digest,
    repeats,
    total,
    union,
)

BATCHES = st.lists(st.tuples(st.integers(1, 40), st.integers(1, 8), st.integers(0, 100)), max_size=12)


def batches(rows):
    return Batches(*(np.array([row[i] for row in rows], np.int64) for i in range(3)))


def earliest(rows):
    """Return the first arrival of each sequence number."""
    found = {}
    for first, count, t in rows:
        for seq in range(first, first + count):
            found[seq] = min(t, found.get(seq, t))
    return found


def numbers(runs):
    return [seq for a, b in zip(*runs, strict=True) for seq in range(a, b)]


@given(BATCHES)
def test_union_has_each_sequence_number_once_in_maximal_runs(rows):
    first, end = union(batches(rows))
    members = numbers((first, end))
    assert members == sorted(earliest(rows))
    assert all(b < a for a, b in zip(first[1:], end[:-1], strict=True))
    assert total((first, end)) == len(members)


@given(BATCHES, BATCHES)
def test_sets_of_sequence_numbers_are_compared(some, others):
    sets = union(batches(some)), union(batches(others))
    one, other = set(earliest(some)), set(earliest(others))
    assert numbers(common(*sets)) == sorted(one & other)
    assert numbers(difference(*sets)) == sorted(one - other)


@given(BATCHES)
def test_repeats_counts_what_an_earlier_batch_had(rows):
    wanted, had = [], set()
    for first, count, _ in rows:
        mine = set(range(first, first + count))
        wanted.append(len(mine & had))
        had |= mine
    assert repeats(batches(rows)).tolist() == wanted


def test_digests_distinguish_sets_of_the_same_size():
    one, other = (union(batches([(first, 5, 0)])) for first in (1, 2))
    assert digest(one) == digest(union(batches([(1, 3, 0), (4, 2, 9)])))
    assert digest(one) != digest(other)
