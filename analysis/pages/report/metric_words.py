"""Headline numbers of summary.json in words: what each is called, how its values and changes read."""

import math

from analysis.pages.report.formatting import NOT_MEASURED, large, percent, scaled, seconds, with_unit
from experiments.summary import METRICS, RECOVERY

MINUS, TIMES_SIGN = "\u2212", "\u00d7"
SMALL_CHANGE = 0.05
"""A smaller difference between two runs is shown without colour: repeats of a run differ by as much."""

_TITLES = {
    f"{section}.{name}": figure.title
    for section, figures in METRICS.items()
    for name, figure in figures.items()
}
_OF_FAULTS = {name: figure.title[:1].lower() + figure.title[1:] for name, figure in RECOVERY.items()}


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
