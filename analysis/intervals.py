"""Confidence intervals: of a median, of one more run, of a change between two groups, of a failure rate."""

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
    """Bounds of a median. level: their coverage, which is less than requested if there are few runs."""

    low: float
    high: float
    level: float


def median_interval(values: Floats, level: float = LEVEL) -> MedianInterval:
    """Return the exact interval of a median, for any distribution.

    The bounds are two of the sorted values; their ranks follow from the binomial distribution with p = 0.5
    (David and Nagaraja, Order Statistics, 7.1). Three runs reach 75 %, five 94 %, six 97 %. Raises ValueError
    without values.
    """
    if not values.size:
        raise ValueError("a median needs at least one value")
    ordered, n = np.sort(values), values.size
    below, taken = 0.0, (0, 1 - 2 * 0.5**n)
    for k in range((n + 1) // 2):
        below += math.comb(n, k) * 0.5**n
        if 1 - 2 * below < level:
            break
        taken = (k, 1 - 2 * below)
    return MedianInterval(float(ordered[taken[0]]), float(ordered[n - 1 - taken[0]]), taken[1])


def next_interval(values: Floats, level: float = LEVEL) -> tuple[float, float]:
    """Return the prediction interval of one more run, by Student's t (Hahn and Meeker, Statistical Intervals,
    4.7).

    Positive values are compared by their logarithms, since noise grows with the value. The interval is wider
    than that of a median, which describes all runs together. Raises ValueError for fewer than two values.
    """
    from scipy.special import stdtrit  # noqa: PLC0415  (takes long to import, and few runs need it)

    if values.size < 2:
        raise ValueError("a prediction interval needs at least two values")
    logarithmic = bool(values.min() > 0)
    scaled = np.log(values) if logarithmic else values
    n = values.size
    off = float(stdtrit(n - 1, (1 + level) / 2) * np.std(scaled, ddof=1) * math.sqrt(1 + 1 / n))
    middle = float(np.mean(scaled))
    if not logarithmic:
        return middle - off, middle + off
    with np.errstate(over="ignore"):  # three values far apart give no upper bound
        low, high = np.exp((middle - off, middle + off))
    return float(low), float(high)


def change_interval(before: Floats, after: Floats, rng: np.random.Generator) -> tuple[float, float]:
    """Return the interval of the difference of medians, after minus before, in the values' unit: a bootstrap
    over nights.

    A group of fewer than five values has too little spread to resample. Its median is shifted by resampled
    deviations of the other group's values from their median.
    """
    moved = _medians(after, before, rng) - _medians(before, after, rng)
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(moved, (tail, 1 - tail))
    return float(low), float(high)


def _medians(values: Floats, other: Floats, rng: np.random.Generator) -> Floats:
    """Return medians of resampled groups."""
    if values.size >= 5 or other.size < values.size:
        drawn = rng.choice(values, (_RESAMPLES, values.size))
    else:
        drawn = np.median(values) + rng.choice(other - np.median(other), (_RESAMPLES, values.size))
    medians: Floats = np.median(drawn, axis=1)
    return medians


def rate_interval(some: float, count: float, level: float = LEVEL) -> tuple[float, float]:
    """Return the interval of a rate after `some` of `count` (Clopper and Pearson, 1934): exact but wide."""
    from scipy.special import betaincinv  # noqa: PLC0415  (as above)

    tail = (1 - level) / 2
    low = float(betaincinv(some, count - some + 1, tail)) if some else 0.0
    high = float(betaincinv(some + 1, count - some, 1 - tail)) if some < count else 1.0
    return low, high


def wilson_interval(some: int, count: int, level: float = LEVEL) -> tuple[float, float]:
    """Return the interval of a rate after `some` of `count` (Wilson, 1927).

    Its coverage is close to the level even for few runs, and it stays within 0 to 1. Raises ValueError if
    count is 0.
    """
    from scipy.special import ndtri  # noqa: PLC0415  (as above)

    if count < 1:
        raise ValueError("a rate needs at least one run")
    z = float(ndtri((1 + level) / 2))
    rate, width = some / count, z * z / count
    middle = (rate + width / 2) / (1 + width)
    off = z / (1 + width) * math.sqrt(rate * (1 - rate) / count + width / (4 * count))
    return max(0.0, middle - off), min(1.0, middle + off)
