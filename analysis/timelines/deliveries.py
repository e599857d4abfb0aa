"""Holds what every client got against what the drivers know to be published: a Spark step, one group per
stream.

Within a session of a client (from a start of its process to the next), an event is *duplicated* when it comes
again, *out of order* when it comes for the first time after a later one. *Lost* is what was published and
came in no session. *Corrupted* is what came with another CRC than its driver's, and what nobody published
(unless that driver was killed: then its last records may be missing). Batches keep their publisher's
boundaries, so CRCs are compared batch by batch; the running CRC shows bytes that a client delivered without
recording them. Tombstones cover their events and have no bytes. What could not be compared is counted as
unverified.
"""

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from analysis.timelines import schemas
from analysis.timelines.arrays import Ints, ints, rows
from analysis.timelines.facts import Facts
from analysis.timelines.pieces import Batches, digest, repeats, shared, total, union
from node.core.deliveries import RecordKind

Bools = npt.NDArray[np.bool_]


def check(client: str, published: pa.Table, got: pa.Table, facts: Facts) -> pa.Table:
    """`schemas.DELIVERIES` of one client, for every stream of the run.

    published: the drivers' rows of `schemas.RECORDS`. got: the client's own. Both in order of position.
    """
    published = rows(published, kind=int(RecordKind.PUBLISHED))
    got = got.filter(pc.not_equal(got.column("kind"), int(RecordKind.SESSION)))
    found = [
        check_stream(facts, stream, client, rows(published, stream=stream), rows(got, stream=stream))
        for stream in facts.owner
    ]
    return pa.Table.from_pylist(found, schema=schemas.DELIVERIES)


def check_stream(
    facts: Facts, stream: int, client: str, published: pa.Table, got: pa.Table
) -> dict[str, object]:
    """The row of one client and stream. Both tables are rows of `schemas.RECORDS` in order of position."""
    sessions = ints(got, "session")
    duplicated, late = (np.zeros(got.num_rows, np.int64) for _ in range(2))
    for session in np.unique(sessions):
        mine = sessions == session
        duplicated[mine], late[mine] = disorder(_batches(got.filter(mine)))
    has, known = union(_batches(got)), union(_batches(published))
    lost = total(known) - shared(known, has)
    corrupted, unverified = compare(published, got, complete=_complete(facts, stream))
    times = ints(got, "t_ns")
    early = union(_batches(got.filter(times <= (facts.stopped_ns or times.max(initial=0)))))
    return {
        "client": client,
        "stream": stream,
        "published": total(known),
        "delivered": total(has),
        "delivered_while_running": total(early),
        "lost": lost,
        "duplicated": int(duplicated.sum()),
        "out_of_order": int(late.sum()),
        "corrupted": corrupted,
        "unverified": unverified,
        "duplicated_after": _per_fault(facts, times, duplicated),
        "out_of_order_after": _per_fault(facts, times, late),
        "digest": digest(has),
        "published_digest": digest(known),
    }


def disorder(batches: Batches) -> tuple[Ints, Ints]:
    """For each batch in order of delivery: how many of its events came before, and how many came late for the
    first time.
    """
    end = batches.end_seq
    highest = np.concatenate(([0], np.maximum.accumulate(end)[:-1])) if len(end) else end
    behind = np.clip(np.minimum(end, highest) - batches.first_seq, 0, None)
    repeated = repeats(batches)
    return repeated, behind - repeated


def compare(published: pa.Table, got: pa.Table, *, complete: bool) -> tuple[int, int]:
    """Events whose bytes are not those that were published, and events of which that cannot be said.

    complete: whether the drivers' records are known to hold everything that was published.
    """
    data = got.filter(pc.equal(got.column("kind"), int(RecordKind.DELIVERED)))
    order = np.argsort(ints(published, "first_seq"), kind="stable")
    first, count, crc, running = (
        ints(published, name)[order] for name in ("first_seq", "count", "batch_crc", "running_crc")
    )
    got_first, got_count = ints(data, "first_seq"), ints(data, "count")
    index = np.clip(np.searchsorted(first, got_first), 0, max(len(first) - 1, 0))
    if not len(first):
        return (int(got_count.sum()), 0) if complete else (0, int(got_count.sum()))
    same = (first[index] == got_first) & (count[index] == got_count)
    wrong = same & (crc[index] != ints(data, "batch_crc"))
    wrong |= same & ~wrong & _runs_astray(published, data, same, running[index])
    unknown = ~same
    has, known = union(_batches(data.filter(unknown))), union(_batches(published))
    invented = total(has) - shared(has, known)
    unverified = int(got_count[unknown].sum())
    corrupted = int(got_count[wrong].sum())
    return (corrupted + invented, unverified - invented) if complete else (corrupted, unverified)


def _runs_astray(published: pa.Table, data: pa.Table, same: Bools, expected: Ints) -> Bools:
    """Batches at which the client's running CRC first leaves the driver's.

    Comparable only where one driver publishes the stream and the client's session has it from its first
    event, whole and in order; elsewhere nothing is said.
    """
    astray = np.zeros(data.num_rows, bool)
    if len(pc.unique(published.column("host"))) != 1 or ints(published, "session").any():
        return astray
    start = int(ints(published, "first_seq").min())
    sessions, first, count = (ints(data, name) for name in ("session", "first_seq", "count"))
    for session in np.unique(sessions):
        mine = np.flatnonzero(sessions == session)
        follows = first[mine] == np.concatenate(([start], (first + count)[mine][:-1]))
        differs = np.cumprod(follows & same[mine]).astype(bool) & (
            expected[mine] != ints(data, "running_crc")[mine]
        )
        astray[mine[np.flatnonzero(differs)[:1]]] = True
    return astray


def _complete(facts: Facts, stream: int) -> bool:
    """Whether every driver of the stream lived to write down all its acknowledgements."""
    drivers = [
        host.name
        for host in facts.hosts.values()
        if host.role == "driver" and host.region == facts.owner.get(stream)
    ]
    return facts.outcome == "completed" and not facts.disturbed & set(drivers)


def _per_fault(facts: Facts, times: Ints, events: Ints) -> list[int]:
    """Events per applied fault: those between it and the next one."""
    starts = np.array([fault.t_ns for fault in facts.applied_faults], np.int64)
    fault = np.searchsorted(starts, times, side="right") - 1
    found = np.bincount(fault[fault >= 0], events[fault >= 0], minlength=len(starts))
    return [int(count) for count in found]


def _batches(table: pa.Table) -> Batches:
    return Batches(ints(table, "first_seq"), ints(table, "count"), ints(table, "t_ns"))
