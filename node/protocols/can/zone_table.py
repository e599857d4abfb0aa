"""Arrays of zones, for queries over all neighbours at once: in 14 dimensions a zone has hundreds."""

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
"""Points whose nearest zones are cached; when the cache is full, it is cleared."""


class ZoneTable(Generic[O]):
    """Zones and their owners. Queries return arrays over rows; `owners` and `zones` have the row order.

    A row's number changes when another row is removed. One owner may have several zones, and a zone may have
    several owners while nodes disagree. `watch` is called with each change: owner, zone, and whether the
    owner has the zone now.
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
        """Lower edges, one row per zone."""
        return self._low[: len(self.owners)]

    @property
    def high(self) -> Floats:
        """Upper edges, one row per zone."""
        return self._high[: len(self.owners)]

    # --- Changes

    def add(self, owner: O, zone: Zone) -> None:
        """Add a zone of an owner; do nothing if it is known."""
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
        """Remove a zone of an owner; the last row moves into the gap."""
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

    # --- Queries

    def distances(self, point: Point) -> Floats:
        """Return the squared Euclidean distance from the point to each zone, edges included."""
        at = np.asarray(point)
        gaps = np.maximum(self.low, at)
        np.minimum(gaps, self.high, out=gaps)
        gaps -= at
        squared: Floats = np.einsum("ij,ij->i", gaps, gaps)
        return squared

    def nearest(self, point: Point) -> tuple[tuple[O, Zone], ...]:
        """Return the zones nearest to the point, with their owners.

        `approach` decides between zones at the same distance. The result is cached until the table changes,
        because messages that wait for a probe ask repeatedly.
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
        """Return a mask of the zones that contain the point."""
        at = np.asarray(point)
        return _true_in_all((self.low <= at) & (at < self._closed[: len(self.owners)]))

    def intersecting(self, box: Zone) -> Mask:
        """Return a mask of the zones that share volume with the box."""
        inside = (self.low < np.asarray(box.high)) & (np.asarray(box.low) < self.high)
        return _true_in_all(inside)

    def touching(self, box: Zone) -> Mask:
        """Return a mask of the zones that touch the box, edges included on both sides.

        The box may be flat in some or all dimensions.
        """
        inside = (self.low <= np.asarray(box.high)) & (np.asarray(box.low) <= self.high)
        return _true_in_all(inside)

    def adjacent(self, zone: Zone) -> Mask:
        """Return a mask of the zones that share a face with the given zone."""
        low, high = np.asarray(zone.low), np.asarray(zone.high)
        faces = (self.low == high) | (self.high == low)
        touched_once: Mask = np.count_nonzero(faces, axis=1) == 1
        return self.touching(zone) & touched_once


def _true_in_all(inside: Mask) -> Mask:
    """Return the mask of the rows that are true in all dimensions."""
    rows: Mask = np.logical_and.reduce(inside, axis=1)
    return rows


def approach(zone: Zone, point: Point) -> tuple[float, ...]:
    """Return a sort key for zones at the same distance from a point.

    A zone that is at least as near in each dimension sorts first. A dimension in which the point is inside
    the zone sorts before one in which it is on an upper edge, which does not belong to the zone; that sorts
    before one in which the point is outside.
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
