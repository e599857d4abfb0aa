"""One stream cut into pieces: runs of sequence numbers that were published together and came to each host
together.

Batches of a stream are intervals of sequence numbers with a time. All their ends together cut the stream into
pieces, and within a piece every event has the same history; so whatever is asked of each event (its latency,
where it is missing) is asked once per piece and weighted by its count. What came more than once counts when
it first came. Nothing here looks at single events, and nothing assumes that batches keep their publisher's
boundaries.

Intervals of many groups are looked at at once, without a loop over groups. A group is whatever is to be
looked at by itself: a stream at one client, or in one session of it. Each gets a span of numbers of its own,
so far from the others that no interval reaches into the next, and then what is done for one stream is done
for thousands at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from zlib import crc32

import numpy as np

from analysis.errors import AnalysisError
from analysis.timelines.arrays import Bools, Ints
from analysis.timelines.run_window import RunWindow

NEVER = np.iinfo(np.int64).max
"""The time at which that happened which did not happen."""
SPAN_BITS = 40
"""A stream of 10^12 events is longer than a run; and 2^23 groups fit into 64 bits."""
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
    """The pieces of one stream, by sequence number. `arrived_ns` has a row per host of `hosts`; NEVER where
    not. `wanted` says which of them each host must get, `due` which it would have to if no fault were an
    excuse; None: all.
    """

    first_seq: Ints
    count: Ints
    published_ns: Ints
    hosts: tuple[str, ...]
    arrived_ns: Ints
    wanted: Bools | None = None
    due: Bools | None = None

    def wanted_at(self, host: str) -> Bools:
        """Which pieces `host` must get."""
        if self.wanted is None:
            return np.ones(len(self.count), bool)
        row: Bools = self.wanted[self.hosts.index(host)]
        return row

    def due_at(self, host: str) -> Ints:
        """When each piece was published that is due to `host`; NEVER for the others."""
        if self.due is None:
            return self.published_ns
        times: Ints = np.where(self.due[self.hosts.index(host)], self.published_ns, NEVER)
        return times

    def first(self, pieces: int) -> "SequenceIntervals":
        """The first so many pieces alone."""
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
        """When the last one of these hosts had each piece that it must get; NEVER: some host never had it,
        -1: none has to get it. hosts: places among `hosts`.
        """
        arrived_ns = self.arrived_ns[hosts]
        if self.wanted is not None:  # who need not get it is not waited for
            arrived_ns = np.where(self.wanted[hosts], arrived_ns, -1)
        found: Ints = arrived_ns.max(axis=0, initial=-1)
        return found

    @property
    def came(self) -> Bools:
        """Which pieces came to any host at all."""
        found: Bools = (self.arrived_ns != NEVER).any(axis=0)
        return found

    def at(self, host: str) -> Ints:
        """When each piece came to `host`."""
        row: Ints = self.arrived_ns[self.hosts.index(host)]
        return row


def cut(published: Batches, arrived: Mapping[str, Batches]) -> SequenceIntervals:
    """Cut a stream at every batch's ends; pieces that nobody published and nobody got are left out."""
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


def dated(whole: SequenceIntervals, window: RunWindow) -> SequenceIntervals:
    """The same, but for pieces of which some time lies outside the run: those count as never published, so
    that nothing is measured from them, and nobody is said to lack them.
    """
    happened = whole.arrived_ns != NEVER
    strange = happened & ~window.holds(whole.arrived_ns)
    undated = strange.any(axis=0) | ~window.holds(whole.published_ns)
    return replace(
        whole,
        published_ns=np.where(undated, NEVER, whole.published_ns),
        arrived_ns=np.where(strange, NEVER, whole.arrived_ns),
    )


def union(batches: Batches) -> tuple[Ints, Ints]:
    """The sequence numbers that a place has, as the firsts and ends (exclusive) of maximal runs, in order."""
    filled = batches.count > 0
    order = np.argsort(batches.first_seq[filled], kind="stable")
    first, end = batches.first_seq[filled][order], batches.end_seq[filled][order]
    if not len(first):
        return first, end
    reach = np.maximum.accumulate(end)
    starts = np.concatenate(([True], first[1:] > reach[:-1]))
    return first[starts], reach[np.append(np.flatnonzero(starts)[1:] - 1, len(reach) - 1)]


def repeats(batches: Batches) -> Ints:
    """For each batch, in the order given, how many of its events an earlier batch had already."""
    order = np.argsort(batches.first_seq, kind="stable")
    if (batches.end_seq[order][:-1] <= batches.first_seq[order][1:]).all():  # the usual case
        return np.zeros(len(order), np.int64)
    edges = distinct(np.concatenate((batches.first_seq, batches.end_seq)))
    piece, batch = incidences(edges, batches)
    order = np.argsort(piece, kind="stable")  # batches of one piece stay in the order given
    again = np.append(False, piece[order][1:] == piece[order][:-1]) if len(order) else np.zeros(0, bool)
    sizes = np.diff(edges)[piece[order][again]]
    found = np.bincount(batch[order][again], sizes, minlength=len(batches.count))
    return found.astype(np.int64)


def shared(some: tuple[Ints, Ints], others: tuple[Ints, Ints]) -> int:
    """How many sequence numbers two sets of maximal runs share."""
    first, end = (np.concatenate(pair) for pair in zip(some, others, strict=True))
    both = union(Batches(first, end - first, np.zeros(len(first), np.int64)))
    return total(some) + total(others) - total(both)


def common(some: tuple[Ints, Ints], others: tuple[Ints, Ints]) -> tuple[Ints, Ints]:
    """The sequence numbers that two sets of maximal runs share, as maximal runs."""
    edges = distinct(np.concatenate((*some, *others)))
    held = np.ones(max(len(edges) - 1, 0), bool)
    for first, end in (some, others):
        at = np.searchsorted(first, edges[:-1], side="right") - 1
        held &= (at >= 0) & (edges[:-1] < end[np.maximum(at, 0)]) if len(first) else False
    return union(Batches(edges[:-1][held], np.diff(edges)[held], np.zeros(int(held.sum()), np.int64)))


def total(runs: tuple[Ints, Ints]) -> int:
    """How many sequence numbers maximal runs hold."""
    return int((runs[1] - runs[0]).sum())


def digest(runs: tuple[Ints, Ints]) -> int:
    """A number that tells sets of sequence numbers apart: CRC-32 over the ends of their maximal runs."""
    return crc32(np.concatenate(runs).astype(">i8").tobytes())


def distinct(values: Ints) -> Ints:
    """In order, each once: what `np.unique` does, three times faster on long arrays of many values."""
    ordered = np.sort(values)
    distinct: Ints = ordered[np.append(ordered[1:] != ordered[:-1], True)[: len(ordered)]]
    return distinct


def _first_times(edges: Ints, batches: Batches, place: Ints, places: int) -> Ints:
    """For every place, and piece between two edges, the earliest time of a batch that covers it there."""
    times = np.full((places, max(len(edges) - 1, 0)), NEVER, np.int64)
    piece, batch = incidences(edges, batches)
    np.minimum.at(times, (place[batch], piece), batches.t_ns[batch])
    return times


def incidences(edges: Ints, batches: Batches) -> tuple[Ints, Ints]:
    """Which pieces between the edges each batch covers, as pairs of indices, batch by batch."""
    low = np.searchsorted(edges, batches.first_seq)
    spans = np.searchsorted(edges, batches.end_seq) - low
    within = np.arange(spans.sum()) - np.repeat(np.cumsum(spans) - spans, spans)
    return np.repeat(low, spans) + within, np.repeat(np.arange(len(low)), spans)


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
