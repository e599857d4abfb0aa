"""Splits the events of one stream into its pieces, and determines each region's sources of it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.timelines.arrays import Bools, Ints, codes, ints, rows, rows_of_roles
from analysis.timelines.delivery.sequence_intervals import NEVER, Batches, SequenceIntervals, cut_stream
from analysis.timelines.delivery.stream_paths import SourceHistory, changes
from analysis.timelines.run_metadata import RunMetadata
from experiments.declared import Trait
from node.core.deliveries import RecordKind

COLUMNS = ("stream", "host", "role", "kind", "peer", "via", "first_seq", "count", "t_ns")
"""Columns of `schemas.EVENTS` that are needed here."""
TAKEN = ""
"""Stands for the heads, among clients' names."""


def batches(table: pa.Table) -> Batches:
    """Return the rows of a table of events or records as batches of one place, with everything they cover."""
    first_seq, count, t_ns = (ints(table, name) for name in ("first_seq", "count", "t_ns"))
    covered = np.maximum(count, ints(table, "covered")) if "covered" in table.column_names else count
    return Batches(first_seq, covered, t_ns)


def by_host(events: pa.Table, hosts: Sequence[str]) -> dict[str, Batches]:
    """Return the batches of each of `hosts`, in that order; empty for a host without rows."""
    code = codes(events.column("host"), list(hosts))
    order = np.argsort(code, kind="stable")
    ends = np.searchsorted(code[order], np.arange(len(hosts) + 1))
    all_of_them = batches(events)
    found = {}
    for host, start, end in zip(hosts, ends[:-1], ends[1:], strict=True):
        mine = order[start:end]
        found[host] = Batches(all_of_them.first_seq[mine], all_of_them.count[mine], all_of_them.t_ns[mine])
    return found


def records_pieces(
    published: pa.Table, taken: pa.Table, got: pa.Table, clients: Sequence[str]
) -> SequenceIntervals:
    """Return one stream's pieces from rows of `schemas.RECORDS`: drivers', proxies' and clients'.

    Published events are those that drivers know to be acknowledged. Their time is that of the proxy that
    accepted them, if known; a driver's own time may be later than clients' deliveries, so it is limited to
    the first of those.
    """
    acknowledged, heads = (
        batches(rows(table, kind=int(RecordKind.PUBLISHED))) for table in (published, taken)
    )
    got = got.filter(pc.not_equal(got.column("kind"), int(RecordKind.SESSION)))
    pieces = cut_stream(acknowledged, {**by_host(got, clients), TAKEN: heads})
    first_seen = pieces.arrived_ns.min(axis=0, initial=NEVER)
    times = np.where(pieces.published_ns == NEVER, NEVER, np.minimum(pieces.published_ns, first_seen))
    return replace(pieces, published_ns=times, hosts=pieces.hosts[:-1], arrived_ns=pieces.arrived_ns[:-1])


def intervals(events: pa.Table, clients: Sequence[str]) -> SequenceIntervals:
    """Return the stream's pieces, as published and as they arrived at `clients`."""
    published = batches(rows(events, kind="published"))
    return cut_stream(published, by_host(rows(events, kind="arrived"), clients))


Runs = Mapping[str, tuple[Ints, Ints]]
"""Maximal runs of numbers, by host."""


def with_wanted(pieces: SequenceIntervals, sets: tuple[Runs, Runs] | None) -> SequenceIntervals:
    """Add which pieces each host must get, and which are due to it; None: all."""
    if sets is None:
        return pieces
    must, due = (_held(pieces, runs) for runs in sets)
    return replace(pieces, wanted=must, due=due)


def _held(pieces: SequenceIntervals, runs: Runs) -> Bools:
    """Return which pieces are in the runs of each host."""
    rows_of = np.zeros((len(pieces.hosts), len(pieces.count)), bool)
    for number, host in enumerate(pieces.hosts):
        if host in runs:
            first, end = runs[host]
            at = np.searchsorted(first, pieces.first_seq, side="right") - 1
            rows_of[number] = (at >= 0) & (pieces.first_seq < end[np.maximum(at, 0)])
    return rows_of


def sources(events: pa.Table, metadata: RunMetadata) -> dict[str, SourceHistory]:
    """Return each region's sources of the stream, from batches that arrived at its proxies from other
    regions.
    """
    proxies = [metadata.hosts[name] for name in metadata.having(Trait.SERVER)]
    arrived = rows_of_roles(rows(events, kind="arrived"), metadata.declared.having(Trait.SERVER))
    names = [host.name for host in proxies]
    regions = np.array([*(host.region for host in proxies), ""], object)  # the last entry is for other hosts
    here, there = (regions[codes(arrived.column(column), names)] for column in ("host", "peer"))
    t_ns = ints(arrived, "t_ns")
    found: dict[str, SourceHistory] = {}
    for region in dict.fromkeys(host.region for host in proxies):
        mine = np.flatnonzero((here == region) & (there != region) & (there != ""))
        order = mine[np.argsort(t_ns[mine], kind="stable")]
        found[region] = changes(t_ns[order], there[order])
    return found
