"""Many boxes in an array; one comparison finds those that cover or touch another box, or a point.

A box is a column of its lower edges, then of its negated upper edges. A query is a column, too (`covering`,
`touching`), and fits a box if no element is less than the box's. An edge that does not belong to its box is
moved inwards to the next floating-point number (`open_edges`).
"""

import numpy as np
import numpy.typing as npt

from node.protocols.can.zone_table import Floats, Mask

ROOM_MIN = 8


def covering(low: npt.ArrayLike, high: npt.ArrayLike) -> Floats:
    """Return the query for boxes that cover the given one."""
    return np.concatenate((np.asarray(low), -np.asarray(high)))[:, None]


def touching(low: npt.ArrayLike, high: npt.ArrayLike) -> Floats:
    """Return the query for boxes that share a point with the given one, edges included."""
    return covering(high, low)


def open_edges(high: Floats) -> Floats:
    """Return the upper edges to store for boxes that exclude them."""
    found: Floats = np.nextafter(high, -np.inf)
    return found


class BoxArray:
    """Boxes by their indexes, from 0 on."""

    def __init__(self, dimensions: int) -> None:
        self._edges = np.empty((2 * dimensions, ROOM_MIN))
        self._count = 0

    def append(self, low: Floats, high: Floats) -> None:
        """Add boxes, one column each."""
        edges = np.concatenate((low, -high))
        count = self._count + edges.shape[1]
        if count > self._edges.shape[1]:
            grown = np.empty((len(edges), max(count, 2 * self._edges.shape[1])))
            grown[:, : self._count] = self._edges[:, : self._count]
            self._edges = grown
        self._edges[:, self._count : count] = edges
        self._count = count

    def remove(self, place: int) -> None:
        """Remove a box; the last one moves to its index."""
        self._count -= 1
        self._edges[:, place] = self._edges[:, self._count]

    def fitting(self, asked: Floats) -> Mask:
        """Return a mask of the boxes that fit a query."""
        inside: Mask = np.logical_and.reduce(self._edges[:, : self._count] <= asked, axis=0)
        return inside
