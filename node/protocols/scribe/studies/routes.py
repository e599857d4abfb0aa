"""Routes of Pastry over the number of nodes: hops, distance and convergence (section 2 of both papers).

Overlays are built at once, on a plane and on the transit-stub network. Routes lead from random nodes to
random keys. Two routes to the same key converge at the first node that is on both; the papers compare the
distance that each travels until there with the distance between their sources.
"""

from itertools import pairwise
from typing import Any

import numpy as np

from node.core.peers.peer_pool import Address
from node.core.study import Ints, StudyContext
from node.protocols.overlay.node import unplanned_spec
from node.protocols.pastry.direct import DirectOverlay, Proximity, way_of
from node.protocols.pastry.overlay import Pastry
from node.protocols.reachability.nodes import NodeHandle, id_of
from node.protocols.scribe.node import ScribeNode
from node.protocols.scribe.population import QUIET
from node.protocols.scribe.studies.parameters import LAN_US, RoutesParameters
from node.sim.proximity import Plane, Routers

SIDE_US = 60_000
"""Delay along a side of the plane in microseconds; it scales all delays."""


def execute(parameters: RoutesParameters, given: StudyContext) -> None:
    """Measure all sizes on both networks."""
    sizes = list(parameters.sizes())
    routers = given.routers(varied=True)
    for number, count in enumerate(sizes):
        rng = given.generator
        where = rng.integers(0, routers.count, count)
        networks: dict[str, Proximity] = {
            "plane": Plane(rng.random((count, 2)), SIDE_US, rng),
            "transit-stub": Routers(routers, where, LAN_US, rng),
        }
        for name, proximity in networks.items():
            given.report(f"{count} nodes, {name}", number / len(sizes))
            _Routes(count, proximity, given).measure(name, parameters.routes)


class _Routes:
    """Routes in one overlay. Nodes are made when a route visits them."""

    def __init__(self, count: int, proximity: Proximity, given: StudyContext) -> None:
        self._names = sorted((f"node-{number}" for number in range(count)), key=id_of)
        handles = [NodeHandle(id_of(name), address) for address, name in enumerate(self._names)]
        self._given, self._count = given, count
        self._overlay = DirectOverlay(handles, proximity, 4, 16)
        self._delay_us = proximity.delay_between()
        self._nodes: dict[Address, Pastry] = {}

    def _node(self, address: Address) -> Pastry:
        pastry = self._nodes.get(address)
        if pastry is None:
            spec = unplanned_spec("scribe", "member", self._names[address], address, parameters=QUIET)
            pastry = self._nodes[address] = ScribeNode(spec, self._given.rng).pastry
            self._overlay.settle(pastry)
        return pastry

    def measure(self, network: str, routes: int) -> None:
        """Follow two routes to each of some keys, and write a row for each pair."""
        generator = self._given.generator
        keys = [int.from_bytes(generator.bytes(16), "big") for _ in range(routes)]
        starts: Ints = generator.integers(0, self._count, (routes, 2))
        rows = []
        for key, (one, other) in zip(keys, starts.tolist(), strict=True):
            first, second = way_of(self._node, one, key), way_of(self._node, other, key)
            assert first[-1] == second[-1] == self._overlay.closest(key).address, f"{key:032x} led elsewhere"
            meeting = next(node for node in first if node in second)
            until = [self._took_us(way[: way.index(meeting) + 1]) for way in (first, second)]
            direct_us = self._delay_us(one, first[-1]) if len(first) > 1 else 0
            apart_us = self._delay_us(one, other) if one != other else 0
            rows.append((len(first) - 1, self._took_us(first), direct_us, apart_us, sum(until) / 2))
        names = ("hops", "took_us", "direct_us", "apart_us", "until_us")
        columns: dict[str, Any] = dict(zip(names, np.array(rows).T, strict=True))
        columns |= {"network": [network] * routes, "nodes": np.full(routes, self._count)}
        self._given.write("routes", columns)

    def _took_us(self, way: list[Address]) -> int:
        return sum(self._delay_us(a, b) for a, b in pairwise(way))
