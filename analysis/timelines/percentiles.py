"""Weighted percentiles, exactly as if every event of a batch were listed."""

from collections.abc import Sequence

import numpy as np

from analysis.arrays import Ints


def weighted(values: Ints, weights: Ints, percent: int) -> int | None:
    """Return the `percent` percentile (0 < percent <= 100) of `values`, each counted `weights` times.

    Return None without values or weights.
    """
    if not len(values) or not weights.sum():
        return None
    groups = np.zeros(len(values), np.int64)
    return int(grouped(groups, values, weights, [percent])[1][0][0])


def grouped(
    groups: Ints, values: Ints, weights: Ints, percents: Sequence[int]
) -> tuple[Ints, list[Ints], Ints]:
    """Return percentiles within each group.

    These are the distinct groups in order, for each of `percents` one array with a value per group, and each
    group's total weight. Groups without weight are omitted.
    """
    counted = weights > 0
    groups, values, weights = groups[counted], values[counted], weights[counted]
    order = np.lexsort((values, groups))
    groups, values, running = groups[order], values[order], np.cumsum(weights[order])
    names, starts = np.unique(groups, return_index=True)
    before = np.concatenate(([0], running))[starts]
    totals = np.diff(np.append(before, running[-1:]))
    ranks = [before - (-percent * totals // 100) for percent in percents]
    return names, [values[np.searchsorted(running, rank, side="left")] for rank in ranks], totals
