"""Change points: when a series moved to another level and stayed there.

ruptures (Truong, Oudre, Vayatis: Selective review of offline change point detection methods, 2020) proposes:
its exact segmentation with a linear kernel, on normal scores of the ranks, which outliers cannot pull and for
which one penalty fits every metric. Then each proposal is tested: each piece is compared with the one before
by an exact rank test, corrected for correlation between neighbouring nights and for the number of possible
places. The weakest proposal is dropped until all that remain are significant. docs/nightly.md compares
this with Apache Otava.

Values are one per night, oldest first. Nights without a value are skipped.

The test is the Wilcoxon-Mann-Whitney rank sum (Mann and Whitney, 1947), which holds for any distribution, and
is exact if a group is small. Ties count against a difference: only pairs that differ are counted, and the sum
is compared with the distribution without ties. Breaking ties at random would give that distribution and never
count less, so the result is conservative; this matters for figures in whole steps. Numbers from nights that
resemble their neighbours (a machine that is slow for a week) carry less information than independent ones;
`deflated` corrects for that.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import ruptures
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata

from analysis.history.regressions.series import Floats

EXACT_MAX: Final = 20
"""Largest size of the smaller group for the exact distribution; above, it is close to normal."""
_CLEARLY_NOTHING: Final = 0.05
"""A normal approximation above this need not be made exact."""


def rank_sum_p(one: Floats, other: Floats) -> float:
    """Return the two-sided probability that groups are at least this far apart if nothing differs."""
    if not one.size or not other.size:
        return 1.0
    below = np.sort(other)
    higher = int(np.searchsorted(below, one, side="left").sum())  # pairs in which `one` is the larger
    lower = int((below.size - np.searchsorted(below, one, side="right")).sum())
    few, many = sorted((one.size, other.size))
    counted = max(higher, lower)
    rough = _normal_p(counted, few, many)
    if few > EXACT_MAX or rough > _CLEARLY_NOTHING:
        return rough
    return _exact_p(few * many - counted, few, many)


def deflated(p: float, correlation: float) -> float:
    """Return a p-value of independent numbers, corrected for numbers whose neighbours correlate.

    n numbers of a first-order autoregressive series carry as much information on its mean as n (1 - r) / (1 +
    r) independent ones.
    """
    if correlation <= 0 or p >= 1:
        return p
    z = float(ndtri(max(p, 1e-300) / 2)) * math.sqrt((1 - correlation) / (1 + correlation))
    return float(2 * ndtr(z))


def neighbours_correlation(values: Floats) -> float:
    """Return the correlation of each number with the one before, from 0 to 0.9.

    It uses ranks, so that an outlier counts once, and is reduced by half a standard error, so that a series
    of independent numbers does not lose half its tests.
    """
    if values.size < 8:
        return 0.0
    ranks: Floats = rankdata(values)
    ranks -= ranks.mean()
    spread = float(ranks @ ranks)
    found = float(ranks[1:] @ ranks[:-1]) / spread - 0.5 / math.sqrt(values.size) if spread else 0.0
    return min(max(found, 0.0), 0.9)


def _normal_p(counted: int, few: int, many: int) -> float:
    middle = few * many / 2
    spread = math.sqrt(few * many * (few + many + 1) / 12)
    return min(1.0, float(2 * ndtr(-max(counted - middle - 0.5, 0.0) / spread)))


@lru_cache(maxsize=4096)
def _exact_p(missing: int, few: int, many: int) -> float:
    """Return the exact two-sided p-value. missing: number of pairs that are not counted.

    Arrangements that miss k pairs are the partitions of k that fit a box of few x many; their generating
    function is the Gaussian binomial.
    """
    ways = [1] + [0] * missing
    for part in range(1, few + 1):
        step = many + part
        for k in range(missing, step - 1, -1):
            ways[k] -= ways[k - step]
        for k in range(part, missing + 1):
            ways[k] += ways[k - part]
    return min(1.0, 2 * sum(ways) / math.comb(few + many, few))


LEVEL_MIN: Final = 5
"""The shortest piece, in nights.

Five nights of sixty can be distinguished from chance; four, among hundreds of series, cannot.
"""
NIGHTS_BESIDE: Final = 90
"""Limit of nights of the piece before that are compared; older ones belong to other conditions."""
DOUBT_MAX: Final = 1e-3
"""The largest p-value, corrected for its place, of a change point in a series taken alone."""
_PENALTY: Final = 11.0
"""Penalty of a change point, in variances. It is low on purpose, as the test decides afterwards."""
_PLAUSIBLE: Final = 6.0
"""Largest deficit of a place in the 95 % range of a change, in variances within the pieces.

The deficit is how much less the place explains than the best one. The limit is wider than a likelihood's
usual 3.84, because the place of a change is known less well.
"""


@dataclass(frozen=True, slots=True)
class Shift:
    """A change of level. All are indices of the series' nights.

    start: first night of the piece before. at: the first night on the new level. end: end of the piece,
    exclusive. earliest, latest: range of `at`. p: probability by chance.
    """

    start: int
    at: int
    end: int
    earliest: int
    latest: int
    p: float


def change_points(values: Floats, doubt_max: float = DOUBT_MAX) -> list[Shift]:
    """Return every significant shift of a series, oldest first."""
    places = _proposed(values)
    while places:
        edges = [0, *places, values.size]
        found = [_tested(values, *edges[number : number + 3]) for number in range(len(places))]
        worst = max(found, key=lambda shift: shift.p)
        if worst.p <= doubt_max:
            return found
        places.remove(worst.at)
    return []


def normal_scores(values: Floats) -> Floats:
    """Return ranks as normal scores (van der Waerden, 1952) with variance 1.

    Ties share their mean. All scores are 0 if all values are equal.
    """
    scores: Floats = ndtri(rankdata(values) / (values.size + 1))
    spread = float(scores.std())
    return (scores - scores.mean()) / spread if spread > 0 else np.zeros(values.size)


def _proposed(values: Floats) -> list[int]:
    if values.size < 2 * LEVEL_MIN or np.ptp(values) == 0:
        return []
    search = ruptures.KernelCPD(kernel="linear", min_size=LEVEL_MIN).fit(normal_scores(values))
    return [int(place) for place in search.predict(pen=_PENALTY)[:-1]]


def _tested(values: Floats, start: int, at: int, end: int) -> Shift:
    """Return the shift at `at` between its two adjacent pieces."""
    start = max(start, at - NIGHTS_BESIDE)
    before, after = values[start:at], values[at:end]
    residuals = np.concatenate([before - np.median(before), after - np.median(after)])
    p = deflated(rank_sum_p(after, before), neighbours_correlation(residuals))
    return Shift(start, at, end, *_plausible(values, start, at, end), min(1.0, p * (end - start)))


def _plausible(values: Floats, start: int, at: int, end: int) -> tuple[int, int]:
    """Return the earliest and the latest place that explain nearly as much as the best."""
    scores = normal_scores(values[start:end])
    n = scores.size
    places = np.arange(1, n)
    sums = np.cumsum(scores)[:-1]
    explained = sums**2 * n / (places * (n - places))  # of a sum of squares that is n
    best = float(explained[at - start - 1])
    within = max((n - best) / n, 1e-3)
    near = places[explained >= best - _PLAUSIBLE * within] + start
    return min(int(near.min()), at), max(int(near.max()), at)
