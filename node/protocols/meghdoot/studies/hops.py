"""Hops of routes over the number of peers and of dimensions: the paper's O(d N^(1/d)) (2.2).

Peers join at random points, as in CAN, so that zones are only split. Routes lead from random peers to random
points of the space; each hop goes to the neighbour whose zone is nearest to the point.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np

from node.core.study import StudyContext
from node.protocols.can.zones import Point
from node.protocols.meghdoot.studies.parameters import HopsParameters
from node.protocols.meghdoot.studies.peers import Peers
from node.sim.quiet import cyclic_gc_disabled


def execute(parameters: HopsParameters, given: StudyContext) -> None:
    """Grow an overlay for each number of attributes, and follow routes at some sizes."""
    counts = [count for count in (1, 2, 3, 5, 7) if count <= parameters.attributes]
    for number, attributes in enumerate(counts):
        with cyclic_gc_disabled():
            peers = Peers(_workload(attributes), given.rng, {"join": "anywhere"})
            sizes = {*parameters.sizes()}
            for count in range(1, parameters.peers + 1):
                peers.join()
                if count in sizes:
                    _write(peers, attributes, parameters.routes, given)
                    part = number + count / parameters.peers
                    given.report(f"{2 * attributes} dimensions, {count} peers", part / len(counts))


def _workload(attributes: int) -> Mapping[str, Any]:
    each = {"kind": "real", "low": 0.0, "high": 1.0}
    names = (f"a{number}" for number in range(attributes))
    return {"type": "content", "attributes": [{"name": name, **each} for name in names], "templates": []}


def _write(peers: Peers, attributes: int, routes: int, given: StudyContext) -> None:
    points = given.generator.random((routes, 2 * attributes)).tolist()
    hops = np.array([_hops(peers, tuple(point)) for point in points])
    same = np.full((3, routes), [[2 * attributes], [len(peers.nodes)], [_zones(peers)]])
    given.write("routes", {**dict(zip(("dimensions", "peers", "zones"), same, strict=True)), "hops": hops})


def _hops(peers: Peers, point: Point) -> int:
    """Return the hops from a random peer to the holder of the point's zone."""
    address, hops = peers.anyone(), 0
    while True:
        claims = peers.nodes[address].can.claims
        holder, _ = claims.nearest(point)
        if holder is claims.own:
            return hops
        address, hops = holder.node.address, hops + 1


def _zones(peers: Peers) -> int:
    return sum(len(node.can.zones) for node in peers.nodes.values())
