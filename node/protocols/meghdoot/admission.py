"""Choice of the cut that splits a zone for a joining peer, so that its subscriptions are halved (4.2)."""

import numpy as np

from node.protocols.can.zone_table import Floats
from node.protocols.can.zones import Zone
from node.protocols.meghdoot.space import GRID

Cut = tuple[int, float]
"""Dimension and coordinate of a cut."""
TOLERANCE = 0.1
"""Cuts that are less even than the best one by at most this part of all subscriptions count as equal."""


def halving_cut(zone: Zone, points: Floats, events: Floats | None = None) -> Cut | None:
    """Return a cut that divides the points in a zone evenly; None if all of them coincide.

    points: one row per dimension. events: points of recent events, in the same form. Among about equally even
    cuts, the function chooses the one that keeps most events out of one half, then the one across the longest
    side. The paper requires only halves. An event spreads to lower values in dimensions of range starts, and
    to higher ones in dimensions of range ends: it always visits the half on its own side, and the other half
    only if that begins, or ends, beyond the event.
    """
    count = points.shape[1]
    found: list[tuple[float, float, float, int, float]] = []
    for dimension in range(zone.dimensions):
        median = _median(np.sort(points[dimension]), zone.low[dimension], zone.high[dimension])
        if median is not None:
            at, below = median
            side = zone.high[dimension] - zone.low[dimension]
            uneven = abs(2 * below - count) / count
            found.append((uneven, visiting_both(events, (dimension, at)), -side, dimension, at))
    if not found:
        return None
    enough = min(found)[0] + TOLERANCE
    _, dimension, at = min((each[1:3], each[3], each[4]) for each in found if each[0] <= enough)
    return dimension, at


def visiting_both(events: Floats | None, cut: Cut) -> float:
    """Return the part of the events that would visit both halves; 1 if no events are known.

    events: their points, one row per dimension.
    """
    if events is None or not events.shape[1]:
        return 1.0
    dimension, at = cut
    seen = events[dimension]
    return float((seen >= at).mean() if dimension % 2 == 0 else (seen < at).mean())


def _median(coordinates: Floats, low: float, high: float) -> tuple[float, int] | None:
    """Return a coordinate that divides the points most evenly, and the number of points below it."""
    count = len(coordinates)
    steps = np.flatnonzero(coordinates[1:] != coordinates[:-1]) + 1
    if not len(steps):
        return None
    below = int(steps[np.argmin(np.abs(2 * steps - count))])
    left, right = float(coordinates[below - 1]), float(coordinates[below])
    at = int((left + right) / 2 * GRID) / GRID
    at = right if at <= left else at
    return (at, below) if low < at < high else None
