"""When a series moved to another level and stayed there.

ruptures (Truong, Oudre, Vayatis: Selective review of offline change point detection methods, 2020) proposes:
its exact segmentation with a linear kernel, on normal scores of the ranks, which no outlier can pull and for
which one penalty fits every metric. What it proposes is then judged: each piece is held against the one
before by an exact rank test, corrected for nights that resemble their neighbours and for how many places
there were to choose from; the weakest goes, until all that is left is beyond doubt. Why this and not Apache
Otava, in numbers: docs/regressions.md.

Values are one per night, oldest first. Between nights that have no value lies nothing.

How surprising it is that one group lies above another, whatever their distribution, is the
Wilcoxon-Mann-Whitney rank sum (Mann and Whitney, 1947), exactly where a group is small. Ties count against a
difference: only pairs that truly differ are counted, and the sum is judged by the distribution without ties.
Breaking ties by lot would give that distribution, and would never count less, so the answer is on the safe
side; it matters for figures in whole steps. Numbers from nights that resemble their neighbours (a machine
that is slow for a week) tell less than as many independent ones; `deflated` takes that back.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import ruptures
from numpy.typing import NDArray
from scipy.special import ndtr, ndtri
from scipy.stats import rankdata

Floats = NDArray[np.float64]

EXACT_MAX: Final = 20
"""Up to this size of the smaller group the distribution is counted out; above, it is near to normal."""
_CLEARLY_NOTHING: Final = 0.05
"""A normal approximation above this need not be made exact."""


def rank_sum_p(one: Floats, other: Floats) -> float:
    """The chance, both directions together, of groups lying at least so far apart when nothing differs."""
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
    """A p-value of numbers taken as independent, for numbers of which neighbours correlate.

    As many numbers of a first-order autoregressive series tell of its mean as (1 - r) / (1 + r) times so many
    independent ones.
    """
    if correlation <= 0 or p >= 1:
        return p
    z = float(ndtri(max(p, 1e-300) / 2)) * math.sqrt((1 - correlation) / (1 + correlation))
    return float(2 * ndtr(z))


def neighbours_correlation(values: Floats) -> float:
    """How much each number resembles the one before, from 0 to 0.9, in ranks, so that an outlier counts as
    one; less half a standard error, as a series of independent numbers must not lose half its tests."""
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
    """missing: how many pairs the counted ones are short of all. Arrangements that miss k pairs are the
    partitions of k that fit a box of few x many, whose generating function is the Gaussian binomial."""
    ways = [1] + [0] * missing
    for part in range(1, few + 1):
        step = many + part
        for k in range(missing, step - 1, -1):
            ways[k] -= ways[k - step]
        for k in range(part, missing + 1):
            ways[k] += ways[k - part]
    return min(1.0, 2 * sum(ways) / math.comb(few + many, few))


NIGHTS_MIN: Final = 5
"""The shortest piece: five nights of sixty can be told from chance, four among hundreds of series cannot."""
NIGHTS_BESIDE: Final = 90
"""How many nights of the piece before are looked at; older ones tell of other times."""
DOUBT_MAX: Final = 1e-3
"""The p-value, corrected for its place, up to which a change point stays in a series taken alone."""
_PENALTY: Final = 11.0
"""What a change point must explain, in variances: rather too little, as the test decides afterwards."""
_PLAUSIBLE: Final = 6.0
"""How much less than the best place another may explain, in variances within the pieces, and still be where
it happened, in 95 of 100: the place of a change is known less well than a likelihood's usual 3.84."""


@dataclass(frozen=True, slots=True)
class Shift:
    """A change of level. All are indices of the series' nights.

    start: of the piece before. at: the first night on the new level. end: of the piece, exclusive.
    earliest, latest: where `at` may be, too. p: how often chance alone would do this.
    """

    start: int
    at: int
    end: int
    earliest: int
    latest: int
    p: float


def change_points(values: Floats, doubt_max: float = DOUBT_MAX) -> list[Shift]:
    """Every shift of a series that is no chance, oldest first."""
    places = _proposed(values)
    while places:
        edges = [0, *places, values.size]
        found = [_judged(values, *edges[number : number + 3]) for number in range(len(places))]
        worst = max(found, key=lambda shift: shift.p)
        if worst.p <= doubt_max:
            return found
        places.remove(worst.at)
    return []


def normal_scores(values: Floats) -> Floats:
    """Ranks, as the values that a normal distribution would have in their places (van der Waerden, 1952),
    with variance 1; ties share their mean. All 0 if all values are the same."""
    scores: Floats = ndtri(rankdata(values) / (values.size + 1))
    spread = float(scores.std())
    return (scores - scores.mean()) / spread if spread > 0 else np.zeros(values.size)


def _proposed(values: Floats) -> list[int]:
    if values.size < 2 * NIGHTS_MIN or np.ptp(values) == 0:
        return []
    search = ruptures.KernelCPD(kernel="linear", min_size=NIGHTS_MIN).fit(normal_scores(values))
    return [int(place) for place in search.predict(pen=_PENALTY)[:-1]]


def _judged(values: Floats, start: int, at: int, end: int) -> Shift:
    """The shift at `at` between the pieces beside it."""
    start = max(start, at - NIGHTS_BESIDE)
    before, after = values[start:at], values[at:end]
    left = np.concatenate([before - np.median(before), after - np.median(after)])
    alone = deflated(rank_sum_p(after, before), neighbours_correlation(left))
    return Shift(start, at, end, *_plausible(values, start, at, end), min(1.0, alone * (end - start)))


def _plausible(values: Floats, start: int, at: int, end: int) -> tuple[int, int]:
    """The earliest and the latest place that explains nearly as much as the best."""
    scores = normal_scores(values[start:end])
    n = scores.size
    places = np.arange(1, n)
    sums = np.cumsum(scores)[:-1]
    explained = sums**2 * n / (places * (n - places))  # of a sum of squares that is n
    best = float(explained[at - start - 1])
    within = max((n - best) / n, 1e-3)
    near = places[explained >= best - _PLAUSIBLE * within] + start
    return min(int(near.min()), at), max(int(near.max()), at)
