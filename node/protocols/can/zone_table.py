"""Many zones as arrays, for questions to all neighbours at once: in 14 dimensions a zone has hundreds."""

from collections.abc import Callable, Hashable, Iterator
from typing import Generic, TypeVar

import numpy as np
import numpy.typing as npt

from node.protocols.can.zones import TOP, Point, Zone

Floats = npt.NDArray[np.float64]
Mask = npt.NDArray[np.bool_]
O = TypeVar("O", bound=Hashable)  # noqa: E741 - an owner
ROWS_MIN = 8
NEAREST_MAX = 1_024
"""Points whose nearest zones are remembered; beyond this number, all are forgotten."""


class ZoneTable(Generic[O]):
    """Zones and who has them. All answers are arrays over rows; `owners` and `zones` have the same order.

    A row's number changes when another one is removed. One owner may have several zones, and a zone, while
    nodes disagree, several owners. `watch` is told of each change: who, which zone, and whether it
    has it now.
    """

    def __init__(self, dimensions: int) -> None:
        self.dimensions = dimensions
        self.watch: Callable[[O, Zone, bool], None] | None = None
        self.owners: list[O] = []
        self.zones: list[Zone] = []
        self._low = np.empty((ROWS_MIN, dimensions))
        self._high = np.empty((ROWS_MIN, dimensions))
        self._closed = np.empty((ROWS_MIN, dimensions))
        self._rows: dict[tuple[O, Zone], int] = {}
        self._nearest: dict[Point, tuple[tuple[O, Zone], ...]] = {}

    def __len__(self) -> int:
        return len(self.owners)

    def __contains__(self, key: tuple[O, Zone]) -> bool:
        return key in self._rows

    def __iter__(self) -> Iterator[tuple[O, Zone]]:
        return iter(self._rows)

    @property
    def low(self) -> Floats:
        """The lower edges, a row for each zone."""
        return self._low[: len(self.owners)]

    @property
    def high(self) -> Floats:
        """The upper edges, a row for each zone."""
        return self._high[: len(self.owners)]

    # --- Changes

    def add(self, owner: O, zone: Zone) -> None:
        """An owner has a zone; nothing is changed if that is known."""
        if (owner, zone) in self._rows:
            return
        self._nearest.clear()
        row = len(self.owners)
        if row == len(self._low):
            self._low, self._high, self._closed = (
                np.concatenate((edges, np.empty_like(edges)))
                for edges in (self._low, self._high, self._closed)
            )
        self._low[row] = zone.low
        self._high[row] = zone.high
        self._closed[row] = [np.inf if high == TOP else high for high in zone.high]
        self._rows[owner, zone] = row
        self.owners.append(owner)
        self.zones.append(zone)
        if self.watch is not None:
            self.watch(owner, zone, True)

    def remove(self, owner: O, zone: Zone) -> None:
        """It has it no more; the last row moves to where it stood."""
        row = self._rows.pop((owner, zone))
        self._nearest.clear()
        if self.watch is not None:
            self.watch(owner, zone, False)
        owner, zone = self.owners.pop(), self.zones.pop()
        last = len(self.owners)
        if row == last:
            return
        for edges in (self._low, self._high, self._closed):
            edges[row] = edges[last]
        self.owners[row], self.zones[row] = owner, zone
        self._rows[owner, zone] = row

    # --- Questions

    def distances(self, point: Point) -> Floats:
        """The square of the Euclidean distance from a point to each zone, edges included."""
        at = np.asarray(point)
        gaps = np.maximum(self.low, at)
        np.minimum(gaps, self.high, out=gaps)
        gaps -= at
        squared: Floats = np.einsum("ij,ij->i", gaps, gaps)
        return squared

    def nearest(self, point: Point) -> tuple[tuple[O, Zone], ...]:
        """The zones that are nearest to a point, with their owners: of those at the same distance, the ones
        that `approach` puts first. Remembered until the table changes: what waits for a probe asks again.
        """
        found = self._nearest.get(point)
        if found is None:
            if len(self._nearest) == NEAREST_MAX:
                self._nearest.clear()
            found = self._nearest[point] = self._find_nearest(point)
        return found

    def _find_nearest(self, point: Point) -> tuple[tuple[O, Zone], ...]:
        distances = self.distances(point)
        rows = (distances == distances[distances.argmin()]).nonzero()[0].tolist()
        if len(rows) > 1:
            steps = [approach(self.zones[row], point) for row in rows]
            first = min(steps)
            rows = [row for row, each in zip(rows, steps, strict=True) if each == first]
        return tuple((self.owners[row], self.zones[row]) for row in rows)

    def containing(self, point: Point) -> Mask:
        """Which zones a point is in."""
        at = np.asarray(point)
        return _rows_of((self.low <= at) & (at < self._closed[: len(self.owners)]))

    def intersecting(self, box: Zone) -> Mask:
        """Which zones have some volume in common with a box."""
        inside = (self.low < np.asarray(box.high)) & (np.asarray(box.low) < self.high)
        return _rows_of(inside)

    def touching(self, box: Zone) -> Mask:
        """Which zones have some point, edges included, in common with a box, edges included.

        The box may be flat in some dimensions, or in all.
        """
        inside = (self.low <= np.asarray(box.high)) & (np.asarray(box.low) <= self.high)
        return _rows_of(inside)

    def adjacent(self, zone: Zone) -> Mask:
        """Which zones share a face with one."""
        low, high = np.asarray(zone.low), np.asarray(zone.high)
        faces = (self.low == high) | (self.high == low)
        touched_once: Mask = np.count_nonzero(faces, axis=1) == 1
        return self.touching(zone) & touched_once


def _rows_of(inside: Mask) -> Mask:
    """The rows that hold in all dimensions."""
    rows: Mask = np.logical_and.reduce(inside, axis=1)
    return rows


def approach(zone: Zone, point: Point) -> tuple[float, ...]:
    """Orders zones that are as far from a point: one that is at least as near in each dimension comes first.

    A dimension in which the point is inside comes before all others, one in which it is on an upper edge,
    which is not the zone's, before those in which it is outside.
    """
    steps = []
    for low, at, high in zip(zone.low, point, zone.high, strict=True):
        if low <= at and (at < high or at == high == 1.0):
            steps.append(-np.inf)
        elif at < low:
            steps.append(low)
        else:
            steps.append(-high)
    return tuple(steps)
