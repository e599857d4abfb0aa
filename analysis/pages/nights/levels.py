"""What was usual before each night: the median of the nights before, of every series at once."""

import numpy as np
from numpy.typing import NDArray

from analysis.pages.nights.reading import Past

NIGHTS = 30
"""Of how many nights the usual is the median."""

Levels = dict[tuple[str, str, str], dict[str, float]]
"""By suite, entry and metric: what was usual before each night."""


def levels(past: Past) -> Levels:
    """The usual of every series that can get better or worse; a first night has none."""
    return {
        (series.suite, series.entry, series.metric): dict(
            zip(series.dates[1:], before(series.nights.medians), strict=True)
        )
        for entry in past.entries.values()
        for series in entry.series
    }


def before(medians: NDArray[np.float64]) -> list[float]:
    """For each night but the first, the median of up to NIGHTS nights before it."""
    if medians.size < 2:
        return []
    padded = np.concatenate([np.full(NIGHTS - 1, np.nan), medians[:-1]])
    windows = np.lib.stride_tricks.sliding_window_view(padded, NIGHTS)
    return [float(level) for level in np.nanmedian(windows, axis=1)]
