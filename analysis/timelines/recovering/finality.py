"""Checks that collected events were collected by the rule in force (Sprinkler 2.1, 3.4; checklist, API).

A tombstone replaces events that a garbage collection event matched. The workload defines the rule that
drivers publish. If not every event collects, the drivers' marks list the collecting events and all keys
(`collecting`). This bounds how many events of each tombstone the rule may have matched:

- last N: numbers below the highest collecting one minus N;
- older than: events that were due, were acknowledged, or had reached some client that long before the
  tombstone arrived (if only some events collect: before the last collecting one by then), with slack for
  clocks and for the path from proxy to driver. A head stamps an event when it receives it, and a stalled
  chain may deliver and acknowledge it much later: an open loop's event may be as old as its schedule says;
- same key: events followed by a collecting event with their key;
- no rule: none.

The remaining events were collected against the rule. If a record mixes events and tombstones, the tombstones
are assumed to be those that the rule explains.
"""

from dataclasses import dataclass

import numpy as np

from analysis.arrays import NEVER, Ints
from analysis.timelines.delivery.collecting import CollectionMarks, collectable
from analysis.timelines.delivery.delivery_records import RecordedDeliveries, RecordedPublications
from analysis.timelines.delivery.sequence_intervals import SPAN, SPAN_BITS, in_group_spans, within
from analysis.timelines.run_metadata import RunMetadata

SLACK_NS = 1_000_000_000


def unexplained(
    got: RecordedDeliveries,
    known: RecordedPublications,
    metadata: RunMetadata,
    marks: CollectionMarks | None = None,
) -> Ints:
    """Return, for each record, how many of its tombstones the rule in force does not explain."""
    collected = got.reach - got.events
    found = np.zeros(len(collected), np.int64)
    some = np.flatnonzero(collected)
    if not len(some):
        return found
    case = _Case(got, some, known, len(metadata.owner))
    if metadata.collect is not None and metadata.collect[0] == "same_key" and marks is not None:
        found[some] = np.minimum(_kept_by_key(case, list(metadata.owner), marks), collected[some])
        return found
    bound = _bounds(case, metadata, marks)
    allowed = np.clip(bound - got.first[some], 0, got.reach[some])
    found[some] = np.maximum(collected[some] - allowed, 0)
    return found


@dataclass(frozen=True, slots=True)
class _Case:
    """Records with tombstones (`some`), and the data that they are compared with."""

    got: RecordedDeliveries
    some: Ints
    known: RecordedPublications
    streams: int

    @property
    def stream(self) -> Ints:
        """The stream of each record, as an index in the run's list."""
        return self.got.stream[self.some]

    def last_unmarked(self) -> Ints:
        """Return, for each stream, the last number that clients have and no driver acknowledged.

        A driver that was killed left events without marks: they may collect any events before them.
        """
        batches = in_group_spans(self.got.stream, self.got.first, self.got.reach)
        held = within(self.known.runs, batches.first_seq, batches.end_seq)
        open_ones = held < batches.count
        found = np.zeros(self.streams, np.int64)
        last = (self.got.first + self.got.reach - 1)[open_ones]
        np.maximum.at(found, self.got.stream[open_ones], last)
        return found


def _kept_by_key(case: _Case, streams: list[int], marks: CollectionMarks) -> Ints:
    """Return how many events in each record no later one collects although they did not arrive as events."""
    got, some = case.got, case.some
    kept = np.zeros(len(some), np.int64)
    last_unmarked = case.last_unmarked()
    for place, stream in enumerate(streams):
        mine = np.flatnonzero(case.stream == place)
        of_stream = marks.marks_of_stream(stream)
        last_ones = np.sort(of_stream.seq[~collectable(of_stream)])
        last_ones = last_ones[last_ones > last_unmarked[place]]
        first = got.first[some][mine]
        inside = np.searchsorted(last_ones, first + got.reach[some][mine]) - np.searchsorted(last_ones, first)
        kept[mine] = inside - got.events[some][mine]
    return np.maximum(kept, 0)


def _bounds(case: _Case, metadata: RunMetadata, marks: CollectionMarks | None) -> Ints:
    """Return the first sequence number that may not have been collected yet, for each record."""
    if metadata.collect is None:
        return np.zeros(len(case.some), np.int64)
    predicate, argument = metadata.collect
    highest = _highest(case)[case.got.group[case.some]]
    collecting = _collecting(metadata, marks) if metadata.seldom and marks is not None else None
    if collecting is not None:
        last = np.array([seqs.max(initial=0) for seqs in collecting], np.int64)
        highest = np.minimum(highest, np.maximum(last, case.last_unmarked())[case.stream])
    if predicate == "last":
        return highest - argument
    if predicate == "older_than":
        return np.minimum(_older(case, argument * 1000 - SLACK_NS, metadata, collecting), highest)
    return highest


def _collecting(metadata: RunMetadata, marks: CollectionMarks) -> list[Ints]:
    """Return the sorted numbers of the collecting events of each stream."""
    each = [marks.marks_of_stream(stream) for stream in metadata.owner]
    return [np.sort(of_stream.seq[of_stream.collects]) for of_stream in each]


def _highest(case: _Case) -> Ints:
    """Return the highest number of each group's stream that was published, or that the group received."""
    got, known = case.got, case.known
    published = np.zeros(case.streams, np.int64)
    np.maximum.at(published, known.runs[0] >> SPAN_BITS, (known.runs[1] - 1) & (SPAN - 1))
    highest = published[got.of_group]
    events = got.events > 0
    np.maximum.at(highest, got.group[events], (got.first + got.reach - 1)[events])
    return highest


def _older(case: _Case, age_ns: int, metadata: RunMetadata, collecting: list[Ints] | None) -> Ints:
    """Return the first number that was too young to be collected, for each record."""
    known = case.known
    found = np.zeros(len(case.some), np.int64)
    for stream in range(case.streams):
        mine = np.flatnonzero(case.stream == stream)
        of_stream = np.flatnonzero(known.stream == stream)
        if not len(of_stream):
            found[mine] = SPAN
            continue
        first = known.batches.first_seq[of_stream] & (SPAN - 1)
        end = first[-1] + known.batches.count[of_stream[-1]]
        t_ns = known.batches.t_ns[of_stream]
        acknowledged = np.minimum.accumulate(t_ns[::-1])[::-1]
        since = np.minimum(acknowledged, _first_seen(case.got, stream, first))
        if metadata.rate_per_s is not None:
            together = metadata.rate_per_s * len(metadata.publishing_hosts(list(metadata.owner)[stream]))
            since = np.minimum(since, metadata.zero_ns + (first * (1e9 / together)).astype(np.int64))
        came = case.got.t_ns[case.some][mine]
        if collecting is not None:
            came = _last_collection(came, collecting[stream], first, t_ns)
        at = np.searchsorted(since, came - age_ns, side="right")
        found[mine] = np.append(first, end)[at]
    return found


def _first_seen(got: RecordedDeliveries, stream: int, first: Ints) -> Ints:
    """Return, for each number of a stream, the earliest time when a client had it or a later one."""
    mine = np.flatnonzero((got.stream == stream) & (got.events > 0))
    last = (got.first + got.reach - 1)[mine]
    order = np.argsort(last, kind="stable")
    seen = np.append(got.t_ns[mine][order], NEVER)
    return np.minimum.accumulate(seen[::-1])[::-1][np.searchsorted(last[order], first)]


def _last_collection(came: Ints, collecting: Ints, first: Ints, t_ns: Ints) -> Ints:
    """Return, for each time, when the last collecting event was acknowledged by then, with some slack."""
    times = np.sort(t_ns[np.maximum(np.searchsorted(first, collecting, side="right") - 1, 0)])
    at = np.searchsorted(times, came + SLACK_NS, side="right")
    return np.append(0, times)[at]
