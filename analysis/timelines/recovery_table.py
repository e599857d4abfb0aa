"""The recovery table and its headline per fault, from pairs, acts and deliveries; plain Python over few rows.

There is a row per applied or asked fault, stream and client. Times count from the fault's applied time.
`detect` and `resubscribe` are those of the proxy of the client's region; packets say when it subscribed, its
log when it noticed.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from analysis.timelines import schemas
from analysis.timelines.acts import Act, What, on_fault
from analysis.timelines.facts import Facts, Fault
from analysis.timelines.pieces import NEVER
from experiments.declared import Trait

WORST = ("resubscribe_s", "switch_s", "catch_up_s", "settled_s", "backlog_events")
DERIVED = ("rate_derived", "loss_derived", "connectivity_lost")
APART_S = 0.4
"""Two sampling intervals: the methods of RFC 6412 disagree if they are further apart."""
SUMS = ("lost", "duplicated", "out_of_order")


def table(pairs: pa.Table, acts: Sequence[Act], deliveries: pa.Table | None, facts: Facts) -> pa.Table:
    """`schemas.RECOVERY` from rows of `schemas.PAIRS` and, where nodes kept records, `schemas.DELIVERIES`."""
    disorder = {(row["client"], row["stream"]): row for row in (deliveries.to_pylist() if deliveries else ())}
    faults = {fault.name: fault for fault in facts.faults}
    numbers = {fault.name: number for number, fault in enumerate(facts.applied_faults)}
    rows = []
    for pair in pairs.to_pylist():
        fault = faults[pair["fault"]]
        said = disorder.get((pair["client"], pair["stream"]))
        after = {
            name: said[f"{name}_after"][numbers[fault.name]] if said else None
            for name in ("duplicated", "out_of_order")
        }
        rows.append(_row(pair, fault, acts, facts) | after)
    return pa.Table.from_pylist(rows, schema=schemas.RECOVERY)


def headline(recovery: pa.Table, facts: Facts) -> tuple[dict[str, dict[str, Any]], list[str]]:
    """Per fault the figures of summary.json, and the reasons for those that are null."""
    found, reasons = {}, []
    rows = recovery.to_pylist()
    for fault in facts.faults:
        mine = [row for row in rows if row["fault"] == fault.name]
        figures, missing = _figures(fault, mine)
        found[fault.name] = figures
        reasons += [f"recovery.{fault.name}: {reason}" for reason in missing]
    return found, reasons


def _row(pair: dict[str, Any], fault: Fault, acts: Sequence[Act], facts: Facts) -> dict[str, Any]:
    reasons = list(pair["reasons"])
    detect_s = resubscribe_s = None
    if pair["affected"]:
        mine = on_fault(
            acts,
            fault,
            facts.next_fault_ns(fault) or NEVER,
            pair["stream"],
            facts.hosts[pair["client"]].region,
            struck=_struck(fault, facts),
            routes=facts.routes,
        )
        detect_s = _first(mine, fault)
        asked = [act for act in mine if act.what is What.REROUTED] or [
            act for act in mine if act.what is What.MOVED
        ]
        resubscribe_s = _first(asked, fault)
        ends = facts.owner[pair["stream"]], facts.hosts[pair["client"]].region
        reasons += _undone(fault, ends, mine, asked, facts)
    if pair["impaired"] is not None and pair["rate_derived_ns"] is None:
        reasons.append("rate_derived_s: the whole load did not come in time for 2 s before the next fault")
    return {
        "fault": fault.name,
        "stream": pair["stream"],
        "client": pair["client"],
        "affected": pair["affected"],
        "requested_s": fault.requested_s,
        "applied_s": facts.seconds(fault.t_ns),
        "detect_s": detect_s,
        "resubscribe_s": resubscribe_s,
        **{
            f"{name}_s": _seconds(pair[f"{name}_ns"])
            for name in ("switch", "catch_up", "settled", "returned", *DERIVED)
        },
        "impaired": pair["impaired"],
        "bar_s": _bar_s(pair, fault, facts),
        "backlog_events": pair["backlog_events"],
        "lost": pair["lost"],
        "old_way": pair["old_way"],
        "new_way": pair["new_way"],
        "reason": "; ".join(reasons) or None,
    }


def _undone(
    fault: Fault, ends: tuple[str, str], done: Sequence[Act], asked: Sequence[Act], facts: Facts
) -> list[str]:
    """Why nobody noticed or subscribed anew, if nobody did. ends: the stream's owner, and the region."""
    if fault.hops and not facts.reachable(*ends, fault.struck_ns):
        why = f"there is no other way from {ends[0]} to {ends[1]}"
        told = (("detect_s", done), ("resubscribe_s", asked))
        return [f"{name}: {why}" for name, found in told if not found]
    nobody = "nobody had to subscribe anew" if fault.processes else "no server asked for it anew"
    return [
        *([] if done else ["detect_s: no server did anything about it"]),
        *([] if asked else [f"resubscribe_s: {nobody}"]),
    ]


def _bar_s(pair: dict[str, Any], fault: Fault, facts: Facts) -> float | None:
    """By how much the pair's times may be wrong: between where the fault was and where events came."""
    gateways = {name for hop in fault.hops for region in hop for name in facts.gateways_of(region)}
    struck, client = {*gateways, *fault.processes}, pair["client"]
    if all(facts.clocks.together(host, client) for host in struck):
        return None
    measured = [pair[f"{name}_ns"] for name in ("switch", "catch_up", "settled", "returned")]
    ends_ns = np.array([fault.t_ns, *(fault.t_ns + each for each in measured if each is not None)], np.int64)
    return round(float(facts.clocks.bars_ns(struck, (client,), ends_ns).max()) / 1e9, 9)


def _figures(fault: Fault, rows: list[dict[str, Any]]) -> tuple[dict[str, Any], list[str]]:
    """The worst of the affected pairs, the first detection, and sums over all pairs; null where a pair has
    none.
    """
    affected = [row for row in rows if row["affected"]]
    names = [*WORST, "returned_s"] if fault.mends and fault.hops else [*WORST]
    worst = {name: _worst([row[name] for row in affected]) for name in names}
    detected = [row["detect_s"] for row in affected if row["detect_s"] is not None]
    sums = {name: _sum([row[name] for row in rows]) for name in SUMS}
    figures = {"detect_s": min(detected, default=None), **worst, **sums, "affected_pairs": len(affected)}
    figures |= _benchmarks(affected)
    bars = [row["bar_s"] for row in affected if row["bar_s"] is not None]
    figures |= {"bar_s": max(bars)} if bars else {}
    if fault.applied_ns is None:
        return figures, ["it never took hold"]
    if not affected:
        return figures, ["no stream's way to a client was concerned"]
    told = {reason for row in affected for reason in (row["reason"] or "").split("; ") if reason}
    return figures, [*sorted(told), *_disagreement(affected)]


def _benchmarks(affected: list[dict[str, Any]]) -> dict[str, Any]:
    """In the words of RFC 6412 and 6414: the first route's convergence, and the worst of all routes."""
    switched = [row["switch_s"] for row in affected if row["switch_s"] is not None]
    return {
        "first_route_s": min(switched, default=None),
        **{f"{name}_s": _worst([row[f"{name}_s"] for row in affected]) for name in DERIVED},
        "impaired": _sum([row["impaired"] for row in affected]),
    }


def _disagreement(affected: list[dict[str, Any]]) -> list[str]:
    """That the two methods of RFC 6412 do not say the same, and for how many routes."""
    both = [
        (row["rate_derived_s"], row["loss_derived_s"])
        for row in affected
        if row["rate_derived_s"] is not None and row["loss_derived_s"] is not None
    ]
    apart = [rate - loss for rate, loss in both if abs(rate - loss) > APART_S]
    if not apart:
        return []
    longer = "some carried a part of their load, or were lost more than once" if max(apart) > APART_S else ""
    shorter = "more than the usual load was late or lost" if min(apart) < -APART_S else ""
    return [
        f"by rates and losses (rate_derived_s, loss_derived_s) {len(apart)} of {len(both)} streams at clients"
        f" converged up to {max(map(abs, apart)):.1f} s apart: {' or '.join(filter(None, (longer, shorter)))}"
    ]


def _struck(fault: Fault, facts: Facts) -> frozenset[str]:
    """The regions of which the fault concerned a replica."""
    return frozenset(facts.hosts[name].region for name in fault.processes if facts.has(name, Trait.SERVER))


def _first(acts: list[Act], fault: Fault) -> float | None:
    return _seconds(min((act.t_ns for act in acts), default=None), fault.t_ns)


def _seconds(t_ns: int | None, since_ns: int = 0) -> float | None:
    return None if t_ns is None else round((t_ns - since_ns) / 1e9, 6)


def _worst(values: list[Any]) -> Any:
    return None if not values or any(value is None for value in values) else max(values)


def _sum(values: list[Any]) -> Any:
    return None if not values or any(value is None for value in values) else sum(values)
