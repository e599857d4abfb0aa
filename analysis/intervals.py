"""Between which bounds a figure lies: of a median, of one more run, of a change between two groups, of a
rate of failures.
"""

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

LEVEL: Final = 0.95
_RESAMPLES: Final = 1000


@dataclass(frozen=True, slots=True)
class MedianInterval:
    """Bounds of a median. level: how often such bounds hold it; less than asked if runs are few."""

    low: float
    high: float
    level: float


def median_interval(values: Floats, level: float = LEVEL) -> MedianInterval:
    """Exact, for any distribution: between two of the sorted values, which hold the median as often as a fair
    coin falls heads neither too seldom nor too often (David and Nagaraja, Order Statistics, 7.1).

    Three runs can say it with 75 %, five with 94 %, six with 97 %. Raises ValueError without values.
    """
    if not values.size:
        raise ValueError("no values have no median")
    ordered, n = np.sort(values), values.size
    below, taken = 0.0, (0, 1 - 2 * 0.5**n)
    for k in range((n + 1) // 2):
        below += math.comb(n, k) * 0.5**n
        if 1 - 2 * below < level:
            break
        taken = (k, 1 - 2 * below)
    return MedianInterval(float(ordered[taken[0]]), float(ordered[n - 1 - taken[0]]), taken[1])


def next_interval(values: Floats, level: float = LEVEL) -> tuple[float, float]:
    """Bounds of what one more run comes to, by Student's t (Hahn and Meeker, Statistical Intervals, 4.7).

    Positive values are compared by their logarithms, as noise grows with them. Wider than the bounds of a
    median, which are of all runs together. Raises ValueError of fewer than two values, which have no spread.
    """
    from scipy.special import stdtrit  # noqa: PLC0415  (takes long to import, and few runs need it)

    if values.size < 2:
        raise ValueError("a single value has no spread")
    logarithmic = bool(values.min() > 0)
    scaled = np.log(values) if logarithmic else values
    n = values.size
    off = float(stdtrit(n - 1, (1 + level) / 2) * np.std(scaled, ddof=1) * math.sqrt(1 + 1 / n))
    middle = float(np.mean(scaled))
    if not logarithmic:
        return middle - off, middle + off
    with np.errstate(over="ignore"):  # three values that are far apart say nothing of how large one may be
        low, high = np.exp((middle - off, middle + off))
    return float(low), float(high)


def change_interval(before: Floats, after: Floats, rng: np.random.Generator) -> tuple[float, float]:
    """Bounds of the difference of medians, after less before, in the values' unit: a bootstrap over nights.

    A group of fewer than five has no spread to draw from: it is moved by what the other's values differ from
    their median.
    """
    moved = _medians(after, before, rng) - _medians(before, after, rng)
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(moved, (tail, 1 - tail))
    return float(low), float(high)


def _medians(values: Floats, other: Floats, rng: np.random.Generator) -> Floats:
    """Medians of groups drawn anew."""
    if values.size >= 5 or other.size < values.size:
        drawn = rng.choice(values, (_RESAMPLES, values.size))
    else:
        drawn = np.median(values) + rng.choice(other - np.median(other), (_RESAMPLES, values.size))
    medians: Floats = np.median(drawn, axis=1)
    return medians


def rate_interval(some: float, count: float, level: float = LEVEL) -> tuple[float, float]:
    """Bounds of a rate after `some` of `count` (Clopper and Pearson, 1934): exact, and rather too wide."""
    from scipy.special import betaincinv  # noqa: PLC0415  (as above)

    tail = (1 - level) / 2
    low = float(betaincinv(some, count - some + 1, tail)) if some else 0.0
    high = float(betaincinv(some + 1, count - some, 1 - tail)) if some < count else 1.0
    return low, high


def wilson_interval(some: int, count: int, level: float = LEVEL) -> tuple[float, float]:
    """Bounds of a rate after `some` of `count` (Wilson, 1927): close to what is asked for also of few runs,
    and never outside of 0 to 1. Raises ValueError without any.
    """
    from scipy.special import ndtri  # noqa: PLC0415  (as above)

    if count < 1:
        raise ValueError("no runs have no rate")
    z = float(ndtri((1 + level) / 2))
    rate, width = some / count, z * z / count
    middle = (rate + width / 2) / (1 + width)
    off = z / (1 + width) * math.sqrt(rate * (1 - rate) / count + width / (4 * count))
    return max(0.0, middle - off), min(1.0, middle + off)


def clean_runs_needed(rate: float, level: float = LEVEL) -> int:
    """How many runs in a row without a failure make it credible that what failed at this rate is gone: were
    it still there, so many would pass by chance less often than 1 - level. Raises ValueError for a rate of 0.
    """
    if not 0 < rate <= 1:
        raise ValueError(f"{rate} is no rate of failures")
    return 1 if rate == 1 else math.ceil(math.log(1 - level) / math.log1p(-rate))
