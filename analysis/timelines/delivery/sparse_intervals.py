"""One stream's pieces if each client gets only some of them: arrivals and due events as (client, piece)
pairs.

A table of all clients by all pieces would be mostly empty: for 10,000 clients that each want a hundredth of
25,000 events, every property would take two gigabytes. Here only due and arrived pieces take memory. For
steps that process each client separately, `blocks` builds such tables for some clients at a time, with the
pieces that concern them.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.timelines.arrays import Bools, Ints, codes, rows
from analysis.timelines.delivery.sequence_intervals import (
    NEVER,
    NONE,
    Batches,
    SequenceIntervals,
    distinct,
    incidences,
)
from analysis.timelines.delivery.stream_groups import Runs, batches
from analysis.timelines.run_window import RunWindow
from node.core.deliveries import RecordKind

CELLS_MAX = 1 << 21
"""Largest number of clients times pieces of a block: about 100 MB while it is processed."""


@dataclass(frozen=True, slots=True)
class SparseIntervals:
    """The pieces of one stream as in `SequenceIntervals`. A pair is host * pieces + piece; `arrived`,
    `wanted` and `due` are sorted distinct pairs.
    """

    first_seq: Ints
    count: Ints
    published_ns: Ints
    hosts: tuple[str, ...]
    arrived: Ints
    arrived_ns: Ints
    wanted: Ints
    due: Ints

    def last_ns(self, hosts: Sequence[int]) -> Ints:
        """Return the same as `SequenceIntervals.last_ns`."""
        pieces = len(self.count)
        there = np.zeros(len(self.hosts), bool)
        there[list(hosts)] = True
        wanted = self.wanted[there[self.wanted // max(pieces, 1)]]
        at = np.searchsorted(self.arrived, wanted)
        came = np.append(self.arrived, -1)[at] == wanted
        came_ns = np.where(came, np.append(self.arrived_ns, NEVER)[at], NEVER)
        found = np.full(pieces, -1, np.int64)
        np.maximum.at(found, wanted % max(pieces, 1), came_ns)
        return found

    @property
    def came(self) -> Bools:
        """See `SequenceIntervals.came`."""
        found = np.zeros(len(self.count), bool)
        found[self.arrived % max(len(self.count), 1)] = True
        return found

    def blocks(self, cells: int = CELLS_MAX) -> Iterator[SequenceIntervals]:
        """Yield all clients in their order, some at a time, as dense intervals.

        A block has the pieces that arrived at any of its clients or were due there, and the last one
        published. It has at most this many cells, unless a single client has more.
        """
        share = max(1, cells // max(1, len(self.count)))
        for low in range(0, max(1, len(self.hosts)), share):
            yield self._block(low, min(low + share, len(self.hosts)))

    def _block(self, low: int, high: int) -> SequenceIntervals:
        pieces = len(self.count)
        mine = [
            slice(*np.searchsorted(pairs, (low * pieces, high * pieces)))
            for pairs in (self.arrived, self.wanted, self.due)
        ]
        pairs = self.arrived[mine[0]], self.wanted[mine[1]], self.due[mine[2]]
        shown = np.zeros(pieces, bool)
        for each in pairs:
            shown[each % max(pieces, 1)] = True
        if pieces:
            shown[np.argmax(np.where(self.published_ns == NEVER, -1, self.published_ns))] = True
        column = np.cumsum(shown) - 1
        size = high - low, int(shown.sum())
        arrived_ns = np.full(size, NEVER, np.int64)
        tables = arrived_ns, np.zeros(size, bool), np.zeros(size, bool)
        for table, some, values in zip(tables, pairs, (self.arrived_ns[mine[0]], True, True), strict=True):
            table[some // max(pieces, 1) - low, column[some % max(pieces, 1)]] = values
        return SequenceIntervals(
            self.first_seq[shown],
            self.count[shown],
            self.published_ns[shown],
            self.hosts[low:high],
            *tables,
        )


def from_records(
    published: pa.Table, taken: pa.Table, got: pa.Table, clients: Sequence[str], sets: tuple[Runs, Runs]
) -> SparseIntervals:
    """Build the intervals from one stream's rows of `schemas.RECORDS`.

    Equivalent to `stream_groups.records_pieces` and `with_wanted`.
    """
    acknowledged, heads = (
        batches(rows(table, kind=int(RecordKind.PUBLISHED))) for table in (published, taken)
    )
    got = got.filter(pc.not_equal(got.column("kind"), int(RecordKind.SESSION)))
    found = _cut(acknowledged, got, clients, sets, heads)
    pieces = len(found.count)
    seen_ns = np.full(pieces, NEVER, np.int64)
    np.minimum.at(seen_ns, found.arrived % max(pieces, 1), found.arrived_ns)
    piece, batch = incidences(np.append(found.first_seq, NEVER), heads)
    np.minimum.at(seen_ns, piece, heads.t_ns[batch])
    times_ns = np.where(found.published_ns == NEVER, NEVER, np.minimum(found.published_ns, seen_ns))
    return replace(found, published_ns=times_ns)


def from_events(events: pa.Table, clients: Sequence[str], sets: tuple[Runs, Runs]) -> SparseIntervals:
    """Build the intervals from one stream's rows of `schemas.EVENTS`.

    Equivalent to `stream_groups.intervals` and `with_wanted`.
    """
    published = batches(rows(events, kind="published"))
    return _cut(published, rows(events, kind="arrived"), clients, sets, NONE)


def without_misdated_pairs(intervals: SparseIntervals, window: RunWindow) -> SparseIntervals:
    """Treat pieces with a time outside the run as never published; see
    `sequence_intervals.without_misdated`.
    """
    misdated = ~window.holds(intervals.arrived_ns)
    undated = ~window.holds(intervals.published_ns)
    undated[intervals.arrived[misdated] % max(len(intervals.count), 1)] = True
    return replace(
        intervals,
        published_ns=np.where(undated, NEVER, intervals.published_ns),
        arrived=intervals.arrived[~misdated],
        arrived_ns=intervals.arrived_ns[~misdated],
    )


def _cut(
    published: Batches, got: pa.Table, clients: Sequence[str], sets: tuple[Runs, Runs], others: Batches
) -> SparseIntervals:
    """Cut a stream at the ends of published batches, and of those that arrived at clients or others."""
    got = got.filter(pc.is_in(got.column("host"), value_set=pa.array(clients, pa.string())))
    host, came = codes(got.column("host"), list(clients)), batches(got)
    everything = (published, came, others)
    edges = distinct(np.concatenate([ends for each in everything for ends in (each.first_seq, each.end_seq)]))
    pieces = max(len(edges) - 1, 0)
    published_ns = np.full(pieces, NEVER, np.int64)
    piece, batch = incidences(edges, published)
    np.minimum.at(published_ns, piece, published.t_ns[batch])
    piece, batch = incidences(edges, came)
    pairs, t_ns = host[batch] * pieces + piece, came.t_ns[batch]
    order = np.lexsort((t_ns, pairs))
    first = order[np.flatnonzero(np.diff(pairs[order], prepend=-1))]
    due = (_pairs_of(runs, edges[:pieces], clients) for runs in sets)
    return SparseIntervals(
        edges[:pieces], np.diff(edges), published_ns, tuple(clients), pairs[first], t_ns[first], *due
    )


def _pairs_of(runs: Runs, first_seq: Ints, clients: Sequence[str]) -> Ints:
    """Return the pieces in the runs of each client."""
    found = [np.zeros(0, np.int64)]
    for number, client in enumerate(clients):
        if client in runs:
            low, high = (np.searchsorted(first_seq, ends) for ends in runs[client])
            spans = high - low
            within = np.arange(spans.sum()) - np.repeat(np.cumsum(spans) - spans, spans)
            found.append(number * len(first_seq) + np.repeat(low, spans) + within)
    return np.concatenate(found)
