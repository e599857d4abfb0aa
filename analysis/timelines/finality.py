"""Whether what was collected was collected by the rule in force (Sprinkler 2.1, 3.4; checklist, API).

A tombstone stands for events that a garbage collection event matched. Which rule the drivers publish stands
in the workload, so for each tombstone it can be said how many of its events the rule may have matched by
then:

- last N: the numbers below the highest one of the stream at the end, less N;
- older than: what was acknowledged that long before the tombstone came, with some slack for clocks and for
  the way from proxy to driver;
- same key: whatever has a later event (keys are not on record);
- no rule: nothing.

The rest was collected against the rule. Where events and tombstones are mixed in a record, the rule's
benefit is assumed: the tombstones are taken to be the oldest.
"""

import numpy as np

from analysis.timelines.arrays import Ints
from analysis.timelines.facts import Facts
from analysis.timelines.groups import SPAN, SPAN_BITS
from analysis.timelines.recorded import Got, Published

SLACK_NS = 1_000_000_000


def unexplained(got: Got, known: Published, facts: Facts, streams: int) -> Ints:
    """For each record, how many of its tombstones the rule in force does not explain."""
    collected = got.reach - got.events
    found = np.zeros(len(collected), np.int64)
    some = np.flatnonzero(collected)
    if not len(some):
        return found
    bound = _bounds(got, some, known, facts, streams)
    allowed = np.clip(bound - got.first[some], 0, got.reach[some])
    found[some] = np.maximum(collected[some] - allowed, 0)
    return found


def _bounds(got: Got, some: Ints, known: Published, facts: Facts, streams: int) -> Ints:
    """The first sequence number that may not have been collected yet, for each of some records."""
    if facts.collect is None:
        return np.zeros(len(some), np.int64)
    predicate, argument = facts.collect
    highest = _highest(got, known, streams)[got.group[some]]
    if predicate == "last":
        return highest - argument
    if predicate == "older_than":
        by_time = _older(got, some, known, argument * 1000 - SLACK_NS, streams)
        return np.minimum(by_time, highest)
    return highest


def _highest(got: Got, known: Published, streams: int) -> Ints:
    """The highest number of each group's stream that was published, or that the group got."""
    published = np.zeros(streams, np.int64)
    np.maximum.at(published, known.runs[0] >> SPAN_BITS, (known.runs[1] - 1) & (SPAN - 1))
    groups = int(got.group.max(initial=-1)) + 1
    highest = published[np.arange(groups) % streams]
    events = got.events > 0
    np.maximum.at(highest, got.group[events], (got.first + got.reach - 1)[events])
    return highest


def _older(got: Got, some: Ints, known: Published, age_ns: int, streams: int) -> Ints:
    """The first number that was not acknowledged `age_ns` before each of some records came."""
    found = np.zeros(len(some), np.int64)
    for stream in range(streams):
        mine = np.flatnonzero(got.group[some] % streams == stream)
        of_stream = np.flatnonzero(known.stream == stream)
        if not len(of_stream):
            found[mine] = SPAN
            continue
        first = known.batches.first_seq[of_stream] & (SPAN - 1)
        end = first[-1] + known.batches.count[of_stream[-1]]
        since = np.minimum.accumulate(known.batches.t_ns[of_stream][::-1])[::-1]
        at = np.searchsorted(since, got.t_ns[some][mine] - age_ns, side="right")
        found[mine] = np.append(first, end)[at]
    return found
