"""Regions that events affect, and the forwarding of events between zones (3.4).

The printed corners of the affected region miss zones for events without all values; by the printed predicate
for matches the region is prod [L_i, c_i1] x [c_i2, H_i]. Its bottom-right corner is the event's own point,
from which the event spreads to zones on the upper left: across the lower faces of dimensions of range starts,
and the upper faces of dimensions of range ends.

Each zone but the first has one parent. Clip the zone's own bottom-right corner to the region, and step across
the first face in a dimension where the corner is not at the event's coordinate yet: the zone there is the
parent. For two given neighbours this depends only on whether the event's point lies in a certain box; so a
zone stores these boxes of all its neighbours and finds its children by one comparison (`NextZones`), however
many neighbours it has.

All regions are closed boxes over which messages spread from the bottom-right corner; recovery (4.3) asks the
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
from node.protocols.meghdoot.zones.bounds import BoxArray, covering, open_edges, touching

Indices = npt.NDArray[np.intp]
PRIME = (1 << 61) - 1
"""Modulus of numbers of points, which would have hundreds of digits."""


@dataclass(frozen=True)
class SpaceRegion:
    """A box with all of its edges. Queries for it are computed once."""

    low: Point
    high: Point

    @cached_property
    def corner(self) -> Point:
        """Bottom-right corner, from which messages spread; for an event's region, the event."""
        sides = zip(self.high[::2], self.low[1::2], strict=True)
        return tuple(each for both in sides for each in both)

    @cached_property
    def corner_asked(self) -> Floats:
        """Query for boxes in `BoxArray` that contain the corner."""
        return covering(self.corner, self.corner)

    @cached_property
    def box_asked(self) -> Floats:
        """Query for boxes in `BoxArray` that share a point with the region."""
        return touching(self.low, self.high)

    @cached_property
    def is_open(self) -> bool:
        """Whether it extends from its corner to the edges of the space, as the region of an event does."""
        return not any(self.low[::2]) and all(each == TOP for each in self.high[1::2])

    def touches(self, zone: Zone) -> bool:
        """Return whether a zone shares a point with the region."""
        for zone_low, zone_high, low, high in zip(zone.low, zone.high, self.low, self.high, strict=True):
            if zone_low > high or (low >= zone_high != TOP):
                return False
        return True


def is_upper_left(zone: Zone, other: Zone) -> bool:
    """Return whether a neighbour lies across one of the faces over which events spread."""
    faces = zip(zone.high[::2], other.low[::2], zone.low[1::2], other.high[1::2], strict=True)
    return any(high == others_low or low == others_high for high, others_low, low, others_high in faces)


def affected(event: Point) -> SpaceRegion:
    """Return the region of all subscription points that an event at this point may match."""
    low = tuple(0.0 if number % 2 == 0 else at for number, at in enumerate(event))
    high = tuple(at if number % 2 == 0 else TOP for number, at in enumerate(event))
    return SpaceRegion(low, high)


def closed(zone: Zone) -> SpaceRegion:
    """Return a zone with all of its edges."""
    return SpaceRegion(zone.low, zone.high)


def around(zone: Zone) -> SpaceRegion:
    """Return a zone together with the nearest grid points on all sides."""
    step = 1 / GRID
    low = tuple(max(0.0, each - step) for each in zone.low)
    return SpaceRegion(low, zone.high)


Steps = tuple[tuple[int, int], ...]
"""First grid point of a box in each dimension, and the first one beyond it."""


def steps_of_zone(zone: Zone) -> Steps:
    """Return the grid steps of a zone."""
    return tuple(
        (ceil(low * GRID), GRID + 1 if high == TOP else ceil(high * GRID))
        for low, high in zip(zone.low, zone.high, strict=True)
    )


def steps_of_region(region: SpaceRegion) -> Steps:
    """Return the grid steps of a region."""
    return tuple(
        (ceil(low * GRID), floor(high * GRID) + 1) for low, high in zip(region.low, region.high, strict=True)
    )


def points_in(zone: Steps, region: Steps) -> int:
    """Return the number of grid points that both share, modulo `PRIME`.

    The sum over disjoint zones shows whether they cover a region: it lacks each point that no zone has.
    Volumes do not suffice, since regions may be flat, and zones too small to matter.
    """
    found = 1
    for (begin, end), (first, beyond) in zip(zone, region, strict=True):
        side = (end if end < beyond else beyond) - (begin if begin > first else first)
        if side <= 0:
            return 0
        found = found * side % PRIME
    return found


def all_points(region: Steps) -> int:
    """Return the number of grid points of a region, modulo `PRIME`."""
    return points_in(region, region)


class NextZones:
    """The upper-left neighbours of a zone, and the choice of those to which it forwards a message.

    low, high: edges of the neighbours, one row each. Results are row numbers; later neighbours get new
    numbers.
    """

    def __init__(self, zone: Zone, low: Floats, high: Floats) -> None:
        self._zone = zone
        self.rows: list[int] = []
        self._events, self._zones = BoxArray(zone.dimensions), BoxArray(zone.dimensions)
        self._append(range(len(low)), low.T, high.T)

    def add(self, row: int, zone: Zone) -> None:
        """Add a neighbour."""
        if is_upper_left(zone, self._zone):
            self._append((row,), np.array(zone.low)[:, None], np.array(zone.high)[:, None])

    def _append(self, rows: Sequence[int], low: Floats, high: Floats) -> None:
        found = _boxes(self._zone, low, high)
        if found is not None:
            self.rows += [rows[place] for place in found.rows.tolist()]
            self._events.append(found.event_low, open_edges(found.event_high))
            self._zones.append(found.low, open_edges(found.high))

    def remove(self, row: int) -> None:
        """Remove a neighbour; the last one moves to its place."""
        if row not in self.rows:
            return
        place, last = self.rows.index(row), self.rows.pop()
        if place < len(self.rows):
            self.rows[place] = last
        self._events.remove(place)
        self._zones.remove(place)

    def children(self, region: SpaceRegion) -> Sequence[int]:
        """Return the neighbours whose parent this zone is."""
        if not self.rows:
            return ()
        mine = self._events.fitting(region.corner_asked)
        if not region.is_open:
            mine &= self._zones.fitting(region.box_asked)
        return [self.rows[place] for place in mine.nonzero()[0].tolist()]

    def all_upper_left(self, region: SpaceRegion) -> Sequence[int]:
        """Return all upper-left neighbours that the region touches: the algorithm as printed."""
        inside = self._zones.fitting(region.box_asked)
        return [self.rows[place] for place in inside.nonzero()[0].tolist()]


@dataclass(frozen=True, slots=True)
class _Boxes:
    """Upper-left neighbours of a zone by row, one column each.

    Edges of the neighbours, and the boxes of event points for which the zone is their parent.
    """

    rows: Indices
    event_low: Floats
    event_high: Floats
    low: Floats
    high: Floats


def _boxes(zone: Zone, low: Floats, high: Floats) -> _Boxes | None:
    """Return the boxes of the upper-left neighbours; None if there are none.

    low, high: edges of the neighbours, one column each.
    """
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
    """Return upper edges, with infinity at the end of the space: points there belong to the zone."""
    found: Floats = np.where(high == TOP, inf, high)
    return found
