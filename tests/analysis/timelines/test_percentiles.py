"""Weighted percentiles equal those of all events listed separately."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from analysis.timelines.percentiles import grouped, weighted

PAIRS = st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 20)), max_size=30)


def dumb(values, weights, percent):
    """Return the nearest rank over all events, listed separately."""
    events = sorted(v for v, w in zip(values, weights, strict=True) for _ in range(w))
    return events[math.ceil(percent * len(events) / 100) - 1] if events else None


@given(PAIRS, st.sampled_from([1, 50, 95, 99, 100]))
def test_equals_the_nearest_rank_over_every_event(pairs, percent):
    values, weights = (np.array([pair[i] for pair in pairs], np.int64) for i in range(2))
    assert weighted(values, weights, percent) == dumb(values, weights, percent)


@settings(max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 1000), st.integers(0, 20)), max_size=40))
def test_each_group_is_ranked_by_itself(rows):
    groups, values, weights = (np.array([row[i] for row in rows], np.int64) for i in range(3))
    names, (p95,), totals = grouped(groups, values, weights, [95])
    wanted = {}
    for name in sorted({row[0] for row in rows}):
        mine = [row for row in rows if row[0] == name]
        if sum(row[2] for row in mine):
            wanted[name] = (dumb([r[1] for r in mine], [r[2] for r in mine], 95), sum(r[2] for r in mine))
    assert {n: (p, t) for n, p, t in zip(names, p95, totals, strict=True)} == wanted


def test_percentiles_of_no_values_are_none():
    nothing = np.zeros(0, np.int64)
    assert weighted(nothing, nothing, 50) is None
    assert weighted(np.array([3]), np.array([0]), 50) is None
