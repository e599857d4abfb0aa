"""Delays between very many nodes, as arrays: hosts on the routers of a network, or points on a plane.

Nodes are numbered from 0 on; delays are one-way, in microseconds.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.spatial import cKDTree

from node.core.study import RouterPaths

Ints = npt.NDArray[Any]


class Routers:
    """Hosts connected to routers by LAN links.

    network: the routers. routers: of each node. lan_us: of each LAN link.
    """

    def __init__(self, network: RouterPaths, routers: Ints, lan_us: int, rng: np.random.Generator) -> None:
        self.routers = routers
        self._network = network
        self._lan_us = 2 * lan_us
        self.rng = rng

    def delays_us(self, nodes: Ints, others: Ints) -> Ints:
        """Return the delay between each node and the one at the same position in `others`."""
        between: Ints = self._network.delays_us(self.routers[nodes], self.routers[others])
        return between + self._lan_us

    def delay_between(self) -> Callable[[int, int], int]:
        """Return a function that gives the delay of one pair of nodes."""
        between, routers, lan_us = self._network.delay_between(), self.routers.tolist(), self._lan_us
        return lambda a, b: between(routers[a], routers[b]) + lan_us

    def nearest(self, nodes: Ints, candidates: Ints) -> Ints:
        """Return the nearest candidate for each node; ties are broken at random."""
        ordered = candidates[np.argsort(self.routers[candidates], kind="stable")]
        there, starts, counts = np.unique(self.routers[ordered], return_index=True, return_counts=True)
        here, asking = np.unique(self.routers[nodes], return_inverse=True)
        best = self._network.nearest(here, there)[asking]
        chosen: Ints = starts[best] + (self.rng.random(len(nodes)) * counts[best]).astype(np.int64)
        found: Ints = ordered[chosen]
        return found


class Plane:
    """Points on a plane (Scribe draft of 2001, section 4): the delay is their distance."""

    def __init__(self, points: npt.NDArray[np.float64], side_us: int, rng: np.random.Generator) -> None:
        self._points = points
        self._side_us = side_us
        self.rng = rng

    def delays_us(self, nodes: Ints, others: Ints) -> Ints:
        """Return the delay between each node and the one at the same position in `others`."""
        apart = np.linalg.norm(self._points[nodes] - self._points[others], axis=-1)
        delays: Ints = 1 + (apart * self._side_us).astype(np.int64)
        return delays

    def delay_between(self) -> Callable[[int, int], int]:
        """Return a function that gives the delay of one pair of nodes."""
        points, side_us = self._points.tolist(), self._side_us

        def delay_us(a: int, b: int) -> int:
            (x, y), (u, v) = points[a], points[b]
            return 1 + int(side_us * ((x - u) ** 2 + (y - v) ** 2) ** 0.5)

        return delay_us

    def nearest(self, nodes: Ints, candidates: Ints) -> Ints:
        """Return the nearest candidate for each node."""
        found: Ints = candidates[cKDTree(self._points[candidates]).query(self._points[nodes])[1]]
        return found
