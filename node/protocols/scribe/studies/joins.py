"""An overlay built by joins, compared with the same one built at once.

Compared are hops, distance, entries, leaf sets and messages. Each node joins through the nearest existing
one, as the papers assume (2002, II). The number of simultaneous joins makes the overlay grow by a twentieth
in the time that a join takes. No node fails, and no heartbeats are sent.
"""

from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from node.core.bounds import sizes_up_to
from node.core.peers.peer_pool import Address
from node.core.study import StudyContext
from node.protocols.overlay.node import unplanned_spec
from node.protocols.pastry.direct import DirectOverlay, way_of
from node.protocols.reachability.nodes import NodeHandle, id_of
from node.protocols.scribe.node import ScribeNode
from node.protocols.scribe.population import LONG_US, QUIET
from node.protocols.scribe.studies.parameters import LAN_US, JoinsParameters
from node.sim.flat_network import FlatNetwork
from node.sim.proximity import Routers
from node.sim.quiet import cyclic_gc_disabled

JOIN_US = 5_000_000
"""Longer than a join takes, in microseconds."""
GROWTH = 20
"""One of this many nodes is joining at a time."""
ATTEMPTS = 5
"""Number of times that a join may be repeated at the end."""
PARAMETERS: Mapping[str, Any] = {
    **QUIET,
    "join_timeout_us": 4 * JOIN_US,
    "tick_us": LONG_US,
    "tree_heartbeat_us": LONG_US,
    "tree_timeout_us": 2 * LONG_US,
}


def execute(parameters: JoinsParameters, given: StudyContext) -> None:
    """Build both overlays and compare routes in them."""
    with cyclic_gc_disabled():
        joins = _Joins(parameters, given)
        joins.run()
        joins.compare()


class _Joins:
    def __init__(self, parameters: JoinsParameters, given: StudyContext) -> None:
        self._given, self._routes = given, parameters.routes
        network, count, rng = given.routers(), parameters.nodes, given.generator
        self._proximity = Routers(network, rng.integers(0, network.count, count), LAN_US, rng)
        names = sorted((f"node-{number}" for number in range(count)), key=id_of)
        self._names = names
        self._handles = [NodeHandle(id_of(name), address) for address, name in enumerate(names)]
        self._network = FlatNetwork(self._proximity.delay_between())
        self._nodes: dict[Address, ScribeNode] = {}

    def run(self) -> None:
        """Make all nodes join."""
        order = self._given.generator.permutation(len(self._handles))
        clock, steps = self._network.clock, {*sizes_up_to(len(order), 100)}
        for done, address in enumerate(order.tolist()):
            there = order[:done]
            contact = int(self._proximity.nearest(np.array([address]), there)[0]) if done else None
            self._start(address, contact)
            self._network.run(clock.now_us + GROWTH * JOIN_US // max(GROWTH, done))
            self._given.report(f"{done + 1} of {len(order)} nodes", done / len(order))
            if done + 1 in steps:
                self._given.write("growth", {"nodes": [done + 1], "messages": [self._network.sent]})
        for _ in range(ATTEMPTS):
            self._network.run(clock.now_us + 4 * JOIN_US)
            if all(node.pastry.is_active for node in self._nodes.values()):
                break
        self._given.put(
            messages_a_join=self._network.sent / len(order),
            messages=self._network.sent,
            active=sum(node.pastry.is_active for node in self._nodes.values()),
        )

    def _start(self, address: Address, contact: Address | None) -> None:
        self._nodes[address] = self._node(address, contact)
        self._network.start(address, self._nodes[address])

    def _node(self, address: Address, contact: Address | None = None) -> ScribeNode:
        contacts = () if contact is None else (contact,)
        name = self._names[address]
        spec = unplanned_spec("scribe", "member", name, address, contacts=contacts, parameters=PARAMETERS)
        return ScribeNode(spec, self._given.rng)

    # --- Comparison

    def compare(self) -> None:
        """Follow the same routes in both overlays."""
        joined = [self._nodes[handle.address].pastry for handle in self._handles]
        used = self._nodes[0].parameters
        overlay = DirectOverlay(self._handles, self._proximity, used.b, used.leaf_set)
        at_once = [self._node(handle.address).pastry for handle in self._handles]
        for pastry in at_once:
            overlay.settle(pastry)
        keys = [int.from_bytes(self._given.generator.bytes(16), "big") for _ in range(self._routes)]
        starts = self._given.generator.integers(0, len(self._handles), self._routes).tolist()
        for made, nodes in (("joins", joined), ("at once", at_once)):
            ways = [way_of(nodes.__getitem__, start, key) for start, key in zip(starts, keys, strict=True)]
            took, direct = self._delays(ways)
            columns = {"hops": [len(way) - 1 for way in ways], "took_us": took, "direct_us": direct}
            self._given.write("routes", {"made": [made] * len(ways), **columns})
            entries = [len(pastry.nodes.table) for pastry in nodes]
            self._given.write("tables", {"made": [made] * len(nodes), "entries": entries})
            missed = sum(overlay.closest(key).address != way[-1] for way, key in zip(ways, keys, strict=True))
            self._given.put(**{f"missed_{made.replace(' ', '_')}": missed})
        wrong = sum(
            (one.leaf_set.smaller, one.leaf_set.larger) != (other.leaf_set.smaller, other.leaf_set.larger)
            for one, other in zip(joined, at_once, strict=True)
        )
        self._given.put(wrong_leaf_sets=wrong)

    def _delays(self, ways: list[list[Address]]) -> tuple[list[int], list[int]]:
        """Return for each route the sum of its hops' delays, and the direct delay."""
        delay_us = self._proximity.delay_between()
        took = [sum(delay_us(a, b) for a, b in pairwise(way)) for way in ways]
        return took, [delay_us(way[0], way[-1]) if len(way) > 1 else 0 for way in ways]
