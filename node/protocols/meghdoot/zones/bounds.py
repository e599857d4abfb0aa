"""Many boxes, and by one comparison which of them cover another box, or touch it; a point does both.

A box is a column of its lower edges, then of its upper ones with their sign turned. What is asked is a column
as well (`covering`, `touching`), and fits a box if it is nowhere below it. An edge that does not belong to
its box is moved inwards by the least that a number can be (`open_edges`).
"""

import numpy as np
import numpy.typing as npt

from node.protocols.can.zone_table import Floats, Mask

ROOM_MIN = 8


def covering(low: npt.ArrayLike, high: npt.ArrayLike) -> Floats:
    """Asks for boxes that have all of another one."""
    return np.concatenate((np.asarray(low), -np.asarray(high)))[:, None]


def touching(low: npt.ArrayLike, high: npt.ArrayLike) -> Floats:
    """Asks for boxes that have some point of another one, whose edges count."""
    return covering(high, low)


def open_edges(high: Floats) -> Floats:
    """Upper edges that do not belong to their boxes."""
    found: Floats = np.nextafter(high, -np.inf)
    return found


class Bounds:
    """Boxes by their places, from 0 on."""

    def __init__(self, dimensions: int) -> None:
        self._edges = np.empty((2 * dimensions, ROOM_MIN))
        self._count = 0

    def append(self, low: Floats, high: Floats) -> None:
        """Add boxes, a column for each."""
        edges = np.concatenate((low, -high))
        count = self._count + edges.shape[1]
        if count > self._edges.shape[1]:
            grown = np.empty((len(edges), max(count, 2 * self._edges.shape[1])))
            grown[:, : self._count] = self._edges[:, : self._count]
            self._edges = grown
        self._edges[:, self._count : count] = edges
        self._count = count

    def remove(self, place: int) -> None:
        """Forget a box. The last one moves to where it stood."""
        self._count -= 1
        self._edges[:, place] = self._edges[:, self._count]

    def fitting(self, asked: Floats) -> Mask:
        """Which boxes a column asks for."""
        inside: Mask = np.logical_and.reduce(self._edges[:, : self._count] <= asked, axis=0)
        return inside
