"""Holds what clients got against what the drivers know to be published: many clients and streams at once.

What is expected of a client: in each session (from a start of its process to its end) every event once, in
order, or the event's tombstone. A session that lasts to the end of the run, whenever it began, is expected to
have everything that was acknowledged to a driver; one that ended before (a kill, a leave) everything up to
the last event that it got.

*Lost* is what was expected in a session and is not accounted for; a tombstone accounts for its events only as
far as the rule in force explains it (`finality`), and the beginning of another epoch of the stream accounts
for nothing. *Duplicated* is an event that came again in a session, and one that was published twice
(`verification`). *Out of order* is what came for the first time after a later one. *Resurrected* is what came
after its tombstone: collection is final (Sprinkler 2.1). *Corrupted* and *unverified* are told by the CRCs
(`verification`); an event whose number was acknowledged for another one, too, is corrupted at every client. A
tombstone over events that came before is none of these.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.timelines import schemas
from analysis.timelines.arrays import Bools, Ints, codes, ints, rows
from analysis.timelines.collecting import Marks
from analysis.timelines.epochs import Layout, layout
from analysis.timelines.facts import Facts
from analysis.timelines.finality import unexplained
from analysis.timelines.groups import SPAN, SPAN_BITS, replicated, shifted, sums, totals, within
from analysis.timelines.pieces import Batches, digest, repeats, union
from analysis.timelines.recorded import Got, Published
from analysis.timelines.verification import verify
from node.core.deliveries import RecordKind


@dataclass(frozen=True, slots=True)
class Sessions:
    """The sessions of all groups: the group of each, and whether it lasted to the end of the run."""

    group: Ints
    lasted: Bools


def check(
    clients: Sequence[str], published: pa.Table, records: pa.Table, facts: Facts, marks: Marks | None = None
) -> pa.Table:
    """`schemas.DELIVERIES` of some clients, for every stream of the run.

    published: the drivers' rows of `schemas.RECORDS`. records: the clients' own. Each host's in order.
    marks: what drivers marked, if they did.
    """
    streams = list(facts.owner)
    groups = len(clients) * len(streams)
    epochs = layout([published, records])
    published, records = epochs.laid_out(published), epochs.laid_out(records)
    known = published_of(published, facts)
    got, sessions = _arranged(clients, records, facts)
    batches = shifted(got.session, got.first, got.reach)
    again = repeats(batches)
    again_events = _repeats_of_events(batches, got, again)
    is_event = got.events > 0
    duplicated = np.where(is_event, np.minimum(again_events, got.events), 0)
    resurrected = np.where(is_event, np.minimum(again - again_events, got.events), 0)
    late = _behind(batches) - again
    new = got.reach - _repeats_over_sessions(got, again, sessions)
    new_events = np.where(got.whole, new, np.minimum(got.events, new))
    verdict = verify(got.group % max(len(streams), 1), got, known, new, facts)
    duplicated = duplicated + verdict.published_twice
    marks = marks.laid_out(epochs) if marks is not None else None
    unjustified = unexplained(got, known, facts, marks)
    covered = union(shifted(got.group, got.first, got.reach))
    early = got.t_ns <= (facts.stopped_ns or np.iinfo(np.int64).max)
    stream = np.tile(np.arange(len(streams)), len(clients))
    columns = {
        "client": pa.array(clients, pa.string()).take(
            pa.array(np.repeat(np.arange(len(clients)), len(streams)))
        ),
        "stream": np.array(streams, np.int64)[stream],
        "published": totals(known.runs, len(streams))[stream],
        "delivered": sums(got.group, new_events, groups),
        "tombstoned": sums(got.group, new - new_events, groups),
        "covered": totals(covered, groups),
        "delivered_while_running": sums(got.group[early], new_events[early], groups),
        "lost": _lost(union(_accounted(batches, got, unjustified)), sessions, known, groups, len(streams))
        + sums(got.group, np.where(is_event, unjustified, 0), groups),
        "duplicated": sums(got.group, duplicated, groups),
        "out_of_order": sums(got.group, late, groups),
        "resurrected": sums(got.group, resurrected, groups),
        "corrupted": sums(got.group, verdict.corrupted, groups) + _given_twice(known, len(streams))[stream],
        "unverified": sums(got.group, verdict.unverified, groups),
        "duplicated_after": _per_fault(facts, got, duplicated, groups),
        "out_of_order_after": _per_fault(facts, got, late, groups),
        "digest": _digests(covered, groups, streams, epochs),
        "published_digest": _digests(known.runs, len(streams), streams, epochs)[stream],
    }
    arrays = [columns[field.name] for field in schemas.DELIVERIES]
    return pa.Table.from_arrays(
        [(pa.array(a) if isinstance(a, np.ndarray) else a).cast(field.type)
         for a, field in zip(arrays, schemas.DELIVERIES, strict=True)],
        schema=schemas.DELIVERIES,
    )  # fmt: skip


def _given_twice(known: Published, streams: int) -> Ints:
    """For each stream, acknowledged events under a number that another acknowledged event has, too."""
    counted = sums(known.stream, known.batches.count, streams)
    return counted - totals(known.runs, streams)


def published_of(records: pa.Table, facts: Facts) -> Published:
    """The drivers' acknowledged batches, of the run's streams, in order of stream and sequence number."""
    table = rows(records, kind=int(RecordKind.PUBLISHED))
    streams = list(facts.owner)
    stream = _places(ints(table, "stream"), streams)
    mine = np.flatnonzero(stream >= 0)
    batches = shifted(stream[mine], ints(table, "first_seq")[mine], ints(table, "count")[mine])
    order = np.argsort(batches.first_seq, kind="stable")
    drivers = codes(table.column("host"), pc.unique(table.column("host")).to_pylist())
    return Published(
        stream=stream[mine][order],
        batches=Batches(batches.first_seq[order], batches.count[order], ints(table, "t_ns")[mine][order]),
        crc=ints(table, "batch_crc")[mine][order],
        running=ints(table, "running_crc")[mine][order],
        driver=drivers[mine][order],
        session=ints(table, "session")[mine][order],
        runs=union(batches),
    )


def _arranged(clients: Sequence[str], records: pa.Table, facts: Facts) -> tuple[Got, Sessions]:
    """The clients' records by group and session, and all sessions that there were or should have been."""
    streams = list(facts.owner)
    client = codes(records.column("host"), list(clients))
    last = np.array([facts.starts.get(name, 1) - 1 for name in clients], np.int64)
    session = ints(records, "session")
    np.maximum.at(last, client[client >= 0], session[client >= 0])
    per_client = last + 1
    before = np.cumsum(per_client) - per_client  # sessions of the clients before
    kind, stream = ints(records, "kind"), _places(ints(records, "stream"), streams)
    said = np.isin(kind, (RecordKind.DELIVERED, RecordKind.TOMBSTONE, RecordKind.SPARSE))
    mine = np.flatnonzero(said & (client >= 0) & (stream >= 0))
    number = before[client[mine]] * len(streams) + stream[mine] * per_client[client[mine]] + session[mine]
    mine, number = (part[np.argsort(number, kind="stable")] for part in (mine, number))
    count = ints(records, "count")[mine]
    tombstone = kind[mine] == RecordKind.TOMBSTONE
    got = Got(
        group=client[mine] * len(streams) + stream[mine],
        session=number,
        first=ints(records, "first_seq")[mine],
        reach=np.maximum(count, ints(records, "covered")[mine]),
        events=np.where(tombstone, 0, count),
        whole=kind[mine] == RecordKind.DELIVERED,
        t_ns=ints(records, "t_ns")[mine],
        crc=ints(records, "batch_crc")[mine],
        running=ints(records, "running_crc")[mine],
    )
    groups = np.arange(len(clients) * len(streams))
    each = np.repeat(per_client, len(streams))
    ends = np.cumsum(each)
    lasted = np.zeros(int(each.sum()), bool)
    there = np.repeat([name not in facts.gone for name in clients], len(streams)).astype(bool)
    lasted[ends[there] - 1] = True
    return got, Sessions(np.repeat(groups, each), lasted)


def _repeats_of_events(batches: Batches, got: Got, again: Ints) -> Ints:
    """For each batch how many of its numbers came as events before; SPARSE counts as if all had."""
    some = np.flatnonzero(got.events > 0)
    if len(some) == len(again):
        return again
    found = np.zeros_like(again)
    found[some] = repeats(Batches(batches.first_seq[some], batches.count[some], batches.t_ns[some]))
    return found


def _repeats_over_sessions(got: Got, again: Ints, sessions: Sessions) -> Ints:
    """The same over all sessions of a client."""
    if len(np.unique(sessions.group)) == len(sessions.group):
        return again
    return repeats(shifted(got.group, got.first, got.reach))


def _behind(batches: Batches) -> Ints:
    """How many numbers of each batch lie before the end of an earlier batch of its session."""
    end = batches.end_seq
    highest = np.concatenate((np.zeros(min(len(end), 1), np.int64), np.maximum.accumulate(end)[:-1]))
    behind: Ints = np.clip(np.minimum(end, highest) - batches.first_seq, 0, None)
    return behind


def _lost(
    covered: tuple[Ints, Ints], sessions: Sessions, known: Published, groups: int, streams: int
) -> Ints:
    """What was expected in each session and is not accounted for, summed by group."""
    count = len(sessions.group)
    reached = np.zeros(count, np.int64)
    np.maximum.at(reached, covered[0] >> SPAN_BITS, covered[1] & (SPAN - 1))
    limit = np.where(sessions.lasted, SPAN, reached)
    expected = replicated(known.runs, streams, sessions.group % max(streams, 1), limit)
    wanted = union(expected)
    accounted = within(covered, wanted[0], wanted[1])
    missing = totals(wanted, count) - sums(wanted[0] >> SPAN_BITS, accounted, count)
    return sums(sessions.group, missing, groups)


def _per_fault(facts: Facts, got: Got, events: Ints, groups: int) -> pa.Array:
    """Events per group and applied fault: those between it and the next one."""
    starts = np.array([fault.t_ns for fault in facts.applied_faults], np.int64)
    fault = np.searchsorted(starts, got.t_ns, side="right") - 1
    counted = np.flatnonzero((fault >= 0) & (events > 0))
    cell = got.group[counted] * len(starts) + fault[counted]
    cells = sums(cell, events[counted], groups * len(starts))
    offsets = np.arange(groups + 1, dtype=np.int32) * len(starts)
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), pa.array(cells))


def _accounted(batches: Batches, got: Got, unjustified: Ints) -> Batches:
    """The batches, and of tombstones only the part that the rule explains: the oldest."""
    gone = np.where(got.events > 0, 0, unjustified)
    return Batches(batches.first_seq, batches.count - np.minimum(gone, batches.count), batches.t_ns)


def _digests(runs: tuple[Ints, Ints], groups: int, streams: list[int], epochs: Layout) -> Ints:
    """`pieces.digest` of each group's runs, in sequence numbers."""
    low = np.searchsorted(runs[0], np.arange(groups + 1, dtype=np.int64) << SPAN_BITS)
    first = runs[0] & (SPAN - 1)
    length = runs[1] - runs[0]
    found = []
    for group, (a, b) in enumerate(pairwise(low.tolist())):
        seqs = epochs.original(streams[group % len(streams)], first[a:b])
        found.append(digest((seqs, seqs + length[a:b])))
    return np.array(found, np.int64)


def _places(values: Ints, among: list[int]) -> Ints:
    """Where each value stands in a list, or -1."""
    found: Ints = pc.fill_null(
        pc.index_in(pa.array(values), value_set=pa.array(among, pa.int64())), -1
    ).to_numpy()
    return found.astype(np.int64)
