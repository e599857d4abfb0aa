"""Where the regions of a topology stand in a picture: as far apart as their delays, like a map.

Distances are delays along the quickest way, made into places in the plane by stress majorization (SMACOF;
de Leeuw, "Applications of convex analysis to multidimensional scaling", 1977), then turned so that the
longest extent lies across and the first region stands at the upper left. Where delays differ so much that
regions would cover each other, they stand in a circle in their order instead.
"""

import numpy as np
from numpy.typing import NDArray

from testbed.plan import Plan

Places = NDArray[np.float64]  # regions x 2

MAP_REGIONS_MAX = 40
STEPS = 300
ASPECT = 0.72  # of the whole, height by width: flatter maps are stretched up to this


def region_places(plan: Plan, *, apart: tuple[float, float], width: float) -> Places:
    """The centre of each region, all at least 0, `width` from the first to the last where that is enough.

    apart: how far two centres must be from each other across or down.
    """
    if len(plan.regions) == 1:
        return np.zeros((1, 2))
    places = _circle(len(plan.regions), apart)
    if 2 < len(plan.regions) <= MAP_REGIONS_MAX:
        found = _scaled(_oriented(_majorized(_distances(plan))), width, apart)
        if _free(found, apart):
            places = found
    result: Places = places - places.min(axis=0)
    return result


def _distances(plan: Plan) -> Places:
    """Delay of the quickest way between any two regions; regions without a way are as far as the farthest."""
    number = {region.name: index for index, region in enumerate(plan.regions)}
    distance = np.full((len(number), len(number)), np.inf)
    np.fill_diagonal(distance, 0.0)
    for link in plan.links:
        if link.kind == "wan":
            a, b = number[link.a], number[link.b]
            distance[a, b] = distance[b, a] = max(1.0, (link.forward.delay_us + link.backward.delay_us) / 2)
    for via in range(len(number)):
        distance = np.minimum(distance, distance[:, [via]] + distance[[via], :])
    finite = distance[np.isfinite(distance)]
    farthest = finite.max() or 1.0
    return np.where(np.isfinite(distance), distance, farthest)


def _majorized(distance: Places) -> Places:
    """Places whose distances are as near to these as they can be."""
    count = len(distance)
    angles = 2 * np.pi * np.arange(count) / count
    places: Places = np.stack([np.cos(angles), np.sin(angles)], axis=1) * distance.max() / 2
    for _ in range(STEPS):
        lengths = np.linalg.norm(places[:, None] - places[None], axis=2)
        ratio = np.divide(distance, lengths, out=np.zeros_like(distance), where=lengths > 0)
        matrix = -ratio
        np.fill_diagonal(matrix, ratio.sum(axis=1))
        places = matrix @ places / count
    return places


def _oriented(places: Places) -> Places:
    """Turned and mirrored: the longest extent across, the first region at the upper left."""
    centred = places - places.mean(axis=0)
    _, axes = np.linalg.eigh(centred.T @ centred)
    turned: Places = centred @ axes[:, ::-1]
    signs = np.where(turned[0] > 0, -1.0, 1.0)
    return turned * signs


def _scaled(places: Places, width: float, apart: tuple[float, float]) -> Places:
    extent = np.ptp(places, axis=0)
    down = max(extent[1], 1e-9)
    height = max(width * extent[1] / extent[0], min(width * ASPECT, apart[1] * 2.2)) if extent[1] > 0 else 0.0
    result: Places = places * [width / extent[0], height / down]
    return result


def _free(places: Places, apart: tuple[float, float]) -> bool:
    """Whether no two regions cover each other."""
    gaps = np.abs(places[:, None] - places[None]) / apart
    largest = gaps.max(axis=2) + np.eye(len(places)) * 2
    return bool((largest >= 1).all())


def _circle(count: int, apart: tuple[float, float]) -> Places:
    """With room between: sqrt(2) from each other, in units of `apart`, neighbours would just be clear."""
    radius = 1.4 * np.sqrt(2) / (2 * np.sin(np.pi / count))
    angles = 2 * np.pi * np.arange(count) / count + np.pi
    places: Places = radius * np.stack([np.cos(angles), np.sin(angles)], axis=1) * apart
    return places
