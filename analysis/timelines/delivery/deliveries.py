"""Compares what clients received with what was published: many clients and streams at once."""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.arrays import NEVER, Ints, codes, ints, places, rows
from analysis.timelines import schemas
from analysis.timelines.delivery.collecting import CollectionMarks
from analysis.timelines.delivery.content import NOTHING, ContentRecords, EventMatches
from analysis.timelines.delivery.delivery_records import (
    DELIVERED_KINDS,
    SUBSCRIPTIONS,
    RecordedDeliveries,
    RecordedPublications,
)
from analysis.timelines.delivery.epochs import EpochLayout, epoch_layout
from analysis.timelines.delivery.expected import (
    ClientSessions,
    SubscriptionRecords,
    Windows,
    all_events_due_to_all,
    expected,
    subscriptions,
)
from analysis.timelines.delivery.sequence_intervals import (
    SPAN,
    SPAN_BITS,
    Batches,
    Runs,
    check_groups,
    difference,
    digest,
    in_group_spans,
    repeats,
    sums,
    totals,
    union,
    untimed,
    within,
)
from analysis.timelines.delivery.stream_pieces import Sets
from analysis.timelines.delivery.wrong_deliveries import wrong_deliveries
from analysis.timelines.recovering.finality import unexplained
from analysis.timelines.run_metadata import RunMetadata, check_planned_streams
from analysis.timelines.under_way import InFlightSpans
from analysis.timelines.verification import published_twice, verify
from node.core.deliveries import RecordKind


@dataclass(frozen=True, slots=True)
class GroupedDeliveries:
    """The records of some clients, and the client of each group."""

    got: RecordedDeliveries
    sessions: ClientSessions
    asked: SubscriptionRecords | tuple[Windows, Windows]
    client: Ints

    @property
    def stream(self) -> Ints:
        """The stream of each group, as an index in the run's list."""
        return self.got.of_group


def delivery_table(
    clients: Sequence[str],
    published: pa.Table,
    records: pa.Table,
    metadata: RunMetadata,
    marks: CollectionMarks | None = None,
    *,
    content: ContentRecords | None = None,
) -> pa.Table:
    """Return `schemas.DELIVERIES` of some clients: a row for every stream that concerns them.

    published: the drivers' rows of `schemas.RECORDS`. records: the clients' own. Both in order for each host.
    marks: the drivers' marks, if any. content: the events' values and these clients' subscriptions, if the
    contract is by content. Raises AnalysisError for records of a stream that the run does not have.
    """
    streams = list(metadata.owner)
    for table in (published, records):
        about = pc.not_equal(table.column("kind"), int(RecordKind.SESSION))
        check_planned_streams(table.filter(about), metadata, "recorded")
    epochs = epoch_layout([published, records])
    published, records = epochs.laid_out(published), epochs.laid_out(records)
    known = recorded_publications(published, metadata)
    arranged = _arranged(clients, records, metadata, content.laid_out(epochs) if content else None)
    got, sessions, stream = arranged.got, arranged.sessions, arranged.stream
    groups = len(stream)
    batches = in_group_spans(got.session, got.first, got.reach)
    again = repeats(batches)
    reached = _reached(batches, len(sessions.group))
    wanted = expected(sessions, reached, arranged.asked, known, metadata)
    new = got.reach - _repeats_over_sessions(got, again, sessions)
    new_events = np.where(got.whole, new, np.minimum(got.events, new))
    verdict = verify(got.stream, got, known, new, metadata)
    wrong = wrong_deliveries(batches, got, known, metadata, again=again, verdict=verdict, wanted=wanted)
    marks = marks.laid_out(epochs) if marks is not None else None
    unjustified = unexplained(got, known, metadata, marks)
    covered = union(in_group_spans(got.group, got.first, got.reach))
    accounted = union(_accounted(batches, got, unjustified))
    early = got.t_ns <= (metadata.stopped_ns or NEVER)
    columns: dict[str, Any] = {
        "client": pa.array(clients, pa.string()).take(pa.array(arranged.client)),
        "stream": np.array(streams, np.int64)[stream],
        "published": totals(known.runs, len(streams))[stream],
        "delivered": sums(got.group, new_events, groups),
        "tombstoned": sums(got.group, new - new_events, groups),
        "covered": totals(covered, groups),
        "delivered_while_running": sums(got.group[early], new_events[early], groups),
        "lost": _lost(accounted, sessions, wanted.must, groups)
        + sums(got.group, np.where(got.events > 0, unjustified, 0), groups),
        "unacknowledged": _lost(accounted, sessions, wanted.unacknowledged, groups),
        **{name: sums(got.group, events, groups) for name, events in asdict(wrong).items()},
        "corrupted": sums(got.group, verdict.corrupted, groups),
        "published_twice": published_twice(known.stream, known.batches, len(streams))[stream],
        "unverified": sums(got.group, verdict.unverified, groups),
        "duplicated_after": _per_instant(metadata, got, wrong.duplicated, groups),
        "out_of_order_after": _per_instant(metadata, got, wrong.out_of_order, groups),
        "digest": _digests(covered, [streams[place] for place in stream.tolist()], epochs),
        "published_digest": _digests(known.runs, streams, epochs)[stream],
    }
    return pa.table(columns).select(schemas.DELIVERIES.names).cast(schemas.DELIVERIES)


def required_sets(
    clients: Sequence[str],
    published: pa.Table,
    records: pa.Table,
    metadata: RunMetadata,
    content: ContentRecords | None = None,
) -> dict[int, Sets] | None:
    """Return, by stream, the numbers that each client must get, and those due to it regardless of excusing
    faults.

    See `expected.Expected`; numbers are over all sessions of a client. Return None if every client must get
    everything published while it is alive. published, records: rows of `schemas.RECORDS`, of the streams in
    `metadata`. content: as for `delivery_table`.
    """
    if all_events_due_to_all(metadata):
        return None
    arranged = _arranged(clients, records, metadata, content)
    got, sessions = arranged.got, arranged.sessions
    reached = _reached(in_group_spans(got.session, got.first, got.reach), len(sessions.group))
    wanted = expected(sessions, reached, arranged.asked, recorded_publications(published, metadata), metadata)
    streams = list(metadata.owner)
    found: dict[int, tuple[dict[str, Runs], dict[str, Runs]]] = {stream: ({}, {}) for stream in streams}
    for number, runs in enumerate((wanted.must, wanted.due)):
        for group, mine in _by_group(runs, sessions):
            found[streams[arranged.stream[group]]][number][clients[arranged.client[group]]] = mine
    return dict(found)


def _by_group(runs: Runs, sessions: ClientSessions) -> Iterator[tuple[int, Runs]]:
    """Yield the runs of each group that has any, over all its sessions."""
    group = sessions.group[runs[0] >> SPAN_BITS]
    first, size = runs[0] & (SPAN - 1), runs[1] - runs[0]
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    several = np.bincount(sessions.group) > 1
    for low, high in pairwise([*starts.tolist(), len(group)]):
        mine = first[low:high], first[low:high] + size[low:high]
        if several[group[low]]:
            mine = union(untimed(first[low:high], size[low:high]))
        yield int(group[low]), mine


def recorded_publications(records: pa.Table, metadata: RunMetadata) -> RecordedPublications:
    """Return the drivers' published batches of the run's streams, ordered by stream and sequence number."""
    table = rows(records, kind=int(RecordKind.PUBLISHED))
    streams = list(metadata.owner)
    stream = places(ints(table, "stream"), streams)
    mine = np.flatnonzero(stream >= 0)
    batches = _in_spans(table, streams)
    order = np.argsort(batches.first_seq, kind="stable")
    mine = mine[order]
    drivers = codes(table.column("host"), pc.unique(table.column("host")).to_pylist())
    return RecordedPublications(
        stream=stream[mine],
        batches=replace(batches.take(order), t_ns=ints(table, "t_ns")[mine]),
        crc=ints(table, "batch_crc")[mine],
        running=ints(table, "running_crc")[mine],
        driver=drivers[mine],
        session=ints(table, "session")[mine],
        runs=union(batches),
        unacknowledged=_unacknowledged(records, metadata),
    )


def _in_spans(table: pa.Table, streams: list[int]) -> Batches:
    """Return the batches in rows of these streams, in the streams' spans."""
    stream = places(ints(table, "stream"), streams)
    mine = np.flatnonzero(stream >= 0)
    return in_group_spans(stream[mine], ints(table, "first_seq")[mine], ints(table, "count")[mine])


def _unacknowledged(records: pa.Table, metadata: RunMetadata) -> Runs:
    """Return events whose publisher died before their acknowledgement, in the streams' spans."""
    streams = list(metadata.owner)
    if metadata.declared.contract.published != "sent-then-acknowledged":
        return union(in_group_spans(*(np.zeros(0, np.int64),) * 3))
    hosts = pc.unique(records.column("host")).to_pylist()
    last = np.array([metadata.starts.get(name, 1) - 1 for name in hosts], np.int64)
    np.maximum.at(last, codes(records.column("host"), hosts), ints(records, "session"))
    last[[name in metadata.gone for name in hosts]] = NEVER
    sent = rows(records, kind=int(RecordKind.PUBLISHED))
    died = ints(sent, "session") < last[codes(sent.column("host"), hosts)]
    taken = _in_spans(rows(records, kind=int(RecordKind.ACKNOWLEDGED)), streams)
    return difference(union(_in_spans(sent.filter(pa.array(died)), streams)), union(taken))


def _arranged(
    clients: Sequence[str], records: pa.Table, metadata: RunMetadata, content: ContentRecords | None = None
) -> GroupedDeliveries:
    """Return the clients' records by group and session, and all actual or expected sessions.

    If every client is to get everything, these are all sessions with all streams. Otherwise they are those
    with a record, or with events due by content.
    """
    streams = list(metadata.owner)
    client = codes(records.column("host"), list(clients))
    last = np.array([metadata.starts.get(name, 1) - 1 for name in clients], np.int64)
    session = ints(records, "session")
    np.maximum.at(last, client[client >= 0], session[client >= 0])
    kind, stream = ints(records, "kind"), places(ints(records, "stream"), streams)
    there = (client >= 0) & (stream >= 0)
    mine = np.flatnonzero(np.isin(kind, DELIVERED_KINDS) & there)
    asked = np.flatnonzero(np.isin(kind, SUBSCRIPTIONS) & there)
    matched = (
        content.matched(metadata.declared.contract, streams, InFlightSpans.from_metadata(metadata))
        if content
        else NOTHING
    )
    np.maximum.at(last, matched.client, matched.session)
    most = int(last.max(initial=0)) + 1
    key = (client * len(streams) + stream) * most + session
    for_content = matched.client * len(streams) + places(matched.stream, streams)
    for_content = for_content * most + matched.session
    if metadata.declared.contract.audience == "all":
        pairs = np.repeat(np.arange(len(clients) * len(streams)), np.repeat(last + 1, len(streams)))
        starts = np.searchsorted(pairs, pairs)
        keys = pairs * most + np.arange(len(pairs)) - starts
    else:
        keys = np.unique(np.concatenate((key[mine], key[asked], for_content)))
    check_groups(len(keys))
    groups, group = np.unique(keys // most, return_inverse=True)
    of_client, of_stream = groups // max(len(streams), 1), groups % max(len(streams), 1)
    present = np.array([name not in metadata.gone for name in clients], bool)
    lasted = (keys % most == last[of_client[group]]) & present[of_client[group]]
    number = np.searchsorted(keys, key[mine])
    order = np.argsort(number, kind="stable")
    mine, number = mine[order], number[order]
    count = ints(records, "count")[mine]
    tombstone = kind[mine] == RecordKind.TOMBSTONE
    got = RecordedDeliveries(
        group=group[number].astype(np.int64),
        session=number,
        stream=stream[mine],
        of_group=of_stream,
        first=ints(records, "first_seq")[mine],
        reach=np.maximum(count, ints(records, "covered")[mine]),
        events=np.where(tombstone, 0, count),
        whole=kind[mine] == RecordKind.DELIVERED,
        t_ns=ints(records, "t_ns")[mine],
        crc=ints(records, "batch_crc")[mine],
        running=ints(records, "running_crc")[mine],
    )
    last_ns = np.zeros(len(keys), np.int64)
    np.maximum.at(last_ns, got.session, got.t_ns)
    return GroupedDeliveries(
        got,
        ClientSessions(group.astype(np.int64), of_stream[group], lasted, last_ns),
        subscriptions(records.take(pa.array(asked)), np.searchsorted(keys, key[asked]))
        if content is None
        else _matched_windows(matched, np.searchsorted(keys, for_content)),
        of_client,
    )


def _matched_windows(matched: EventMatches, session: Ints) -> tuple[Windows, Windows]:
    """Return the windows of events that must and may arrive by content, one per event."""
    must = matched.must
    return (session[must], matched.seq[must], matched.seq[must] + 1), (session, matched.seq, matched.seq + 1)


def _repeats_over_sessions(got: RecordedDeliveries, again: Ints, sessions: ClientSessions) -> Ints:
    """Return, for each batch, how many of its events the client already had, in any session."""
    if len(np.unique(sessions.group)) == len(sessions.group):
        return again
    return repeats(in_group_spans(got.group, got.first, got.reach))


def _reached(batches: Batches, sessions: int) -> Ints:
    """Return one past the last number that each session received."""
    reached = np.zeros(sessions, np.int64)
    np.maximum.at(reached, batches.first_seq >> SPAN_BITS, batches.end_seq & (SPAN - 1))
    return reached


def _lost(covered: Runs, sessions: ClientSessions, wanted: Runs, groups: int) -> Ints:
    """Return the events that were expected in each session and are not accounted for, summed by group."""
    first, end = wanted
    accounted = within(covered, first, end)
    return sums(sessions.group[first >> SPAN_BITS], end - first - accounted, groups)


def _per_instant(metadata: RunMetadata, got: RecordedDeliveries, events: Ints, groups: int) -> pa.Array:
    """Return events per group and instant with faults: those between it and the next instant."""
    starts = np.array(metadata.instant_starts_ns, np.int64)
    instant = np.searchsorted(starts, got.t_ns, side="right") - 1
    counted = np.flatnonzero((instant >= 0) & (events > 0))
    cell = got.group[counted] * len(starts) + instant[counted]
    cells = sums(cell, events[counted], groups * len(starts))
    offsets = np.arange(groups + 1, dtype=np.int32) * len(starts)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(cells))


def _accounted(batches: Batches, got: RecordedDeliveries, unjustified: Ints) -> Batches:
    """Return the batches; of tombstones only the oldest part, which the rule explains."""
    gone = np.where(got.events > 0, 0, unjustified)
    return replace(batches, count=batches.count - np.minimum(gone, batches.count))


def _digests(runs: Runs, streams: list[int], epochs: EpochLayout) -> Ints:
    """Return `sequence_intervals.digest` of each group's runs, in sequence numbers. streams: the stream of
    each group.
    """
    low = np.searchsorted(runs[0], np.arange(len(streams) + 1, dtype=np.int64) << SPAN_BITS)
    first = runs[0] & (SPAN - 1)
    length = runs[1] - runs[0]
    found = []
    for group, (a, b) in enumerate(pairwise(low.tolist())):
        seqs = epochs.original(streams[group], first[a:b])
        found.append(digest((seqs, seqs + length[a:b])))
    return np.array(found, np.int64)
