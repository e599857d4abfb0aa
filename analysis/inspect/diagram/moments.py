"""The moment around a fault: when it is, and which stream's messages show best what happened.

The moment begins shortly before the fault took hold and ends when the analysis found that everything flowed
again. Of the streams it is that one which was subscribed to anew and lost most.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from analysis.inspect.diagram.ranks import Ranks
from analysis.pages.report.reading import RunRecord
from analysis.schemas import LOST
from topologies.errors import InputError
from topologies.strict import suggestion

BEFORE_S = 0.25
AFTER_S = 0.35  # what is told happens before this is over
UNKNOWN_S = 1.5  # after a fault from which nothing had to recover, or of which nothing is known
LONGEST_S = 4.0
_CHANGE_WEIGHT = 100  # a subscription tells more than any number of lost batches


@dataclass(frozen=True, slots=True)
class Moment:
    """Seconds since time 0."""

    from_s: float
    to_s: float


def fault_times(record: RunRecord) -> dict[str, float]:
    """When each fault took hold for the first time, in seconds since time 0, in the plan's order."""
    zero_ns = (record.run.get("times") or {}).get("zero_ns")
    found: dict[str, float] = {}
    for change in record.run.get("changes") or ():
        applied_ns = change.get("applied_ns") or change.get("requested_ns")
        if applied_ns is not None and zero_ns is not None:
            found.setdefault(change["fault"], (applied_ns - zero_ns) / 1e9)
    planned = [str(fault["name"]) for fault in record.plan.get("faults", ())]
    return {name: found[name] for name in dict.fromkeys((*planned, *found)) if name in found}


def around(record: RunRecord, fault: str, span_s: float | None = None) -> Moment:
    """The moment around a fault. span_s: so long before and after it, instead of until all flowed again.

    Raises InputError if the run has no such fault, or if it never took hold.
    """
    times = fault_times(record)
    if fault not in times:
        problem = f"has no fault {fault!r} that took hold{suggestion(fault, times)}"
        raise InputError(record.name, None, "", problem)
    at_s = times[fault]
    if span_s is not None:
        return Moment(max(0.0, at_s - span_s), at_s + span_s)
    recovery = (record.summary.get("recovery") or {}).get(fault) or {}
    took = [recovery[name] for name in ("resubscribe_s", "switch_s") if recovery.get(name) is not None]
    after_s = min(max(took) + AFTER_S, LONGEST_S) if took else UNKNOWN_S
    return Moment(max(0.0, round(at_s - BEFORE_S, 2)), round(at_s + after_s, 2))


def victim(record: RunRecord, fault: str) -> Mapping[str, Any] | None:
    """The process, of the plan, that a fault kills, stops or brings back; None if it is none's."""
    changes = record.plan.get("changes", ())
    name = next(
        (change["process"] for change in changes if change["fault"] == fault and "process" in change), None
    )
    return next((each for each in record.plan.get("processes", ()) if each["name"] == name), None)


def disturbed_streams(rows: Iterable[Mapping[str, Any]], ranks: Ranks) -> list[int]:
    """The streams of these transfers that changed or lost messages, those that tell most first."""
    weights: Counter[int] = Counter()
    for row in rows:
        if row["stream"] is not None:
            seldom = ranks.what(row) not in ranks.ordinary
            weights[row["stream"]] += _CHANGE_WEIGHT * seldom + (row["fate"] == LOST)
    best = sorted(weights.items(), key=lambda each: (-each[1], each[0]))
    return [stream for stream, weight in best if weight]
