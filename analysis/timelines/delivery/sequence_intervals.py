"""One stream cut into pieces: runs of sequence numbers with the same times of publication and arrival.

Batches of a stream are intervals of sequence numbers with a time. All their ends together cut the stream into
pieces, and all events of a piece have the same history. So every property of events (latency, loss) is
computed once per piece and weighted by its count. An event that arrived more than once counts at its first
arrival. Nothing here processes single events, or assumes that batches keep their publisher's boundaries.

Intervals of many groups are processed at once, without a loop over groups. A group is any unit to be
processed separately: a stream at one client, or in one session of it. Each group has its own span of numbers,
far enough from the others that no interval reaches the next span; operations on one stream then work for
thousands at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np

from analysis.errors import AnalysisError
from analysis.timelines.arrays import Bools, Ints
from analysis.timelines.run_window import RunWindow

NEVER = np.iinfo(np.int64).max
"""Time of an event that did not happen."""
SPAN_BITS = 40
"""A span of 10^12 events is longer than a run's stream; and 2^23 groups fit into 64 bits."""
SPAN = np.int64(1) << SPAN_BITS


@dataclass(frozen=True, slots=True)
class Batches:
    """Batches of one stream at one place, as parallel arrays in any order. Times in nanoseconds."""

    first_seq: Ints
    count: Ints
    t_ns: Ints

    @property
    def end_seq(self) -> Ints:
        """One past each batch's last sequence number."""
        return self.first_seq + self.count


NONE = Batches(*(np.zeros(0, np.int64) for _ in range(3)))


@dataclass(frozen=True, slots=True)
class SequenceIntervals:
    """The pieces of one stream, sorted by sequence number.

    `arrived_ns` has a row per host of `hosts`; NEVER if a piece did not arrive. `wanted`: which pieces each
    host must get, `due`: which it would have to get if no fault were an excuse; None: all.
    """

    first_seq: Ints
    count: Ints
    published_ns: Ints
    hosts: tuple[str, ...]
    arrived_ns: Ints
    wanted: Bools | None = None
    due: Bools | None = None

    def wanted_at(self, host: str) -> Bools:
        """Return which pieces `host` must get."""
        if self.wanted is None:
            return np.ones(len(self.count), bool)
        row: Bools = self.wanted[self.hosts.index(host)]
        return row

    def first(self, pieces: int) -> "SequenceIntervals":
        """Return the first `pieces` pieces only."""
        return SequenceIntervals(
            self.first_seq[:pieces],
            self.count[:pieces],
            self.published_ns[:pieces],
            self.hosts,
            self.arrived_ns[:, :pieces],
            None if self.wanted is None else self.wanted[:, :pieces],
            None if self.due is None else self.due[:, :pieces],
        )

    def last_ns(self, hosts: Sequence[int]) -> Ints:
        """Return when the last of these hosts had each piece that it must get.

        NEVER: some host never had it, -1: no host has to get it. hosts: indices among `hosts`.
        """
        arrived_ns = self.arrived_ns[hosts]
        if self.wanted is not None:  # ignore hosts that need not get it
            arrived_ns = np.where(self.wanted[hosts], arrived_ns, -1)
        found: Ints = arrived_ns.max(axis=0, initial=-1)
        return found

    @property
    def came(self) -> Bools:
        """Which pieces arrived at any host."""
        found: Bools = (self.arrived_ns != NEVER).any(axis=0)
        return found

    def at(self, host: str) -> Ints:
        """Return when each piece arrived at `host`."""
        row: Ints = self.arrived_ns[self.hosts.index(host)]
        return row


def cut_stream(published: Batches, arrived: Mapping[str, Batches]) -> SequenceIntervals:
    """Cut a stream at every batch's ends. Pieces that were neither published nor received are omitted."""
    everything = [published, *arrived.values()]
    together = Batches(
        *(np.concatenate([getattr(each, name) for each in everything]) for name in Batches.__slots__)
    )
    edges = distinct(np.concatenate((together.first_seq, together.end_seq)))
    place = np.repeat(np.arange(len(everything)), [len(batches.count) for batches in everything])
    times = _first_times(edges, together, place, len(everything))
    published_ns, arrived_ns = times[0], times[1:]
    known = (published_ns != NEVER) | (arrived_ns != NEVER).any(axis=0)
    return SequenceIntervals(
        first_seq=edges[:-1][known],
        count=np.diff(edges)[known],
        published_ns=published_ns[known],
        hosts=tuple(arrived),
        arrived_ns=arrived_ns[:, known],
    )


def without_misdated(intervals: SequenceIntervals, window: RunWindow) -> SequenceIntervals:
    """Treat pieces with a time outside the run as never published.

    Nothing is measured from them, and no host counts as missing them.
    """
    happened = intervals.arrived_ns != NEVER
    misdated = happened & ~window.holds(intervals.arrived_ns)
    undated = misdated.any(axis=0) | ~window.holds(intervals.published_ns)
    return replace(
        intervals,
        published_ns=np.where(undated, NEVER, intervals.published_ns),
        arrived_ns=np.where(misdated, NEVER, intervals.arrived_ns),
    )


def union(batches: Batches) -> tuple[Ints, Ints]:
    """Return a place's sequence numbers as the firsts and ends (exclusive) of maximal runs, in order."""
    filled = batches.count > 0
    order = np.argsort(batches.first_seq[filled], kind="stable")
    first, end = batches.first_seq[filled][order], batches.end_seq[filled][order]
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
    again = np.append(False, piece[order][1:] == piece[order][:-1]) if len(order) else np.zeros(0, bool)
    sizes = np.diff(edges)[piece[order][again]]
    found = np.bincount(batch[order][again], sizes, minlength=len(batches.count))
    return found.astype(np.int64)


def common(some: tuple[Ints, Ints], others: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
    """Return the sequence numbers that two sets of maximal runs share, as maximal runs."""
    edges = distinct(np.concatenate((*some, *others)))
    held = np.ones(max(len(edges) - 1, 0), bool)
    for first, end in (some, others):
        at = np.searchsorted(first, edges[:-1], side="right") - 1
        held &= (at >= 0) & (edges[:-1] < end[np.maximum(at, 0)]) if len(first) else False
    return union(Batches(edges[:-1][held], np.diff(edges)[held], np.zeros(int(held.sum()), np.int64)))


def total(runs: tuple[Ints, Ints]) -> int:
    """Return how many sequence numbers maximal runs have."""
    return int((runs[1] - runs[0]).sum())


def digest(runs: tuple[Ints, Ints]) -> int:
    """Return a checksum of a set of sequence numbers: CRC-32 over the ends of its maximal runs."""
    return crc32(np.concatenate(runs).astype(">i8").tobytes())


def distinct(values: Ints) -> Ints:
    """Return the sorted distinct values, three times faster than `np.unique` on long arrays of many
    values.
    """
    ordered = np.sort(values)
    distinct: Ints = ordered[np.append(ordered[1:] != ordered[:-1], True)[: len(ordered)]]
    return distinct


def _first_times(edges: Ints, batches: Batches, place: Ints, places: int) -> Ints:
    """Return, for each place and piece between two edges, the earliest time of a batch that covers it
    there.
    """
    times = np.full((places, max(len(edges) - 1, 0)), NEVER, np.int64)
    piece, batch = incidences(edges, batches)
    np.minimum.at(times, (place[batch], piece), batches.t_ns[batch])
    return times


def incidences(edges: Ints, batches: Batches) -> tuple[Ints, Ints]:
    """Return which pieces between the edges each batch covers, as pairs of indices, batch by batch."""
    low = np.searchsorted(edges, batches.first_seq)
    spans = np.searchsorted(edges, batches.end_seq) - low
    within = np.arange(spans.sum()) - np.repeat(np.cumsum(spans) - spans, spans)
    return np.repeat(low, spans) + within, np.repeat(np.arange(len(low)), spans)


def check_groups(count: int) -> None:
    """Check that this many groups have a span each. Raises AnalysisError if not."""
    if count >= 1 << 63 - SPAN_BITS:
        raise AnalysisError(f"{count:,} sessions with streams are too many to process at once")


def in_group_spans(group: Ints, first_seq: Ints, count: Ints, size_max: int = int(SPAN // 4)) -> Batches:
    """Return batches in their groups' spans. Numbers beyond a span (a damaged record) are put at its end."""
    size = np.clip(count, 0, size_max)
    first = np.clip(first_seq, 0, SPAN - 1 - size)
    return Batches((group << SPAN_BITS) + first, size, np.zeros(len(group), np.int64))


def sums(group: Ints, values: Ints, groups: int) -> Ints:
    """Return the sum of the values of each group."""
    found = np.zeros(groups, np.int64)
    np.add.at(found, group, values)
    return found


def totals(runs: tuple[Ints, Ints], groups: int) -> Ints:
    """Return how many sequence numbers each group's maximal runs have."""
    return sums(runs[0] >> SPAN_BITS, runs[1] - runs[0], groups)


def within(known: tuple[Ints, Ints], first: Ints, end: Ints) -> Ints:
    """Return how many numbers of each interval are in the maximal runs; all in spans."""
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


def late_numbers(batches: Batches) -> Ints:
    """Return how many numbers of each batch lie before the end of an earlier batch of its span."""
    order = np.argsort(batches.first_seq >> SPAN_BITS, kind="stable")
    end = batches.end_seq[order]
    highest = np.concatenate((np.zeros(min(len(end), 1), np.int64), np.maximum.accumulate(end)[:-1]))
    behind = np.zeros(len(order), np.int64)
    behind[order] = np.clip(np.minimum(end, highest) - batches.first_seq[order], 0, None)
    return behind
