"""Which changes are worth a word: those above what a metric resolves, and above what anybody would mind.

A median latency that went from 0.020 to 0.024 ms is 20 % worse and means nothing; so each unit has a
smallest difference that counts, next to a smallest fraction. Counts of what must not happen (lost events)
have no such thing: one more is one more.
"""

from typing import Final

FRACTION_MIN: Final = 0.025
"""Smaller changes of a level, up or down, are not reported, however sure they are."""

RESOLUTION: Final = {
    "s": 0.01,  # recovery: nodes look for silence and reconnect in steps of tens of milliseconds
    "ms": 0.1,  # latency: what a busy processor adds now and then on a machine that runs all nodes
    "events/s": 1.0,
    "B/s": 10.0,
    "events": 1.0,
}
"""The smallest difference that counts, by unit; none of other units."""

COARSE: Final = {"settled_s": 0.2}
"""Metrics that are counted in wider steps than their unit's others, by the last part of their name."""


def is_worth_a_word(before: float, after: float, metric: str, unit: str) -> bool:
    """Whether a change of level from `before` to `after` counts."""
    difference = abs(after - before)
    return difference >= resolution_of(metric, unit) and difference > FRACTION_MIN * abs(before)


def resolution_of(metric: str, unit: str) -> float:
    """The smallest difference of a metric that counts, in its unit; 0 if there is none."""
    return COARSE.get(metric.rsplit(".", 1)[-1], RESOLUTION.get(unit, 0.0))


def comparable(unit: str, better: str) -> bool:
    """Whether a metric is followed: one that is better neither higher nor lower tells how a run was, and
    never gets worse."""
    return better in ("lower", "higher") and bool(unit)
