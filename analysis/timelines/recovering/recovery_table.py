"""The recovery table and its headline per fault, from pairs, failover events and deliveries. Most work is on
columns; only affected pairs are processed in plain Python.

There is a row per applied fault, stream and client. Times count from the fault's applied time. `detect` and
`resubscribe` belong to the proxy of the client's region: packets show when it subscribed, its log when it
noticed the fault.
"""

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from analysis.arrays import NEVER, Ints, codes, ints, pair_keys, rows
from analysis.timelines import schemas
from analysis.timelines.recovering.failover_events import FailoverEvent, FailoverKind, reactions_to_fault
from analysis.timelines.recovering.recovery import UNKNOWN
from analysis.timelines.recovering.run_faults import RunFault
from analysis.timelines.run_metadata import RunMetadata
from experiments.declared import Trait
from topologies.first_texts import first_texts

APART_S = 0.4
"""Two sampling intervals: the methods of RFC 6412 disagree if they are further apart."""
SUMS = ("lost", "duplicated", "out_of_order")
REASONS_MAX = 20
"""Largest number of reasons reported per fault."""
UNAFFECTED = "it was on no stream's route to a client, and no client with an unknown route had a gap"
UNTOLD = (
    "whether it affected {} streams at clients is unknown: neither packets nor logs show their routes, and"
    " too few events arrived before it to detect a gap"
)


def table(
    pairs: pa.Table,
    failover_events: Sequence[FailoverEvent],
    deliveries: pa.Table | None,
    metadata: RunMetadata,
) -> pa.Table:
    """Return `schemas.RECOVERY` from rows of `schemas.PAIRS` and, if nodes kept records,
    `schemas.DELIVERIES`.
    """
    names = [fault.name for fault in metadata.applied_faults]
    fault = codes(pairs.column("fault"), names)
    affected = pairs.column("affected").to_numpy()
    react = _reactions(failover_events, metadata)
    found = [_row(pair, react, metadata) for pair in pairs.filter(pairs.column("affected")).to_pylist()]
    place = pa.array(np.cumsum(affected) - 1, mask=~affected)
    columns: dict[str, Any] = {
        name: pa.array([row[name] for row in found], schemas.RECOVERY.field(name).type).take(place)
        for name in _MEASURED
    }
    columns |= {name: pairs.column(name) for name in _COPIED}
    columns |= {
        "requested_s": np.array([each.requested_s for each in metadata.applied_faults])[fault],
        "applied_s": np.array([metadata.seconds(each.t_ns) for each in metadata.applied_faults])[fault],
        "error_s": _error_bounds(pairs, metadata),
        **_disorder(pairs, fault, deliveries, metadata),
    }
    counts = _counts(pairs, fault, metadata)
    columns |= {name: pc.if_else(counts, columns[name], pa.scalar(0, pa.int64())) for name in SUMS}
    return pa.table({name: columns[name] for name in schemas.RECOVERY.names}, schema=schemas.RECOVERY)


def headline(recovery: pa.Table, metadata: RunMetadata) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Return the figures of summary.json per fault, and the reasons for those that are null."""
    found, reasons = {}, []
    for fault in metadata.faults:
        figures, missing = _figures(fault, rows(recovery, fault=fault.name))
        found[fault.name] = figures
        reasons += [f"recovery.{fault.name}: {reason}" for reason in missing]
    return found, reasons


def routes(recovery: pa.Table) -> list[dict[str, Any]]:
    """Return the old and new paths of the streams that each fault affected, as {"fault", "old_way",
    "new_way"}.
    """
    affected = recovery.filter(recovery.column("affected"))
    found: list[dict[str, Any]] = affected.group_by(["fault", "old_way", "new_way"]).aggregate([]).to_pylist()
    return found


_TIMES = tuple(f"{name}_s" for name in schemas.RECOVERY_TIMES)
_MEASURED = ("detect_s", "resubscribe_s", *_TIMES, "reason")
"""Columns that only affected pairs have."""
_COPIED = (
    "fault", "stream", "client", "affected", "affected_by",
    "impaired", "backlog_events", "lost", "old_way", "new_way",
)  # fmt: skip


_Reaction = tuple[float | None, float | None, list[str]]
"""When a fault was noticed, when a stream was resubscribed, and the reasons for missing times."""
_Reactions = Callable[[str, int, str, tuple[str, ...] | None], _Reaction]


def _reactions(failover_events: Sequence[FailoverEvent], metadata: RunMetadata) -> _Reactions:
    """Return a function from a fault, a stream, a region and, if paths lead from host to host, the hosts on
    the path, to the reaction.
    """
    faults = {fault.name: fault for fault in metadata.applied_faults}

    @cache
    def reaction(name: str, stream: int, region: str, hosts: tuple[str, ...] | None) -> _Reaction:
        fault = faults[name]
        mine = reactions_to_fault(
            failover_events,
            fault,
            metadata.next_fault_ns(fault) or NEVER,
            stream,
            region,
            struck=_struck(fault, metadata),
            routes=metadata.routes,
            hosts=hosts,
        )
        asked = [act for act in mine if act.what is FailoverKind.REROUTED] or [
            act for act in mine if act.what is FailoverKind.MOVED
        ]
        missing = _missing_reactions(fault, (metadata.owner[stream], region), mine, asked, metadata)
        return _first(mine, fault), _first(asked, fault), missing

    return reaction


def _row(pair: dict[str, Any], reactions: _Reactions, metadata: RunMetadata) -> dict[str, Any]:
    """Return the columns that only affected pairs have."""
    hosts = None if pair["hosts"] is None else tuple(pair["hosts"])
    region = metadata.hosts[pair["client"]].region
    detect_s, resubscribe_s, why_not = reactions(pair["fault"], pair["stream"], region, hosts)
    reasons = [*pair["reasons"], *why_not]
    if pair["impaired"] is not None and pair["rate_derived_ns"] is None:
        reasons.append("rate_derived_s: the full load did not arrive in time for 2 s before the next fault")
    return {
        "detect_s": detect_s,
        "resubscribe_s": resubscribe_s,
        **{f"{name}_s": _seconds(pair[f"{name}_ns"]) for name in schemas.RECOVERY_TIMES},
        "reason": "; ".join(reasons) or None,
    }


def _counts(pairs: pa.Table, fault: Ints, metadata: RunMetadata) -> pa.Array:
    """Return the rows that count losses and disorder after the instant of the fault.

    A row counts if the fault affected the pair, or if no fault of that instant did.
    """
    clients = codes(pairs.column("client"), pairs.column("client").unique().to_pylist())
    instant = np.array([*metadata.instant_numbers.values()], np.int64)[fault]
    rows_of = np.stack((instant, ints(pairs, "stream"), clients))
    _, group = np.unique(rows_of, axis=1, return_inverse=True)
    affected = pairs.column("affected").to_numpy()
    explained = np.bincount(group.ravel(), affected, minlength=1)[group.ravel()] > 0
    return pa.array(affected | ~explained)


def _disorder(
    pairs: pa.Table, fault: Ints, deliveries: pa.Table | None, metadata: RunMetadata
) -> dict[str, pa.Array]:
    """Return repeated and late events after the instant of each pair's fault; null without records of the
    pair.
    """
    names = ("duplicated", "out_of_order")
    if deliveries is None or not deliveries.num_rows:
        return {name: pa.nulls(pairs.num_rows, pa.int64()) for name in names}
    clients = deliveries.column("client").unique().to_pylist()
    keys, wanted = (pair_keys(table, clients) for table in (deliveries, pairs))
    order = np.argsort(keys, kind="stable")
    at = order[np.minimum(np.searchsorted(keys[order], wanted), len(order) - 1)]
    unknown = keys[at] != wanted
    instant = np.array([*metadata.instant_numbers.values()], np.int64)[fault]
    found = {}
    for name in names:
        counted = pc.list_flatten(deliveries.column(f"{name}_after")).to_numpy()
        found[name] = pa.array(counted[at * len(metadata.instants) + instant], mask=unknown)
    return found


def _error_bounds(pairs: pa.Table, metadata: RunMetadata) -> pa.Array:
    if not metadata.clocks.by_machine:
        return pa.nulls(pairs.num_rows, pa.float64())
    faults = {fault.name: fault for fault in metadata.applied_faults}
    return pa.array(
        [_error_bound_s(pair, faults[pair["fault"]], metadata) for pair in pairs.to_pylist()], pa.float64()
    )


def _missing_reactions(
    fault: RunFault,
    ends: tuple[str, str],
    done: Sequence[FailoverEvent],
    asked: Sequence[FailoverEvent],
    metadata: RunMetadata,
) -> list[str]:
    """Return why no server noticed the fault or resubscribed. ends: the stream's owner, and the region."""
    if fault.hops and not metadata.reachable(*ends, fault.struck_ns):
        why = f"there is no other route from {ends[0]} to {ends[1]}"
        times = (("detect_s", done), ("resubscribe_s", asked))
        return [f"{name}: {why}" for name, found in times if not found]
    none_asked = "no server had to resubscribe" if fault.processes else "no server resubscribed to it"
    return [
        *([] if done else ["detect_s: no server reacted to it"]),
        *([] if asked else [f"resubscribe_s: {none_asked}"]),
    ]


def _error_bound_s(pair: dict[str, Any], fault: RunFault, metadata: RunMetadata) -> float | None:
    """Return the error of the pair's times, from the clocks at the fault and at the client."""
    gateways = {name for hop in fault.hops for region in hop for name in metadata.gateways.get(region, ())}
    struck, client = {*gateways, *fault.processes}, pair["client"]
    if all(metadata.clocks.share_clock(host, client) for host in struck):
        return None
    measured = [pair[f"{name}_ns"] for name in ("switch", "catch_up", "settled", "returned")]
    ends_ns = np.array([fault.t_ns, *(fault.t_ns + each for each in measured if each is not None)], np.int64)
    return round(float(metadata.clocks.error_bounds_ns(struck, (client,), ends_ns).max()) / 1e9, 9)


def _figures(fault: RunFault, pairs: pa.Table) -> tuple[dict[str, Any], list[str]]:
    """Return the worst of the affected pairs, the first detection, and sums over all pairs.

    A figure is null if a pair has none.
    """
    affected = pairs.filter(pairs.column("affected"))
    mended = fault.mends and fault.hops
    worst = ("resubscribe_s", *(name for name in _TIMES if mended or name != "returned_s"), "backlog_events")
    figures = {
        "detect_s": pc.min(affected.column("detect_s")).as_py(),
        **{name: _whole(pc.max, affected.column(name)) for name in worst},
        **{name: _whole(pc.sum, pairs.column(name)) for name in SUMS},
        "affected_pairs": affected.num_rows,
        # RFC 6412 and 6414: the first route's convergence
        "first_route_s": pc.min(affected.column("switch_s")).as_py(),
        "impaired": _whole(pc.sum, affected.column("impaired")),
    }
    error_s = pc.max(affected.column("error_s")).as_py()
    figures |= {} if error_s is None else {"error_s": error_s}
    if fault.applied_ns is None:
        return figures, ["it was never applied"]
    unknown = pc.sum(pc.equal(pairs.column("affected_by"), UNKNOWN)).as_py() or 0
    reasons = [UNTOLD.format(unknown)] if unknown else []
    if not affected.num_rows:
        return figures, reasons or [UNAFFECTED]
    texts = affected.column("reason").unique().drop_null().to_pylist()
    reasons_of_pairs = {reason for text in texts for reason in text.split("; ")}
    distinct = sorted(each for each in reasons_of_pairs if figures.get(each.partition(":")[0]) is None)
    shown = first_texts(distinct, REASONS_MAX, " reasons")
    return figures, [*reasons, *shown, *_disagreement(affected)]


def _disagreement(affected: pa.Table) -> list[str]:
    """Report how many routes have different results by the two methods of RFC 6412."""
    less = pc.subtract(affected.column("rate_derived_s"), affected.column("loss_derived_s")).drop_null()
    apart = less.filter(pc.greater(pc.abs(less), APART_S))
    if not len(apart):
        return []
    lowest, highest = (pc.min_max(apart).as_py()[end] for end in ("min", "max"))
    longer = "some carried a part of their load, or were lost more than once" if highest > APART_S else ""
    shorter = "more than the usual load was late or lost" if lowest < -APART_S else ""
    return [
        f"by rates and losses (rate_derived_s, loss_derived_s) {len(apart)} of {len(less)} streams at clients"
        f" converged up to {max(highest, -lowest):.1f} s apart:"
        f" {' or '.join(filter(None, (longer, shorter)))}"
    ]


def _struck(fault: RunFault, metadata: RunMetadata) -> frozenset[str]:
    """Return the regions with a replica that the fault concerned."""
    return frozenset(
        metadata.hosts[name].region for name in fault.processes if metadata.has(name, Trait.SERVER)
    )


def _first(failover_events: list[FailoverEvent], fault: RunFault) -> float | None:
    return _seconds(min((act.t_ns for act in failover_events), default=None), fault.t_ns)


def _seconds(t_ns: int | None, since_ns: int = 0) -> float | None:
    return None if t_ns is None else round((t_ns - since_ns) / 1e9, 6)


def _whole(figure: Callable[[pa.ChunkedArray], pa.Scalar], values: pa.ChunkedArray) -> Any:
    """Return a figure of all values; None if any of them is unknown, or there are none."""
    return None if not len(values) or values.null_count else figure(values).as_py()
