"""Intervals of sequence numbers of many groups at once, without a loop over groups.

A group is whatever is to be looked at by itself: a stream at one client, or in one session of it. Each gets a
span of numbers of its own, so far from the others that no interval reaches into the next, and then what
`pieces` does for one stream it does for thousands at once.
"""

import numpy as np

from analysis.errors import AnalysisError
from analysis.timelines.arrays import Ints
from analysis.timelines.pieces import Batches

SPAN_BITS = 40
"""A stream of 10^12 events is longer than a run; and 2^23 groups fit into 64 bits."""
SPAN = np.int64(1) << SPAN_BITS


def check_groups(count: int) -> None:
    """Raises AnalysisError if so many groups have no span each."""
    if count >= 1 << 63 - SPAN_BITS:
        raise AnalysisError(f"{count:,} sessions with streams are too many to be looked at together")


def shifted(group: Ints, first_seq: Ints, count: Ints, size_max: int = int(SPAN // 4)) -> Batches:
    """Batches in their groups' spans. What lies beyond a span (a damaged record) is put at its end."""
    size = np.clip(count, 0, size_max)
    first = np.clip(first_seq, 0, SPAN - 1 - size)
    return Batches((group << SPAN_BITS) + first, size, np.zeros(len(group), np.int64))


def sums(group: Ints, values: Ints, groups: int) -> Ints:
    """The sum of the values of each group."""
    found = np.zeros(groups, np.int64)
    np.add.at(found, group, values)
    return found


def totals(runs: tuple[Ints, Ints], groups: int) -> Ints:
    """How many sequence numbers each group's maximal runs hold."""
    return sums(runs[0] >> SPAN_BITS, runs[1] - runs[0], groups)


def within(known: tuple[Ints, Ints], first: Ints, end: Ints) -> Ints:
    """How many numbers of each interval the maximal runs hold; everything in spans."""
    return _held_before(known, end) - _held_before(known, first)


def _held_before(known: tuple[Ints, Ints], at: Ints) -> Ints:
    starts, ends = known
    if not len(starts):
        return np.zeros(len(at), np.int64)
    before = np.concatenate(([0], np.cumsum(ends - starts)))
    run = np.searchsorted(starts, at, side="right") - 1
    inside = np.where(run >= 0, np.minimum(at, ends[run]) - starts[run], 0)
    held: Ints = before[np.maximum(run, 0)] + inside
    return held


def behind(batches: Batches) -> Ints:
    """How many numbers of each batch lie before the end of an earlier batch of its span."""
    order = np.argsort(batches.first_seq >> SPAN_BITS, kind="stable")
    end = batches.end_seq[order]
    highest = np.concatenate((np.zeros(min(len(end), 1), np.int64), np.maximum.accumulate(end)[:-1]))
    behind = np.zeros(len(order), np.int64)
    behind[order] = np.clip(np.minimum(end, highest) - batches.first_seq[order], 0, None)
    return behind
