"""Intervals of sequence numbers as arrays: batches, maximal runs, and operations on them.

Intervals of many groups are processed at once, without a loop over groups. A group is any unit to be
processed separately: a stream at one client, or in one session of it. Each group has its own span of numbers,
far enough from the others that no interval reaches the next span; operations on one stream then work for
thousands at once.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np
import pyarrow as pa

from analysis.arrays import Bools, Ints, ParallelArrays, begins, codes, ints, offsets
from analysis.errors import AnalysisError

Runs = tuple[Ints, Ints]
"""Firsts and ends (exclusive) of maximal runs of sequence numbers, in order."""
SPAN_BITS = 40
"""A span of 10^12 events is longer than a run's stream; and 2^23 groups fit into 64 bits."""
SPAN = np.int64(1) << SPAN_BITS


@dataclass(frozen=True, slots=True)
class Batches(ParallelArrays):
    """Batches of one stream at one place, as parallel arrays in any order. Times in nanoseconds."""

    first_seq: Ints
    count: Ints
    t_ns: Ints

    @property
    def end_seq(self) -> Ints:
        """One past each batch's last sequence number."""
        return self.first_seq + self.count


NONE = Batches(*(np.zeros(0, np.int64) for _ in range(3)))


def untimed(first_seq: Ints, count: Ints) -> Batches:
    """Return batches whose times do not matter."""
    return Batches(first_seq, count, np.zeros(len(first_seq), np.int64))


def batches(table: pa.Table) -> Batches:
    """Return the rows of a table of events or records as batches of one place, with everything they cover."""
    return Batches(ints(table, "first_seq"), reach(table), ints(table, "t_ns"))


def reach(table: pa.Table) -> Ints:
    """Return how many numbers each row of a table of events or records covers."""
    count = ints(table, "count")
    return np.maximum(count, ints(table, "covered")) if "covered" in table.column_names else count


def runs_by_host(table: pa.Table, hosts: Sequence[str]) -> dict[str, Runs]:
    """Return the numbers that each of `hosts` has, in that order; none for a host without rows."""
    host = codes(table.column("host"), list(hosts))
    order = np.argsort(host, kind="stable")
    ends = np.searchsorted(host[order], np.arange(len(hosts) + 1))
    every = batches(table)
    found = {}
    for name, mine in zip(hosts, np.split(order, ends)[1:], strict=False):  # without rows of other hosts
        found[name] = union(every.take(mine))
    return found


def union(batches: Batches) -> Runs:
    """Return a place's sequence numbers as the firsts and ends (exclusive) of maximal runs, in order."""
    filled = batches.take(batches.count > 0)
    ordered = filled.take(np.argsort(filled.first_seq, kind="stable"))
    first, end = ordered.first_seq, ordered.end_seq
    if not len(first):
        return first, end
    reach = np.maximum.accumulate(end)
    starts = np.concatenate(([True], first[1:] > reach[:-1]))
    return first[starts], reach[np.append(np.flatnonzero(starts)[1:] - 1, len(reach) - 1)]


def repeats(batches: Batches) -> Ints:
    """Return, for each batch in the given order, how many of its events an earlier batch already had."""
    order = np.argsort(batches.first_seq, kind="stable")
    if (batches.end_seq[order][:-1] <= batches.first_seq[order][1:]).all():  # the usual case
        return np.zeros(len(order), np.int64)
    edges = distinct(np.concatenate((batches.first_seq, batches.end_seq)))
    piece, batch = incidences(edges, batches)
    order = np.argsort(piece, kind="stable")  # batches of one piece keep the given order
    again = ~begins(piece[order])
    sizes = np.diff(edges)[piece[order][again]]
    found = np.bincount(batch[order][again], sizes, minlength=len(batches.count))
    return found.astype(np.int64)


def common(some: Runs, others: Runs) -> Runs:
    """Return the sequence numbers that two sets of maximal runs share."""
    return _combined(some, others, shared=True)


def difference(some: Runs, others: Runs) -> Runs:
    """Return the sequence numbers in some maximal runs that are not in others."""
    if not len(others[0]):
        return some
    return _combined(some, others, shared=False)


def _combined(some: Runs, others: Runs, *, shared: bool) -> Runs:
    edges = distinct(np.concatenate((*some, *others)))
    first = edges[:-1]
    chosen = _held(some, first) & (_held(others, first) == shared)
    return union(untimed(first[chosen], np.diff(edges)[chosen]))


def _held(runs: Runs, numbers: Ints) -> Bools:
    """Return which numbers are in maximal runs."""
    run = np.searchsorted(runs[0], numbers, side="right") - 1
    return numbers < np.append(runs[1], -1)[run]  # -1: before the first run


def total(runs: Runs) -> int:
    """Return how many sequence numbers maximal runs have."""
    return int((runs[1] - runs[0]).sum())


def digest(runs: Runs) -> int:
    """Return a checksum of a set of sequence numbers: CRC-32 over the ends of its maximal runs."""
    return crc32(np.concatenate(runs).astype(">i8").tobytes())


def distinct(values: Ints) -> Ints:
    """Return the sorted distinct values, three times faster than `np.unique` on long arrays of many
    values.
    """
    ordered = np.sort(values)
    return ordered[begins(ordered)]


def incidences(edges: Ints, batches: Batches) -> tuple[Ints, Ints]:
    """Return which pieces between the edges each batch covers, as pairs of indices, batch by batch."""
    low = np.searchsorted(edges, batches.first_seq)
    spans = np.searchsorted(edges, batches.end_seq) - low
    return np.repeat(low, spans) + offsets(spans), np.repeat(np.arange(len(low)), spans)


def check_groups(count: int) -> None:
    """Check that this many groups have a span each. Raises AnalysisError if not."""
    if count >= 1 << 63 - SPAN_BITS:
        raise AnalysisError(f"{count:,} sessions with streams are too many to process at once")


def in_group_spans(group: Ints, first_seq: Ints, count: Ints, size_max: int = int(SPAN // 4)) -> Batches:
    """Return batches in their groups' spans. Numbers beyond a span (a damaged record) are put at its end."""
    size = np.clip(count, 0, size_max)
    first = np.clip(first_seq, 0, SPAN - 1 - size)
    return untimed((group << SPAN_BITS) + first, size)


def sums(group: Ints, values: Ints, groups: int) -> Ints:
    """Return the sum of the values of each group."""
    found = np.zeros(groups, np.int64)
    np.add.at(found, group, values)
    return found


def totals(runs: Runs, groups: int) -> Ints:
    """Return how many sequence numbers each group's maximal runs have."""
    return sums(runs[0] >> SPAN_BITS, runs[1] - runs[0], groups)


def within(known: Runs, first: Ints, end: Ints) -> Ints:
    """Return how many numbers of each interval are in the maximal runs; all in spans."""
    return _held_before(known, end) - _held_before(known, first)


def _held_before(known: Runs, at: Ints) -> Ints:
    starts, ends = known
    if not len(starts):
        return np.zeros(len(at), np.int64)
    before = np.concatenate(([0], np.cumsum(ends - starts)))
    run = np.searchsorted(starts, at, side="right") - 1
    inside = np.where(run >= 0, np.minimum(at, ends[run]) - starts[run], 0)
    return before[np.maximum(run, 0)] + inside


def late_numbers(batches: Batches) -> Ints:
    """Return how many numbers of each batch lie before the end of an earlier batch of its span."""
    order = np.argsort(batches.first_seq >> SPAN_BITS, kind="stable")
    end = batches.end_seq[order]
    highest = np.concatenate((np.zeros(min(len(end), 1), np.int64), np.maximum.accumulate(end)[:-1]))
    behind = np.zeros(len(order), np.int64)
    behind[order] = np.clip(np.minimum(end, highest) - batches.first_seq[order], 0, None)
    return behind
