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
import numpy.typing as npt

from node.protocols.can.zone_table import Floats
from node.protocols.can.zones import TOP, Point, Zone
from node.protocols.meghdoot.space import GRID
from node.protocols.meghdoot.zones.bounds import Bounds, covering, open_edges, touching

Indices = npt.NDArray[np.intp]
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
    def corner_asked(self) -> Floats:
        """Asks `Bounds` for boxes that have the corner."""
        return covering(self.corner, self.corner)

    @cached_property
    def box_asked(self) -> Floats:
        """Asks `Bounds` for boxes that have some point of the region."""
        return touching(self.low, self.high)

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


def is_upper_left(zone: Zone, other: Zone) -> bool:
    """Whether a neighbour of a zone lies over one of the faces that events spread over."""
    faces = zip(zone.high[::2], other.low[::2], zone.low[1::2], other.high[1::2], strict=True)
    return any(high == others_low or low == others_high for high, others_low, low, others_high in faces)


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

    low, high: the neighbours' edges, a row for each. Answers are rows of these; those that are added later
    have any other number.
    """

    def __init__(self, zone: Zone, low: Floats, high: Floats) -> None:
        self._zone = zone
        self.rows: list[int] = []
        self._events, self._zones = Bounds(zone.dimensions), Bounds(zone.dimensions)
        self._append(range(len(low)), low.T, high.T)

    def add(self, row: int, zone: Zone) -> None:
        """There is another neighbour."""
        if is_upper_left(zone, self._zone):
            self._append((row,), np.array(zone.low)[:, None], np.array(zone.high)[:, None])

    def _append(self, rows: Sequence[int], low: Floats, high: Floats) -> None:
        found = _boxes(self._zone, low, high)
        if found is not None:
            self.rows += [rows[place] for place in found.rows.tolist()]
            self._events.append(found.event_low, open_edges(found.event_high))
            self._zones.append(found.low, open_edges(found.high))

    def remove(self, row: int) -> None:
        """A neighbour is gone. The last one moves to where it stood."""
        if row not in self.rows:
            return
        place, last = self.rows.index(row), self.rows.pop()
        if place < len(self.rows):
            self.rows[place] = last
        self._events.remove(place)
        self._zones.remove(place)

    def children(self, region: Region) -> Sequence[int]:
        """The neighbours of which this zone is the one parent."""
        if not self.rows:
            return ()
        mine = self._events.fitting(region.corner_asked)
        if not region.is_open:
            mine &= self._zones.fitting(region.box_asked)
        return [self.rows[place] for place in mine.nonzero()[0].tolist()]

    def all_upper_left(self, region: Region) -> Sequence[int]:
        """All neighbours on the upper left that the region has points of: the algorithm as printed."""
        inside = self._zones.fitting(region.box_asked)
        return [self.rows[place] for place in inside.nonzero()[0].tolist()]


@dataclass(frozen=True, slots=True)
class _Boxes:
    """Neighbours on the upper left of a zone, a column for each, by their rows: their edges, and those of the
    box of which an event's point has to be in for the zone to be the neighbour's parent.
    """

    rows: Indices
    event_low: Floats
    event_high: Floats
    low: Floats
    high: Floats


def _boxes(zone: Zone, low: Floats, high: Floats) -> _Boxes | None:
    """low, high: neighbours' edges, a column for each. None if none is on the upper left."""
    numbers = np.arange(zone.dimensions)[:, None]
    own_low, own_high = np.array(zone.low)[:, None], _open(np.array(zone.high))[:, None]
    starts = numbers % 2 == 0
    faces = np.where(starts, own_low == high, np.array(zone.high)[:, None] == low)
    rows = np.flatnonzero(faces.any(axis=0))
    if not len(rows):
        return None
    face = faces[:, rows].argmax(axis=0)
    low, high = low[:, rows], _open(high[:, rows])
    both_low, both_high = np.maximum(low, own_low), np.minimum(high, own_high)
    after, at = numbers > face, numbers == face
    beyond = np.where(starts & after, np.where(high <= own_high, inf, own_high), both_high)
    from_low = np.where(~starts & after, np.where(low >= own_low, -inf, own_low), both_low)
    return _Boxes(rows, np.where(at, -inf, from_low), np.where(at, inf, beyond), low, high)


def _open(high: Floats) -> Floats:
    """Upper edges, none where the space ends: what is there belongs to the zone."""
    found: Floats = np.where(high == TOP, inf, high)
    return found
