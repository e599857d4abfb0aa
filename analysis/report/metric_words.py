"""Headline numbers of summary.json in words: what each is called, how its values and changes read."""

import math

from analysis.report.formatting import NOT_MEASURED, large, percent, scaled, seconds, with_unit
from analysis.report.recovery import TITLES

MINUS, TIMES_SIGN = "\u2212", "\u00d7"
SMALL_CHANGE = 0.05
"""A smaller difference between two runs is shown without colour: repeats of a run differ by as much."""

_TITLES = {
    "throughput.events_per_s": "Throughput",
    "throughput.slowest_client_events_per_s": "Throughput of the slowest client",
    "throughput.bytes_per_s": "Throughput in bytes",
    "latency.mean_ms": "Latency, mean",
    "latency.p50_ms": "Latency p50",
    "latency.p95_ms": "Latency p95",
    "latency.p99_ms": "Latency p99",
    "latency.max_ms": "Latency, longest",
    "events.published": "Events published",
    "events.delivered": "Deliveries",
    "events.tombstoned": "Came as tombstones",
    "events.lost": "Events lost",
    "events.stray": "Events at clients that were not to get them",
    "events.duplicated": "Events duplicated",
    "events.out_of_order": "Events out of order",
    "events.resurrected": "Events resurrected",
    "events.corrupted": "Events corrupted",
    "events.unordered_publishers": "Events against their driver's order",
    "convergence.full_s": "Every stream flows again",
    "convergence.median_s": "A stream flows again, median",
    "convergence.beyond_way_s": "Every stream flows again, less its way",
    "convergence.wait_max_s": "Longest wait after the last change",
    "convergence.stalled": "Streams that stay stalled",
    "convergence.late_switches": "Changes of source at rest",
    "fidelity.cpu_max": "Processors, busiest",
}
_OF_FAULTS = {key: title.lower() for key, title in TITLES.items()} | {
    "first_route_s": "first stream again",
    "impaired": "impaired",
    "backlog_events": "backlog",
    "lost": "lost",
    "duplicated": "duplicated",
    "out_of_order": "out of order",
    "affected_pairs": "affected pairs",
}


def title_of(metric: str) -> str:
    """What a metric is called: `recovery.cut.switch_s` is "cut: events flow again"."""
    if metric in _TITLES:
        return _TITLES[metric]
    section, _, rest = metric.partition(".")
    fault, _, last = rest.rpartition(".")
    if section == "recovery" and fault:
        return f"{fault}: {_OF_FAULTS.get(last, last)}"
    return metric


def value_text(value: float | None, unit: str) -> str:
    """A value with its unit."""
    if value is None or not math.isfinite(value):
        return NOT_MEASURED
    if unit == "s":
        return seconds(value)
    if not unit:  # a fraction
        return percent(value)
    if unit == "B/s":
        return scaled(value, unit)
    if unit in {"events/s", "events"}:
        return large(value, unit)
    return with_unit(value, unit)


def change_of(before: float | None, after: float | None) -> float | None:
    """By how much it changed, as a fraction of what it was; None where that says nothing."""
    if before is None or after is None or not before or not math.isfinite(after / before):
        return None
    return after / before - 1


def change_text(change: float | None) -> str:
    """A signed percentage: +12 %, ±0 %; a multiple, as x12, where that reads better."""
    if change is None:
        return ""
    size = abs(change) * 100
    if size < 0.05:
        return "±0\u00a0%"
    digits = 0 if size >= 9.95 else 1
    if size >= 1000:
        return f"{TIMES_SIGN}{change + 1:.0f}"
    return f"{'+' if change > 0 else MINUS}{size:.{digits}f}\u00a0%"


def direction_of(change: float, better: str) -> str:
    """ "better", "worse", or "" where neither is; `better` as `analysis.history.metrics` says it."""
    if not change or better not in {"lower", "higher"}:
        return ""
    return "better" if (change > 0) == (better == "higher") else "worse"
