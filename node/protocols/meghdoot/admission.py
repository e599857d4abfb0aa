"""Where a zone is split for a peer that joins: so that its subscriptions are halved (4.2)."""

import numpy as np

from node.protocols.can.zone_table import Floats
from node.protocols.can.zones import Zone
from node.protocols.meghdoot.space import GRID

Cut = tuple[int, float]
"""In which dimension, and where."""
TOLERANCE = 0.1
"""Cuts that divide by so much of all subscriptions less evenly than the best one are as good."""


def halving_cut(zone: Zone, points: Floats, events: Floats | None = None) -> Cut | None:
    """A cut that divides the points in a zone evenly; None where all of them coincide.

    points: a row for each dimension. events: likewise the points of some that came lately. Of cuts that are
    about as even that one is taken which keeps most events out of one half; then the longest side. The paper
    only asks for halves. An event spreads to lower values where ranges start, and to higher ones where they
    end: the half on its side is visited anyway, the other one only if it begins, or ends, beyond the event.
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
    """The part of the events that would have come to both halves; all, if none are known.

    events: their points, a row for each dimension.
    """
    if events is None or not events.shape[1]:
        return 1.0
    dimension, at = cut
    seen = events[dimension]
    return float((seen >= at).mean() if dimension % 2 == 0 else (seen < at).mean())


def _median(coordinates: Floats, low: float, high: float) -> tuple[float, int] | None:
    """A coordinate between two points with as many on either side as can be, and how many are below."""
    count = len(coordinates)
    steps = np.flatnonzero(coordinates[1:] != coordinates[:-1]) + 1
    if not len(steps):
        return None
    below = int(steps[np.argmin(np.abs(2 * steps - count))])
    left, right = float(coordinates[below - 1]), float(coordinates[below])
    at = int((left + right) / 2 * GRID) / GRID
    at = right if at <= left else at
    return (at, below) if low < at < high else None
