"""Latency: from the complete arrival of an event at its local proxy until every client has it.

Each stream yields samples: per piece one latency and its number of events. There are about as many samples as
published batches, whatever the number of clients and events, and percentiles, per origin region and bin and
over the whole run, are computed from all samples together. If a stream has more than EXACT_MAX samples,
similar latencies of a bin and phase are merged. Memory then does not grow with the number of events, and
percentiles are accurate to 1 / LIKENESS.

Without captures, the nodes' records are used. A proxy's record of when it accepted a batch is best, since the
paper's latency starts there. A driver records only the acknowledgement, which is later by the return path
and, for a chain, by the path down and up it, but not later than the first client's delivery.

"Every client" means the clients that must get the event and ran from beginning to end. Events that such a
client never received have no latency; they are counted as lost elsewhere. Events that arrived but were due to
no such client, e.g. if subscriptions end soon, have none either; the notes report how many.
"""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.arrays import NEVER, Ints, begins, ints
from analysis.timelines import schemas
from analysis.timelines.delivery.stream_pieces import StreamPieces
from analysis.timelines.percentiles import grouped, weighted
from analysis.timelines.run_metadata import RunMetadata
from analysis.timelines.schemas import BIN_NS
from experiments.declared import Trait

PERCENTS = (50, 95, 99, 100)
TAKERS = (Trait.SERVER, Trait.PUBLISHER)
"""The processes that accept events first; latency counts from there."""
NO_LATENCY = "latency: no event reached every client"
EXACT_MAX = 1 << 17
"""Samples of a stream above which similar ones are merged."""
LIKENESS = 256
"""Merged latencies differ by less than one part in this many."""
NAMES = ("p50_ms", "p95_ms", "p99_ms", "max_ms")


def completed_ns(cut: StreamPieces, metadata: RunMetadata) -> Ints:
    """Return when every client had each piece; NEVER: some client never had it, -1: no client must get it."""
    steady = [number for number, client in enumerate(cut.hosts) if client not in metadata.disturbed]
    return cut.last_ns(steady or list(range(len(cut.hosts))))


def samples(stream: int, cut: StreamPieces, metadata: RunMetadata) -> pa.Table:
    """Return `schemas.SAMPLES` of one stream, from its pieces at all clients."""
    came_ns = completed_ns(cut, metadata)
    known = (cut.published_ns != NEVER) & (came_ns != NEVER) & (came_ns >= 0)
    published_ns = cut.published_ns[known]
    columns = [
        np.full(len(published_ns), stream, np.int32),
        published_ns,
        came_ns[known] - published_ns,
        cut.count[known],
    ]
    return pa.Table.from_arrays([pa.array(column) for column in columns], schema=schemas.SAMPLES)


def merge_similar(collected: pa.Table, metadata: RunMetadata) -> pa.Table:
    """Return the samples of one stream, with similar ones merged if there are many.

    Merged samples have the mean latency and the time of the first.
    """
    if collected.num_rows <= EXACT_MAX:
        return collected
    published_ns, latency_ns, count = (ints(collected, name) for name in collected.column_names[1:])
    part, octave = np.frexp(latency_ns.astype(float))
    like = octave.astype(np.int64) * 4 * LIKENESS + np.floor(part * 2 * LIKENESS).astype(np.int64)
    key = np.stack((like, _phase(published_ns, metadata), (published_ns - metadata.zero_ns) // BIN_NS))
    order = np.lexsort(key)
    starts = np.flatnonzero(begins(*key[:, order]))
    first_ns = np.minimum.reduceat(published_ns[order], starts)
    total = np.add.reduceat(count[order], starts)
    sums = np.add.reduceat((latency_ns.astype(float) * count)[order], starts)
    mean_ns = np.rint(sums / np.maximum(total, 1)).astype(np.int64)
    stream = pa.repeat(collected.column("stream")[0], len(starts))
    return pa.table([stream, first_ns, mean_ns, total], schema=schemas.SAMPLES)


def untimed(stream: int, cut: StreamPieces, metadata: RunMetadata, samples: int) -> pa.Table:
    """Return `schemas.UNTIMED` of one stream: events that arrived but were due to no client with a known
    latency.

    samples: their number before similar ones are merged.
    """
    not_due = (cut.published_ns != NEVER) & (completed_ns(cut, metadata) < 0) & cut.came
    row = {"stream": stream, "count": int(cut.count[not_due].sum()), "samples": samples}
    return pa.Table.from_pylist([row], schema=schemas.UNTIMED)


def notes(collected: pa.Table, without: pa.Table, metadata: RunMetadata) -> list[str]:
    """Return notes on latencies that could not be measured, and why.

    collected: all samples. without: all rows of `schemas.UNTIMED`.
    """
    if not collected.num_rows and not ints(without, "count").any():
        return [NO_LATENCY]
    return [*_error(collected, without), *_unknown(collected, without, metadata)]


def _error(collected: pa.Table, without: pa.Table) -> list[str]:
    if ints(without, "samples").sum() == collected.num_rows:
        return []
    return [f"latency: percentiles are accurate to {100 / LIKENESS:.1f}%, since there are many batches"]


def _unknown(collected: pa.Table, without: pa.Table, metadata: RunMetadata) -> list[str]:
    unknown = int(ints(without, "count").sum())
    if not unknown:
        return []
    contract = metadata.declared.contract
    why = (
        f", as their subscriptions were not confirmed before, or ended within {contract.settle_us / 1e6:g} s"
    )
    known = int(ints(collected, "count").sum())
    return [
        f"latency: not measured for {unknown:,} of {unknown + known:,} events that arrived: they were due to "
        f"no client that ran from beginning to end{why if contract.audience == 'content' else ''}"
    ]


def table(collected: pa.Table, metadata: RunMetadata) -> pa.Table:
    """Return `schemas.LATENCY` from all samples: per origin region and bin of the arrival at the local
    proxy.
    """
    owners = list(dict.fromkeys(metadata.owner.values()))
    place = {stream: owners.index(region) for stream, region in metadata.owner.items()}
    streams, which = np.unique(ints(collected, "stream"), return_inverse=True)
    region = np.array([place[stream] for stream in streams.tolist()], np.int64)[which]
    bins = (ints(collected, "published_ns") - metadata.zero_ns) // BIN_NS
    latency_ns, count = ints(collected, "latency_ns"), ints(collected, "count")
    low = bins.min(initial=0)
    width = bins.max(initial=0) - low + 1
    cells = region * width + bins - low
    names, percentiles, totals = grouped(cells, latency_ns, count, PERCENTS)
    sums = np.bincount(
        np.searchsorted(names, cells)[count > 0],
        (latency_ns.astype(float) * count)[count > 0],
        minlength=len(names),
    )
    origins = [owners[number] for number in (names // width).tolist()]
    milliseconds = {name: values / 1e6 for name, values in zip(NAMES, percentiles, strict=True)}
    return pa.table(
        {
            "origin": pa.array(origins, pa.string()),
            "start_s": (names % width + low) * (BIN_NS / 1e9),
            "bin_s": np.full(len(names), BIN_NS / 1e9),
            "count": totals,
            "mean_ms": sums / np.maximum(totals, 1) / 1e6,
            **milliseconds,
            "error_ms": _error_bounds_ms(
                origins, (names % width + low) * BIN_NS + metadata.zero_ns, metadata
            ),
        },
        schema=schemas.LATENCY,
    )


def _error_bounds_ms(origins: Sequence[str], t_ns: Ints, metadata: RunMetadata) -> pa.Array:
    """Return the error of the latency of events from these regions, from their proxies to clients."""
    found, several = np.zeros(len(t_ns)), np.zeros(len(t_ns), bool)
    clients = metadata.steady_clients or metadata.clients
    for region in set(origins) if metadata.clocks.by_machine else ():
        mine = np.array([origin == region for origin in origins])
        takers = metadata.of_region(region, *TAKERS)
        found[mine] = metadata.clocks.error_bounds_ns(takers, clients, t_ns[mine]) / 1e6
        several[mine] = not all(
            metadata.clocks.share_clock(one, other) for one in takers for other in clients
        )
    return pa.array(found, mask=~several)


def error_bounds(latencies: pa.Table) -> dict[str, float]:
    """Return the error of the headline: median over events, and maximum. Empty for one clock."""
    known = latencies.filter(pc.is_valid(latencies.column("error_ms")))
    if not known.num_rows:
        return {}
    bound_ns = np.rint(known.column("error_ms").to_numpy() * 1e6).astype(np.int64)
    median_ns = weighted(bound_ns, ints(known, "count"), 50)
    return {"error_ms": (median_ns or 0) / 1e6, "error_max_ms": float(bound_ns.max()) / 1e6}


PHASES = ("before", "during", "after")
"""Before the first fault, from it to the last change by a fault, and after; by time of publication."""


def phases(collected: pa.Table, metadata: RunMetadata) -> dict[str, float | None]:
    """Return the median and p95 before, during and after all faults, milliseconds; empty without faults."""
    if not metadata.applied_faults:
        return {}
    phase = _phase(ints(collected, "published_ns"), metadata)
    latency_ns, count = ints(collected, "latency_ns"), ints(collected, "count")
    found: dict[str, float | None] = {}
    for number, name in enumerate(PHASES):
        mine = phase == number
        for percent in (50, 95):
            value_ns = weighted(latency_ns[mine], count[mine], percent)
            found[f"{name}_p{percent}_ms"] = None if value_ns is None else value_ns / 1e6
    return found


def _phase(published_ns: Ints, metadata: RunMetadata) -> Ints:
    """Return the index in `PHASES` of each time; 0 in a run without faults."""
    faults = metadata.applied_faults
    if not faults:
        return np.zeros(len(published_ns), np.int64)
    ends_ns = (faults[0].t_ns, max(metadata.last_change_ns, faults[0].t_ns))
    if faults[0].t_ns == metadata.last_change_ns:  # no fault was reverted
        ends_ns = (faults[0].t_ns, NEVER)
    return np.searchsorted(ends_ns, published_ns, side="right")


def headline(collected: pa.Table) -> dict[str, float | None]:
    """Return mean, p50, p95, p99 and maximum over all events of the run, milliseconds; None without
    events.
    """
    latency_ns, count = ints(collected, "latency_ns"), ints(collected, "count")
    _, percentiles, totals = grouped(np.zeros(len(count), np.int64), latency_ns, count, PERCENTS)
    if not len(totals):
        return dict.fromkeys(("mean_ms", *NAMES))
    mean_ms = float((latency_ns.astype(float) * count).sum() / count.sum()) / 1e6
    found: dict[str, float | None] = {"mean_ms": mean_ms}
    return found | {name: float(row[0]) / 1e6 for name, row in zip(NAMES, percentiles, strict=True)}
