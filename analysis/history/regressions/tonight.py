"""One night against the recent ones: is it further from their level than such nights ever are?

The level is the median of the recent nights since the last change point. The spread comes from how far nights
lay from the level of their time, and is robust: an outlier widens it little, but must itself be exceeded.
Where hardly a night ever differed, as in virtual time, it is what the metric resolves, or the furthest that a
night ever lay off. Positive figures are compared by their logarithms, as noise grows with them.

One run can be far off for reasons of its machine, so three have to agree: all runs of this night, and of
those just before if it has fewer, lie off the same way. How far is judged by Student's t with few degrees of
freedom, as such runs have heavy tails: four for a single run, four more for each further pair, since the
median of 2k - 1 draws has tails of k times the exponent (David and Nagaraja, Order Statistics, 8.2).

Counts that were 0 in every run of the recent nights need none of that: any other number is a finding.

A figure is *missing* that was measured on nearly all recent nights and no longer is, on runs that can be
relied on. `Never settled` and `the events never came` leave no number, and a run stays valid: what is worst
about a recovery is then the absence of its figure. As elsewhere three runs must agree, of tonight and of the
nights just before. Where every run of the recent nights had the figure, that is a fact and needs no further
doubt; where some had not, the rule of succession (Laplace) says how likely so many without it are by chance.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy.special import stdtr, stdtrit

from analysis.history.regressions.series import MEASURED, Nights, Series

Floats = NDArray[np.float64]

NIGHTS_MIN: Final = 10
"""Fewer nights than these have no spread worth the name."""
LEVEL_NIGHTS: Final = 30
SPREAD_NIGHTS: Final = 120
_TAIL_OF_ONE: Final = 4
_TAIL_MAX: Final = 12
_EXCEEDED: Final = 0.98
"""This part of the former distances must be smaller."""
AGREEING_MIN: Final = 3
"""So many runs in a row must lie off; two do by chance, some night, among hundreds of series."""
Measured = Mapping[str, Sequence[int]]
"""By night, oldest first, the rows of an entry's runs that can be relied on in the table `runs`."""


@dataclass(frozen=True, slots=True)
class Departure:
    """How far the last night of a series is from the recent ones.

    since: the index of the first night of those, this one included, that are off the same way without a
    break. before, after: levels, as medians, in the metric's unit; of counts that were 0, after is the
    largest. spread: of the logarithm if `logarithmic`, else in the metric's unit. p: of chance.
    """

    since: int
    before: float
    after: float
    spread: float
    logarithmic: bool
    p: float


def departure(nights: Nights, level_from: int, resolution: float) -> Departure | None:
    """The last night, held against those before.

    level_from: where the level began on which the series now is: older nights lend their spread only.
    resolution: the smallest difference that counts, in the metric's unit. None if there are too few nights to
    tell, or if the night is like others.
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
    apart = _distances(scaled.medians[oldest:last], level_from - oldest)
    off = float(scaled.medians[last]) - level
    nearest = scaled.lowest - level if off > 0 else level - scaled.highest
    usual = float(np.quantile(apart, _EXCEEDED))
    since = last + 1
    while since > max(level_from, last - NIGHTS_MIN) and nearest[since - 1] > usual:
        since -= 1
    agreeing = int(nights.runs[since:].sum())
    if since > last or agreeing < AGREEING_MIN:
        return None
    freedom = min(_TAIL_OF_ONE * ((agreeing + 1) // 2), _TAIL_MAX)
    before = math.exp(level) if logarithmic else level
    spread = _spread(apart, freedom)
    if spread == 0:
        spread = max(float(apart.max()), resolution / before if logarithmic else resolution)
    if spread == 0:
        chance = 1 / (apart.size + 1)  # that it never differed says only how often it did not
    else:
        wide = spread * math.sqrt(1 + math.pi / 2 / recent.size)
        chance = float(2 * stdtr(freedom, -abs(off) / wide))
    return Departure(since, before, float(nights.medians[last]), spread, logarithmic, chance)


def first_of_its_kind(nights: Nights) -> Departure | None:
    """The last night of a count that was 0 in every run of the recent nights, and no longer is.

    Nights just before that were not 0 either are part of it, so that what is found on one night is not gone
    on the next.
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
    """How far each night is from the median of its time; before `level_from` that was another."""
    now = scaled[max(level_from, 0) :]
    former = scaled[: max(level_from, 0)]
    apart = [np.abs(part - np.median(part)) for part in (former, now) if part.size]
    return np.concatenate(apart)


def _spread(apart: Floats, freedom: int) -> float:
    """The scale of a t distribution that has the distances' median, or 95 % of them, whichever is wider."""
    half, most = np.quantile(apart, (0.5, 0.95))
    return max(float(half / stdtrit(freedom, 0.75)), float(most / stdtrit(freedom, 0.975)))


def _scaled(nights: Nights) -> Nights:
    return Nights(np.log(nights.medians), np.log(nights.lowest), np.log(nights.highest), nights.runs)


@dataclass(frozen=True, slots=True)
class MissingFigure:
    """A figure that is missing. nights: those without it, up to tonight. p: probability by chance. known: of
    the night before, likewise.
    """

    nights: tuple[str, ...]
    p: float
    known: float


def measured_nights(runs: pa.Table, until: str) -> dict[tuple[str, str], dict[str, list[int]]]:
    """By suite and entry, the nights up to this one with runs that can be relied on."""
    good = pc.and_(runs["valid"], pc.is_in(runs["verdict"], pa.array(MEASURED)))
    rows = pc.indices_nonzero(pc.and_(good, pc.less_equal(runs["night"], until)))
    columns = [runs[name].take(rows).to_pylist() for name in ("suite", "entry", "night")]
    found: dict[tuple[str, str], dict[str, list[int]]] = {}
    for suite, entry, night, row in sorted(zip(*columns, rows.to_pylist(), strict=True)):
        found.setdefault((suite, entry), {}).setdefault(night, []).append(row)
    return found


def missing(series: Series, measured: Measured, night: str) -> MissingFigure | None:
    """Whether a figure is missing tonight that used to be there. measured: of the series' entry."""
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
    """That `lost` runs in a row lack a figure by chance, which `had` of `ran` before had."""
    if lost < AGREEING_MIN:
        return 1.0
    if had >= ran:
        return 0.0
    chance = 1.0
    for number in range(lost):
        chance *= (ran - had + 1 + number) / (ran + 2 + number)
    return chance
