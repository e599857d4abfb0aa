"""A router network as arrays: delays between routers, the nearest of many, and the load of many routes.

It serves simulations of very many hosts. A host is connected to its router by a LAN link, whose packets are
not counted here. The load of a link direction is the number of packets that cross it: each unicast counts,
and a multicast counts once for each direction of the tree that merges the unicast routes from its source
(Scribe 2002, IV.A).
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import csr_matrix

from topologies.generated.router_network import Path, RouterNetwork

Ints = npt.NDArray[Any]
UNREACHED_US = 1 << 40
"""Longer than any route."""


class RouterArrays:
    """The arrays of one network. count: of routers; directions: number of link directions between them."""

    def __init__(self, network: RouterNetwork) -> None:
        self.network = network
        self.count = len(network.gateways)
        self.directions = 2 * len(network.links)
        self._gateways = np.asarray(network.gateways)
        self._stubs = np.asarray(network.stubs)
        self._transit = len(network.between)
        self._up = self._crossed(network.up)
        self._down = self._crossed(path.back for path in network.up)
        self._middle = self._crossed(path for paths in network.between for path in paths)
        self._place = np.zeros(len(network.gateways), np.int64)  # of a router within its stub
        for paths in network.within:
            for place, router in enumerate(sorted(paths)):
                self._place[router] = place
        self._width = max(map(len, network.within), default=0)
        within = [
            paths.get(other, Path(0, ()))
            for paths in network.within
            for other in (*sorted(paths), *[-1] * (self._width - len(paths)))
        ]
        self._within = self._crossed(within)
        self._within_us = np.array([path.delay_us for path in within], np.int64)
        self._up_us = np.array([path.delay_us for path in network.up], np.int64)
        self._middle_us = np.array([[path.delay_us for path in paths] for paths in network.between], np.int64)

    def _crossed(self, paths: Iterable[Path]) -> csr_matrix:
        """Return a matrix with a row per path and a column per link direction: 1 if the path crosses it."""
        starts, columns = [0], list[int]()
        for path in paths:
            columns += path.directions
            starts.append(len(columns))
        shape = len(starts) - 1, self.directions
        return csr_matrix((np.ones(len(columns), np.int64), columns, starts), shape=shape)

    def delays_us(self, a: Ints, b: Ints) -> Ints:
        """Return the delays in microseconds between routers; the arrays are broadcast."""
        a, b = np.broadcast_arrays(a, b)
        delays: Ints = self._up_us[a] + self._middle_us[self._gateways[a], self._gateways[b]] + self._up_us[b]
        near = self._same_stub(a, b)
        delays[near] = self._within_us[a[near] * self._width + self._place[b[near]]]
        return delays

    def delay_between(self) -> Callable[[int, int], int]:
        """Return a function that gives the delay of one pair of routers, in microseconds."""
        given = (self._stubs, self._gateways, self._place, self._up_us, self._middle_us, self._within_us)
        stubs, gateways, place, up, middle, within = (each.tolist() for each in given)
        width = self._width

        def delay_us(a: int, b: int) -> int:
            if stubs[a] == stubs[b] >= 0:
                return int(within[a * width + place[b]])
            return int(up[a] + middle[gateways[a]][gateways[b]] + up[b])

        return delay_us

    def nearest(self, routers: Ints, candidates: Ints) -> Ints:
        """Return the index of the nearest candidate for each router.

        Under each other gateway that is the candidate nearest to it; under the own one all are compared.
        """
        order = np.lexsort((self._up_us[candidates], self._gateways[candidates]))
        gateways, starts = np.unique(self._gateways[candidates[order]], return_index=True)
        best = order[starts]
        far_us = self._middle_us[:, gateways] + self._up_us[candidates[best]]
        far_us[gateways, np.arange(len(gateways))] = UNREACHED_US
        at = far_us.argmin(axis=1)[self._gateways[routers]]
        found: Ints = best[at]
        delays_us = self._up_us[routers] + far_us[self._gateways[routers], at]
        for gateway, own in zip(gateways, np.split(order, starts[1:]), strict=True):
            asking = np.nonzero(self._gateways[routers] == gateway)[0]
            near_us = self.delays_us(routers[asking, None], candidates[own])
            nearer = near_us.min(axis=1, initial=UNREACHED_US) < delays_us[asking]
            found[asking[nearer]] = own[near_us[nearer].argmin(axis=1)]
        return found

    @property
    def mean_link_delay_us(self) -> float:
        """The mean delay of all links between routers."""
        return self.network.mean_link_delay_us

    def transit_links_of(self, router: int) -> Sequence[int]:
        """Return the numbers of the links that join a transit router's domain to others."""
        links, transit = list(enumerate(self.network.links)), self._transit
        within = [(link.a, link.b) for _, link in links if link.weight == 1 and max(link.a, link.b) < transit]
        size = 0
        domain = {router}
        while len(domain) > size:
            size = len(domain)
            domain |= {end for ends in within if not domain.isdisjoint(ends) for end in ends}
        return [
            number for number, link in links if link.weight > 1 and (link.a in domain) != (link.b in domain)
        ]

    def crossing(self, links: Sequence[int]) -> Ints:
        """Return, for each pair of routers, whether the route crosses one of these transit links."""
        directions = np.zeros(self.directions, np.int64)
        directions[[2 * link for link in links] + [2 * link + 1 for link in links]] = 1
        crossed = (self._middle @ directions).reshape(self._transit, self._transit) > 0
        found: Ints = crossed[np.ix_(self._gateways, self._gateways)]
        return found

    def unicast_loads(self, sources: Ints, targets: Ints) -> Ints:
        """Return the packets over each link direction if each source router sends one to its target."""
        near = self._same_stub(sources, targets)
        a, b = sources[~near], targets[~near]
        routers, transit = len(self._gateways), self._transit
        middle = self._gateways[a] * transit + self._gateways[b]
        within = sources[near] * self._width + self._place[targets[near]]
        return np.asarray(
            self._up.T @ np.bincount(a, minlength=routers)
            + self._middle.T @ np.bincount(middle, minlength=transit * transit)
            + self._down.T @ np.bincount(b, minlength=routers)
            + self._within.T @ np.bincount(within, minlength=routers * self._width)
        )

    def multicast_loads(self, sources: Sequence[int], groups: Ints, targets: Ints) -> Ints:
        """Return the packets over each link direction if each group's source sends one to all its targets.

        groups: the group number of each target, which is the index of its source in `sources`.
        """
        source = np.asarray(sources)[groups]
        near = self._same_stub(source, targets)
        far, a, b = groups[~near], source[~near], targets[~near]
        middle = self._gateways[a] * self._transit + self._gateways[b]
        within = source[near] * self._width + self._place[targets[near]]
        count = len(sources)
        crossed = (
            _chosen(far, a, (count, self._up.shape[0])) @ self._up
            + _chosen(far, middle, (count, self._middle.shape[0])) @ self._middle
            + _chosen(far, b, (count, self._down.shape[0])) @ self._down
            + _chosen(groups[near], within, (count, self._within.shape[0])) @ self._within
        )
        return np.bincount(crossed.tocsr().indices, minlength=self.directions)

    def _same_stub(self, a: Ints, b: Ints) -> Ints:
        near: Ints = (self._stubs[a] == self._stubs[b]) & (self._stubs[a] >= 0)
        return near


def _chosen(rows: Ints, columns: Ints, shape: tuple[int, int]) -> csr_matrix:
    return csr_matrix((np.ones(len(rows), np.int64), (rows, columns)), shape=shape)
