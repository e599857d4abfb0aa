"""Checks that all clients received the events of all streams in one order (`order: total`), without comparing
pairs.

Within a stream its numbers are the order, and `deliveries` checks it client by client. Between streams, no
number gives an order. But if a client received one piece (`sequence_intervals`) directly after another, that
piece came later. All sessions together form a graph of pieces with an edge for each step of each session. One
order fits all of them exactly if that graph has no cycle; its strongly connected components show this in time
linear in the deliveries. Two clients that received the same two events in different orders form the shortest
cycle; in a longer one, no two clients contradict each other directly.

Pieces in a cycle are ordered as most clients received them, by the median of their positions. At each client,
a piece is *out of order* if it came after a piece of its cycle that follows it in that order. So one client
that differs from many is reported, and of two that differ, one. Repeated events, and those late within their
own stream, are excluded: they are counted already.
"""

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.arrays import Bools, Ints, ParallelArrays, begins, codes, ints, pair_keys, rows
from analysis.timelines import schemas
from analysis.timelines.delivery.epochs import epoch_layout
from analysis.timelines.delivery.sequence_intervals import (
    SPAN_BITS,
    distinct,
    in_group_spans,
    incidences,
    sums,
)
from analysis.timelines.run_metadata import RunMetadata
from node.core.deliveries import RecordKind


@dataclass(frozen=True, slots=True)
class _Arrivals(ParallelArrays):
    """Arrivals of pieces at clients' sessions, as parallel arrays, session by session in order.

    row: the row of the records in which it arrived.
    """

    session: Ints
    piece: Ints
    row: Ints


def disorder(records: pa.Table, metadata: RunMetadata) -> pa.Table:
    """Return `schemas.DISORDER`: arrivals at each client that contradict the order of the others.

    records: rows of `schemas.RECORDS` of all clients, each host's in order.
    """
    records = rows(records, kind=(RecordKind.DELIVERED, RecordKind.SPARSE))
    records = epoch_layout([records]).laid_out(records)
    streams = sorted(metadata.owner)
    stream = np.searchsorted(streams, ints(records, "stream"))
    batches = in_group_spans(stream, ints(records, "first_seq"), ints(records, "count"))
    edges = distinct(np.concatenate((batches.first_seq, batches.end_seq)))
    piece, row = incidences(edges, batches)
    came = _without_counted(_Arrivals(_sessions(records)[row], piece, row), edges)
    came, cycle = _in_cycles(came, max(len(edges) - 1, 0))
    late = came.take(_behind(came.session, cycle, _usual_place(came, cycle)))
    t_ns = ints(records, "t_ns")[late.row]
    instant = np.searchsorted(metadata.instant_starts_ns, t_ns, side="right") - 1
    return pa.table(
        [
            records.column("host").take(pa.array(late.row)),
            pa.array(np.array(streams, np.int64)[stream[late.row]]).cast(pa.int32()),
            pa.array(instant),
            pa.array(np.diff(edges)[late.piece]),
        ],
        schema=schemas.DISORDER,
    )


def with_disorder(deliveries: pa.Table, found: pa.Table) -> pa.Table:
    """Add arrivals that contradict the order of other clients to `schemas.DELIVERIES`."""
    if not found.num_rows:
        return deliveries
    clients = pc.unique(deliveries.column("client")).to_pylist()
    places, late = (pair_keys(table, clients) for table in (deliveries, found))
    order = np.argsort(places)
    row = order[np.searchsorted(places, late, sorter=order)]
    instant, events = ints(found, "instant"), ints(found, "events")
    after = deliveries.column("out_of_order_after").combine_chunks()
    per_instant = after.flatten().to_numpy(zero_copy_only=False).astype(np.int64)
    instants = len(per_instant) // deliveries.num_rows
    some = instant >= 0
    per_instant = per_instant + sums(row[some] * instants + instant[some], events[some], len(per_instant))
    offsets = pa.array(np.arange(deliveries.num_rows + 1, dtype=np.int32) * instants)
    changed = {
        "out_of_order": pa.array(ints(deliveries, "out_of_order") + sums(row, events, deliveries.num_rows)),
        "out_of_order_after": pa.ListArray.from_arrays(offsets, pa.array(per_instant)),
    }
    for name, column in changed.items():
        place = deliveries.column_names.index(name)
        deliveries = deliveries.set_column(place, schemas.DELIVERIES.field(name), column)
    return deliveries


def _sessions(records: pa.Table) -> Ints:
    """Return one number for each session of each client, in the order of the records."""
    hosts = pc.unique(records.column("host")).to_pylist()
    session = ints(records, "session")
    return codes(records.column("host"), hosts) * (int(session.max(initial=0)) + 1) + session


def _without_counted(came: _Arrivals, edges: Ints) -> _Arrivals:
    """Return first arrivals that are not late within their stream."""
    intervals = max(len(edges) - 1, 1)
    came = came.take(np.argsort(came.session, kind="stable"))
    came = came.take(np.sort(np.unique(came.session * intervals + came.piece, return_index=True)[1]))
    return came.take(~_behind(came.session, edges[came.piece] >> SPAN_BITS, came.piece))


def _in_cycles(came: _Arrivals, intervals: int) -> tuple[_Arrivals, Ints]:
    """Return the arrivals of pieces in cycles, and the cycle of each."""
    from scipy.sparse import coo_array  # noqa: PLC0415  (takes half a second; few systems promise a total order)
    from scipy.sparse.csgraph import connected_components  # noqa: PLC0415

    steps = came.session[1:] == came.session[:-1]
    start, end = came.piece[:-1][steps], came.piece[1:][steps]
    graph = coo_array((np.ones(len(start), np.int8), (start, end)), shape=(intervals, intervals))
    _, component = connected_components(graph.tocsr(), connection="strong")
    chosen = (np.bincount(component, minlength=1) > 1)[component][came.piece]
    return came.take(chosen), component[came.piece[chosen]].astype(np.int64)


def _usual_place(came: _Arrivals, cycle: Ints) -> Ints:
    """Return, for each arrival, the position of its piece in its cycle: that in most sessions."""
    from scipy.ndimage import median  # noqa: PLC0415  (as above)

    if not len(cycle):  # of nothing, `median` is an error
        return cycle
    order, group = _grouped(came.session, cycle)
    counts = np.bincount(group, minlength=1)
    first = np.cumsum(counts) - counts
    share = np.empty(len(cycle))
    share[order] = (np.arange(len(cycle)) - first[group] + 0.5) / counts[group]
    intervals, which = np.unique(came.piece, return_inverse=True)
    place = np.empty(len(intervals), np.int64)
    number = np.arange(len(intervals))
    place[np.lexsort((number, median(share, which, number)))] = number
    return place[which]


def _behind(session: Ints, group: Ints, place: Ints) -> Bools:
    """Return which arrivals come, in their session, after one of their group with a later position."""
    order, apart = _grouped(session, group)
    lifted = place[order] + apart * (int(place.max(initial=0)) + 1)
    found = np.zeros(len(place), bool)
    found[order] = lifted < np.maximum.accumulate(lifted)
    return found


def _grouped(session: Ints, group: Ints) -> tuple[Ints, Ints]:
    """Return the order that groups by session and group, and the number of each such set, from 0."""
    order = np.lexsort((np.arange(len(group)), group, session))
    return order, np.cumsum(begins(session[order], group[order])) - 1
