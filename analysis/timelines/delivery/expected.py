"""Expected deliveries: for each session of a client and each stream, what it must get and what it may get.

Both are intervals of sequence numbers, kept only for sessions that have to do with a stream, so memory grows
with the subscriptions (e.g. a hundred thousand clients with a few of ten thousand topics each). They follow
from the system's contract (`node.core.declaration.Contract`):

- *since the beginning*: everything published; for a session that ended, up to its last delivery;
- *since the subscription*: by the client's records of its subscriptions. The bounds are the numbers from and
  up to which a subscription counts, if the client knows them, otherwise times. Events published while it
  subscribes or unsubscribes, or so shortly before that they were in flight (`under_way`), are permitted, not
  required;
- *by content*: only events that match a subscription (`content`), by times alone;
- events published during a fault that the contract does not cover, or so shortly before that they were in
  flight, are not required.

*Lost* is required but not delivered, *stray* is delivered but not permitted: `deliveries` counts them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.arrays import NEVER, Bools, Ints, codes, ints, offsets, rows
from analysis.timelines import schemas
from analysis.timelines.delivery.delivery_records import SUBSCRIPTIONS, RecordedPublications
from analysis.timelines.delivery.sequence_intervals import (
    NONE,
    SPAN,
    SPAN_BITS,
    Batches,
    Runs,
    difference,
    in_group_spans,
    union,
)
from analysis.timelines.run_metadata import RunMetadata
from analysis.timelines.under_way import InFlightSpans, mended_ns
from node.core.deliveries import RecordKind

_CLOSING = (RecordKind.UNSUBSCRIBING, RecordKind.UNSUBSCRIBED)


@dataclass(frozen=True, slots=True)
class ClientSessions:
    """Sessions of clients with a stream, as parallel arrays.

    group: a client and a stream. stream: an index in the run's list. lasted: to the end of the run. last_ns:
    time of the last event; 0 without events.
    """

    group: Ints
    stream: Ints
    lasted: Bools
    last_ns: Ints


@dataclass(frozen=True, slots=True)
class SubscriptionRecords:
    """Clients' records of subscriptions, in order of session and of writing.

    number: the first event that a subscription includes, or the first one that it no longer includes; 0 if
    the client does not know it.
    """

    session: Ints
    kind: Ints
    number: Ints
    t_ns: Ints


@dataclass(frozen=True, slots=True)
class Expected:
    """Sets of events by session, in the sessions' spans.

    due: `must` as if no fault were an excuse; recovery is measured by it. may: None if any event may reach
    any client. unacknowledged: events that would be in `must` if their publisher had not died before the
    acknowledgement.
    """

    must: Runs
    due: Runs
    may: Runs | None
    unacknowledged: Runs


Windows = tuple[Ints, Ints, Ints]
"""Session, first number, and one past the last number of each window, as parallel arrays."""


def expected(
    sessions: ClientSessions,
    reached: Ints,
    asked: SubscriptionRecords | tuple[Windows, Windows],
    known: RecordedPublications,
    metadata: RunMetadata,
) -> Expected:
    """Return the events that each session must and may get.

    A session that ended is expected to have events up to its last one; if no order is promised, up to the
    events published one settle time before its last one. reached: one past the last number that each session
    received. asked: subscriptions or, by content, the windows of events that must and may arrive (`content`).
    """
    contract = metadata.declared.contract
    streams = len(metadata.owner)
    count = len(sessions.group)
    excused = _excused(known, metadata, streams)
    promised = difference(known.runs, known.unacknowledged)
    published, unacknowledged = (difference(promised, excused), difference(known.unacknowledged, excused))
    limit = np.where(sessions.lasted, SPAN - 1, reached)
    if contract.since == "beginning":
        everything = (np.arange(count), np.zeros(count, np.int64), limit)
        due = within_windows(everything, sessions.stream, promised)
        must = within_windows(everything, sessions.stream, published) if len(excused[0]) else due
        return Expected(must, due, None, within_windows(everything, sessions.stream, unacknowledged))
    clock = _PublicationClock(known, streams)
    settle_ns = contract.settle_us * 1000
    if contract.order == "none":
        early = clock.first(sessions.stream, sessions.last_ns - settle_ns)
        limit = np.where(sessions.lasted, limit, np.minimum(limit, early))
    late_ns = settle_ns if contract.published == "acknowledged" else 0
    sure, may = (
        asked
        if isinstance(asked, tuple)
        else _windows(asked, sessions, clock, InFlightSpans.from_metadata(metadata), late_ns)
    )
    sure = (sure[0], sure[1], np.minimum(sure[2], limit[sure[0]]))
    return Expected(
        within_windows(sure, sessions.stream, published),
        within_windows(sure, sessions.stream, promised),
        union(in_group_spans(may[0], may[1], np.maximum(may[2] - may[1], 0), size_max=int(SPAN))),
        within_windows(sure, sessions.stream, unacknowledged),
    )


def within_windows(windows: Windows, stream_of: Ints, published: Runs) -> Runs:
    """Return what was published within the windows of sessions, in the sessions' spans.

    stream_of: the stream of each session. published: in the streams' spans.
    """
    session, first, end = windows
    base = stream_of[session] << SPAN_BITS
    low = np.searchsorted(published[1], base + first, side="right")
    high = np.searchsorted(published[0], base + np.maximum(end, first), side="left")
    sizes = np.maximum(high - low, 0)
    window = np.repeat(np.arange(len(session)), sizes)
    run = np.repeat(low, sizes) + offsets(sizes)
    begins = np.maximum(published[0][run] - base[window], first[window])
    ends = np.minimum(published[1][run] - base[window], end[window])
    return union(in_group_spans(session[window], begins, np.maximum(ends - begins, 0), size_max=int(SPAN)))


class _PublicationClock:
    """Conversion from times to numbers of streams, by the times of publication."""

    def __init__(self, known: RecordedPublications, streams: int) -> None:
        self._stream, self._t_ns = known.stream, known.batches.t_ns
        self._low = np.searchsorted(known.stream, np.arange(streams + 1))
        self._first = known.batches.first_seq & (SPAN - 1)
        last = self._low[1:] - 1
        some = np.diff(self._low) > 0
        self._end = np.ones(streams, np.int64)  # one past each stream's last number
        self._end[some] = self._first[last[some]] + known.batches.count[last[some]]

    def first(self, stream: Ints, t_ns: Ints) -> Ints:
        """Return the first number that was published at this time or later."""
        return self._at(stream, t_ns, earliest=True)

    def after(self, stream: Ints, t_ns: Ints) -> Ints:
        """Return the number from which on all events were published at this time or later."""
        return self._at(stream, t_ns, earliest=False)

    def _at(self, stream: Ints, t_ns: Ints, *, earliest: bool) -> Ints:
        ranks = np.unique(np.concatenate((self._t_ns, t_ns)), return_inverse=True)[1]
        known, asked = np.split(ranks, [len(self._t_ns)])
        key = self._stream * len(ranks) + known  # ordered by stream, so that each accumulates separately
        key = np.maximum.accumulate(key) if earliest else np.minimum.accumulate(key[::-1])[::-1]
        batch = np.searchsorted(key, stream * len(ranks) + asked, side="left")
        there = batch < self._low[stream + 1]
        if not len(self._first):
            return self._end[stream]
        return np.where(there, self._first[np.minimum(batch, len(self._first) - 1)], self._end[stream])


def _windows(
    asked: SubscriptionRecords,
    sessions: ClientSessions,
    clock: _PublicationClock,
    under_way: InFlightSpans,
    late_ns: int,
) -> tuple[Windows, Windows]:
    """Return the windows that subscriptions require, and those that they permit."""
    closing = _next(asked, np.isin(asked.kind, _CLOSING))
    final = _next(asked, asked.kind == RecordKind.UNSUBSCRIBED)
    row = np.arange(len(asked.kind))
    follows = np.append(asked.session[1:] == asked.session[:-1], False)[: len(row)]
    after = np.minimum(row + 1, max(len(row) - 1, 0))
    confirmed = (
        (asked.kind == RecordKind.SUBSCRIBING) & follows & (asked.kind[after] == RecordKind.SUBSCRIBED)
    )
    before = np.append(False, confirmed)[: len(row)]

    sure = np.flatnonzero(asked.kind == RecordKind.SUBSCRIBED)
    stream = sessions.stream[asked.session[sure]]
    number = asked.number[sure]
    first = np.where(number > 0, number, clock.after(stream, asked.t_ns[sure] + late_ns))
    end = _ends(asked, final[sure])
    by_time = (end < 0) & (closing[sure] >= 0)
    last_ns = asked.t_ns[np.maximum(closing[sure], 0)] - under_way.settle_ns
    end = np.where(by_time, clock.first(stream, last_ns), np.where(end < 0, SPAN - 1, end))
    must = (asked.session[sure], first, end)

    opening = np.flatnonzero(
        (asked.kind == RecordKind.SUBSCRIBING) | ((asked.kind == RecordKind.SUBSCRIBED) & ~before)
    )
    stream = sessions.stream[asked.session[opening]]
    reply = np.where(confirmed[opening], after[opening], opening)
    number = np.where(asked.kind[reply] == RecordKind.SUBSCRIBED, asked.number[reply], 0)
    first = np.where(number > 0, number, clock.first(stream, under_way.since(asked.t_ns[opening])))
    end = _ends(asked, final[opening])
    by_time = (end < 0) & (final[opening] >= 0)
    last_ns = asked.t_ns[np.maximum(final[opening], 0)] + under_way.settle_ns
    end = np.where(by_time, clock.after(stream, last_ns), np.where(end < 0, SPAN - 1, end))
    return must, (asked.session[opening], first, end)


def _ends(asked: SubscriptionRecords, final: Ints) -> Ints:
    """Return the end number that each client was notified of, or -1."""
    number = asked.number[np.maximum(final, 0)]
    return np.where((final >= 0) & (number > 0), number, -1)


def _next(asked: SubscriptionRecords, wanted: Bools) -> Ints:
    """Return, for each row, the next wanted row of its session, or -1."""
    rows = len(wanted)
    place = np.where(wanted, np.arange(rows), rows)
    following = np.append(np.minimum.accumulate(place[::-1])[::-1], rows)[1:]
    there = following < rows
    same = asked.session[np.minimum(following, max(rows - 1, 0))] == asked.session if rows else there
    return np.where(there & same, following, -1)


def _excused(known: RecordedPublications, metadata: RunMetadata, streams: int) -> Runs:
    """Return what was published during faults that the contract does not cover, in the streams' spans."""
    clock = _PublicationClock(known, streams)
    settle_ns = metadata.declared.contract.settle_us * 1000
    every = np.arange(streams)
    found = [NONE]
    for from_ns, to_ns in excused_times(metadata):
        first = clock.first(every, np.full(streams, from_ns - settle_ns))
        end = clock.after(every, np.full(streams, min(to_ns, NEVER - settle_ns) + settle_ns))
        found.append(in_group_spans(every, first, np.maximum(end - first, 0)))
    return union(Batches.joined(found))


def excused_times(metadata: RunMetadata) -> Iterator[tuple[int, int]]:
    """Yield the start and end of each fault that the contract does not cover."""
    for fault in metadata.applied_changes:
        if not fault.mends and not metadata.declared.contract.holds_through(fault.kind):
            yield fault.t_ns, mended_ns(fault, metadata)


def all_events_due_to_all(metadata: RunMetadata) -> bool:
    """Return whether every client must get everything published while it is alive, despite all faults."""
    contract = metadata.declared.contract
    return contract.audience == "all" and contract.since == "beginning" and contract.survives is None


def by_topic(metadata: RunMetadata) -> bool:
    """Return whether a client is to get a stream for as long as it is subscribed to it."""
    return metadata.declared.contract.audience == "topic"


def followed_spans(records: pa.Table, metadata: RunMetadata) -> pa.Table:
    """Return `schemas.FOLLOWED`: when streams were followed, by clients' rows of `schemas.RECORDS`."""
    asked = rows(records, kind=SUBSCRIPTIONS)
    host = codes(asked.column("host"), pc.unique(asked.column("host")).to_pylist())
    session, stream = ints(asked, "session"), ints(asked, "stream")
    columns = np.stack((host, session, stream))
    distinct, which = np.unique(columns, axis=1, return_inverse=True)
    by_session = subscriptions(asked, which.reshape(-1))
    confirmed = by_session.kind == RecordKind.SUBSCRIBED
    again = np.append(False, confirmed[:-1] & (by_session.session[1:] == by_session.session[:-1]))
    again = again[: len(confirmed)]
    opening = np.flatnonzero(confirmed & ~again)  # a repeated confirmation only updates the first number
    closing = _next(by_session, np.isin(by_session.kind, _CLOSING))[opening]
    from_ns = by_session.t_ns[opening]
    until_ns = np.where(closing >= 0, by_session.t_ns[np.maximum(closing, 0)], NEVER)
    spans = pa.table(
        {
            "stream": distinct[2][by_session.session[opening]],
            "first_bin": (from_ns - metadata.zero_ns) // schemas.BIN_NS,
            "last_bin": (until_ns - metadata.zero_ns) // schemas.BIN_NS,
        }
    )
    counted = spans.group_by(spans.column_names, use_threads=False).aggregate([([], "count_all")])
    return counted.rename_columns(schemas.FOLLOWED.names).cast(schemas.FOLLOWED)


def subscriptions(table: pa.Table, session: Ints) -> SubscriptionRecords:
    """Return the subscriptions in rows of `schemas.RECORDS` of these kinds, given the session of each row."""
    columns = [table.column(name).to_numpy().astype(np.int64) for name in ("kind", "first_seq", "t_ns")]
    order = np.argsort(session, kind="stable")
    return SubscriptionRecords(session[order], *(column[order] for column in columns))
