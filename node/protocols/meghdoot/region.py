"""Regions that events affect, and which zone passes an event on to which (3.4).

The printed corners of the affected region miss zones for events without all values; by the printed predicate
for matches it is prod [L_i, c_i1] x [c_i2, H_i]. Its bottom-right corner is the event's own point, from which
the event spreads to zones on the upper left: over the lower faces of dimensions in which ranges start, and
the upper ones of those in which they end.

Each zone but the first has one parent. Clip the zone's own bottom-right corner to the region, and step over
the first face in a dimension where it is not at the event's coordinate yet: whose zone is there sends it the
event. For two given neighbours that is a question about the event's point alone, whether it lies in a certain
box; so a zone needs one look at such boxes of all its neighbours (`NextZones`), however many these are.

All regions are closed boxes that are spread over from their bottom-right corner; recovery (4.3) asks the
zones of any box in the same way.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import ceil, floor, inf

import numpy as np

from node.protocols.can.zone_table import Floats
from node.protocols.can.zones import TOP, Point, Zone
from node.protocols.meghdoot.space import GRID

PRIME = (1 << 61) - 1
"""Numbers of points are known up to multiples of it: they would have hundreds of digits."""


@dataclass(frozen=True)
class Region:
    """A box with all of its edges. What zones ask for is computed once."""

    low: Point
    high: Point

    @cached_property
    def corner(self) -> Point:
        """Its bottom-right corner, where spreading over it begins; of an event's region, the event."""
        sides = zip(self.high[::2], self.low[1::2], strict=True)
        return tuple(each for both in sides for each in both)

    @cached_property
    def columns(self) -> tuple[Floats, Floats, Floats]:
        """The corner, and the lower and the upper edges, as columns."""
        corner, low, high = (np.array(each)[:, None] for each in (self.corner, self.low, self.high))
        return corner, low, high

    @cached_property
    def is_open(self) -> bool:
        """Whether it goes up to the edges of the space from its corner, as the region of an event does."""
        return not any(self.low[::2]) and all(each == TOP for each in self.high[1::2])

    def touches(self, zone: Zone) -> bool:
        """Whether a zone has a point of it."""
        return all(
            zone_low <= high and (low < zone_high or zone_high == TOP)
            for zone_low, zone_high, low, high in zip(zone.low, zone.high, self.low, self.high, strict=True)
        )


def affected(event: Point) -> Region:
    """The subscription points of all subscriptions that an event at this point matches."""
    low = tuple(0.0 if number % 2 == 0 else at for number, at in enumerate(event))
    high = tuple(at if number % 2 == 0 else TOP for number, at in enumerate(event))
    return Region(low, high)


def closed(zone: Zone) -> Region:
    """A zone with all of its edges."""
    return Region(zone.low, zone.high)


def around(zone: Zone) -> Region:
    """A zone, and the next points on all sides of it."""
    step = 1 / GRID
    low = tuple(max(0.0, each - step) for each in zone.low)
    return Region(low, zone.high)


Steps = tuple[tuple[int, int], ...]
"""Of a box the first point of the grid in each dimension, and the first one that is not in it any more."""


def steps_of_zone(zone: Zone) -> Steps:
    """Those of a zone."""
    return tuple(
        (ceil(low * GRID), GRID + 1 if high == TOP else ceil(high * GRID))
        for low, high in zip(zone.low, zone.high, strict=True)
    )


def steps_of_region(region: Region) -> Steps:
    """Those of a region."""
    return tuple(
        (ceil(low * GRID), floor(high * GRID) + 1) for low, high in zip(region.low, region.high, strict=True)
    )


def points_in(zone: Steps, region: Steps) -> int:
    """How many points of the space they have in common, modulo `PRIME`.

    Sums of it tell whether zones that have nothing in common cover a region: a point that none of them has is
    missing from the sum. Volumes would not do, since regions may be flat, and zones too small to be noticed.
    """
    found = 1
    for (begin, end), (first, beyond) in zip(zone, region, strict=True):
        side = (end if end < beyond else beyond) - (begin if begin > first else first)
        if side <= 0:
            return 0
        found = found * side % PRIME
    return found


def all_points(region: Steps) -> int:
    """How many points a region has, modulo `PRIME`."""
    return points_in(region, region)


class NextZones:
    """The zones on the upper left of one, and which of them it passes what on to.

    low, high: the neighbours' edges, a row for each. Answers are rows of these.
    """

    def __init__(self, zone: Zone, low: Floats, high: Floats) -> None:
        own_low, own_high = np.array(zone.low)[:, None], _open(np.array(zone.high))[:, None]
        starts = (np.arange(zone.dimensions) % 2 == 0)[:, None]
        faces = np.where(starts, own_low == high.T, np.array(zone.high)[:, None] == low.T)
        self.rows = np.flatnonzero(faces.any(axis=0))
        face = faces[:, self.rows].argmax(axis=0)
        self._low, self._high = low.T[:, self.rows].copy(), _open(high.T[:, self.rows])
        both_low, both_high = np.maximum(self._low, own_low), np.minimum(self._high, own_high)
        after = np.arange(zone.dimensions)[:, None] > face
        at = np.arange(zone.dimensions)[:, None] == face
        beyond = np.where(starts & after, np.where(self._high <= own_high, inf, own_high), both_high)
        from_low = np.where(~starts & after, np.where(self._low >= own_low, -inf, own_low), both_low)
        self._event_low = np.where(at, -inf, from_low)
        self._event_high = np.where(at, inf, beyond)

    def children(self, region: Region) -> Sequence[int]:
        """The neighbours of which this zone is the one parent."""
        if not len(self.rows):
            return ()
        corner, low, high = region.columns
        mine = np.logical_and.reduce((self._event_low <= corner) & (corner < self._event_high), axis=0)
        places = mine.nonzero()[0]
        if len(places) and not region.is_open:
            inside = (self._low[:, places] <= high) & (low < self._high[:, places])
            places = places[np.logical_and.reduce(inside, axis=0)]
        found: Sequence[int] = self.rows[places].tolist()
        return found

    def all_upper_left(self, region: Region) -> Sequence[int]:
        """All neighbours on the upper left that the region has points of: the algorithm as printed."""
        _, low, high = region.columns
        inside = np.logical_and.reduce((self._low <= high) & (low < self._high), axis=0)
        found: Sequence[int] = self.rows[inside].tolist()
        return found


def _open(high: Floats) -> Floats:
    """Upper edges, none where the space ends: what is there belongs to the zone."""
    found: Floats = np.where(high == TOP, inf, high)
    return found
