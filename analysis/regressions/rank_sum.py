"""How surprising it is that one group of numbers lies above another, whatever their distribution: the
Wilcoxon-Mann-Whitney rank sum (Mann and Whitney, 1947), exactly where a group is small.

Ties count against a difference: only pairs that truly differ are counted, and the sum is judged by the
distribution without ties. Breaking ties by lot would give that distribution, and would never count less, so
the answer is on the safe side; it matters for figures in whole steps.

Numbers from nights that resemble their neighbours (a machine that is slow for a week) tell less than as many
independent ones. `deflated` takes that back.
"""

import math
from functools import lru_cache
from typing import Final

import numpy as np
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
