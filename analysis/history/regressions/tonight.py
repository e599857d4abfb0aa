"""Compare one night with the recent ones: is it further from their level than any such night?

The level is the median of the recent nights since the last change point. The spread comes from the distances
of nights from the level of their time, and is robust: an outlier widens it little, but must itself be
exceeded. If nights hardly ever differ, as in virtual time, the spread is the metric's resolution or the
largest distance seen. Positive figures are compared by their logarithms, because noise grows with them.

One run can be far off because of its machine, so three runs must agree: all runs of this night, and runs of
the nights just before if it has fewer, are off in the same direction. The distance is judged by Student's t
with few degrees of freedom, because such runs have heavy tails: four for a single run, four more for each
further pair, since the median of 2k - 1 draws has tails of k times the exponent (David and Nagaraja, Order
Statistics, 8.2).

Counts that were 0 in every run of the recent nights are not tested: any other number is a finding.

A figure is *missing* if it was measured on nearly all recent nights and no longer is, on valid runs. "Never
settled" and "the events never came" leave no number and the run stays valid, so the worst result of a
recovery is a missing figure. Again three runs must agree, of tonight and of the nights just before. If every
run of the recent nights had the figure, its absence is certain. If some runs lacked it, the rule of
succession (Laplace) gives the probability that this number of runs lack it by chance.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.special import stdtr, stdtrit

from analysis.history.regressions.series import MEASURED, Floats, MetricSeries, Nights

NIGHTS_MIN: Final = 10
"""The fewest nights that give a useful spread."""
LEVEL_NIGHTS: Final = 30
SPREAD_NIGHTS: Final = 120
_TAIL_OF_ONE: Final = 4
_TAIL_MAX: Final = 12
_EXCEEDED: Final = 0.98
"""Fraction of the earlier distances that must be smaller."""
AGREEING_MIN: Final = 3
"""Number of consecutive runs that must be off.

Two are off by chance on some night, among hundreds of series.
"""
Measured = Mapping[str, Sequence[int]]
"""Rows of an entry's valid runs in the table `runs`, by night, oldest first."""


@dataclass(frozen=True, slots=True)
class Departure:
    """The distance of a series' last night from the recent ones.

    since: index of the first night of the unbroken sequence that is off in the same direction, up to this
    night. before, after: medians, in the metric's unit; for counts that were 0, after is the largest. spread:
    of the logarithm if `logarithmic`, else in the metric's unit. p: probability by chance.
    """

    since: int
    before: float
    after: float
    spread: float
    logarithmic: bool
    p: float


def departure(nights: Nights, level_from: int, resolution: float) -> Departure | None:
    """Compare the last night with those before.

    Returns None if nights are too few or the night is like others.

    level_from: index at which the current level began; older nights contribute only their spread. resolution:
    the smallest difference that counts, in the metric's unit.
    """
    last = nights.medians.size - 1
    if last < NIGHTS_MIN:
        return None
    logarithmic = bool(nights.lowest.min() > 0)
    scaled = _scaled(nights) if logarithmic else nights
    recent = scaled.medians[max(level_from, last - LEVEL_NIGHTS) : last]
    if recent.size < 3:
        return None
    level = float(np.median(recent))
    oldest = max(0, last - SPREAD_NIGHTS)
    distances = _distances(scaled.medians[oldest:last], level_from - oldest)
    off = float(scaled.medians[last]) - level
    nearest = scaled.lowest - level if off > 0 else level - scaled.highest
    usual = float(np.quantile(distances, _EXCEEDED))
    since = last + 1
    while since > max(level_from, last - NIGHTS_MIN) and nearest[since - 1] > usual:
        since -= 1
    agreeing = int(nights.runs[since:].sum())
    if since > last or agreeing < AGREEING_MIN:
        return None
    freedom = min(_TAIL_OF_ONE * ((agreeing + 1) // 2), _TAIL_MAX)
    before = math.exp(level) if logarithmic else level
    spread = _spread(distances, freedom)
    if spread == 0:
        spread = max(float(distances.max()), resolution / before if logarithmic else resolution)
    if spread == 0:
        # Without any spread, only the number of equal nights bounds the probability.
        chance = 1 / (distances.size + 1)
    else:
        wide = spread * math.sqrt(1 + math.pi / 2 / recent.size)
        chance = float(2 * stdtr(freedom, -abs(off) / wide))
    return Departure(since, before, float(nights.medians[last]), spread, logarithmic, chance)


def first_nonzero_count(nights: Nights) -> Departure | None:
    """Find a last night that is not 0, of a count that was 0 in every run of the recent nights.

    Immediately preceding nights that were not 0 belong to it, so that a finding persists on the next night.
    """
    highest = nights.highest
    last = highest.size - 1
    if last < NIGHTS_MIN or highest[last] == 0:
        return None
    since = last
    while since > 0 and highest[since - 1] != 0:
        since -= 1
    recent = highest[max(0, since - LEVEL_NIGHTS) : since]
    if recent.size < NIGHTS_MIN or recent.any():
        return None
    return Departure(since, 0.0, float(highest[last]), 0.0, False, 0.0)


def _distances(scaled: Floats, level_from: int) -> Floats:
    """Return how far each night is from the median of its level; `level_from` separates the two levels."""
    now = scaled[max(level_from, 0) :]
    former = scaled[: max(level_from, 0)]
    distances = [np.abs(part - np.median(part)) for part in (former, now) if part.size]
    return np.concatenate(distances)


def _spread(distances: Floats, freedom: int) -> float:
    """Return the wider of two scales of a t distribution.

    One fits the distances' median, the other their 95 % quantile.
    """
    half, most = np.quantile(distances, (0.5, 0.95))
    return max(float(half / stdtrit(freedom, 0.75)), float(most / stdtrit(freedom, 0.975)))


def _scaled(nights: Nights) -> Nights:
    return Nights(np.log(nights.medians), np.log(nights.lowest), np.log(nights.highest), nights.runs)


@dataclass(frozen=True, slots=True)
class MissingFigure:
    """A figure that is missing. nights: those without it, up to tonight. p: probability by chance. known:
    that probability on the night before.
    """

    nights: tuple[str, ...]
    p: float
    known: float


def measured_nights(runs: pa.Table, until: str) -> dict[tuple[str, str], dict[str, list[int]]]:
    """Return the nights up to this one that have valid runs, by suite and entry."""
    good = pc.and_(runs["valid"], pc.is_in(runs["verdict"], pa.array(MEASURED)))
    rows = pc.indices_nonzero(pc.and_(good, pc.less_equal(runs["night"], until)))
    columns = [runs[name].take(rows).to_pylist() for name in ("suite", "entry", "night")]
    found: dict[tuple[str, str], dict[str, list[int]]] = {}
    for suite, entry, night, row in sorted(zip(*columns, rows.to_pylist(), strict=True)):
        found.setdefault((suite, entry), {}).setdefault(night, []).append(row)
    return found


def missing(series: MetricSeries, measured: Measured, night: str) -> MissingFigure | None:
    """Return whether a figure that used to be measured is missing tonight.

    measured: nights of the series' entry.
    """
    if night not in measured or series.dates[-1] >= night:
        return None
    without = tuple(date for date in measured if date > series.dates[-1])
    recent = [date for date in measured if date <= series.dates[-1]][-LEVEL_NIGHTS:]
    if len(recent) < NIGHTS_MIN:
        return None
    ran = sum(len(measured[date]) for date in recent)
    had = sum(
        int(count) for date, count in zip(series.dates, series.nights.runs, strict=True) if date >= recent[0]
    )
    lost = [len(measured[date]) for date in without]
    return MissingFigure(without, _chance(had, ran, sum(lost)), _chance(had, ran, sum(lost[:-1])))


def _chance(had: int, ran: int, lost: int) -> float:
    """Return the probability that `lost` runs in a row lack a figure by chance.

    Before, `had` of `ran` runs had it.
    """
    if lost < AGREEING_MIN:
        return 1.0
    if had >= ran:
        return 0.0
    chance = 1.0
    for number in range(lost):
        chance *= (ran - had + 1 + number) / (ran + 2 + number)
    return chance
