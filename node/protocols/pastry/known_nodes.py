"""Nodes that a node knows (leaf set, routing table, neighbourhood set), and the choice of the next hop.

Section 2 of both Scribe papers. No route loops: while it follows prefixes, each node shares more digits with
the key or is closer to it; once a leaf set covers the key, each node is closer (`RoutePhase`).
"""

from bisect import insort
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from node.protocols.pastry.ids import closest, distance, shared_digits
from node.protocols.pastry.leaf_set import LeafSet
from node.protocols.pastry.messages import RoutePhase
from node.protocols.pastry.parameters import PastryParameters
from node.protocols.pastry.routing_table import RoutingTable
from node.protocols.reachability.nodes import NodeHandle


class KnownNodes:
    """Nodes known to one node. `neighbourhood` has the nearest ones with round-trip times in microseconds.

    is_suspect: returns whether a node is being probed.
    """

    def __init__(
        self, own: NodeHandle, parameters: PastryParameters, is_suspect: Callable[[NodeHandle], bool]
    ) -> None:
        self.own = own
        self.leaf_set = LeafSet(own, parameters.leaf_set)
        self.table = RoutingTable(own.id, parameters.b)
        self.neighbourhood: list[tuple[int, NodeHandle]] = []
        self._b = parameters.b
        self._neighbours = parameters.neighbourhood
        self._is_suspect = is_suspect

    def __iter__(self) -> Iterator[NodeHandle]:
        """Iterate over the leaf set and the routing table; a node may occur twice."""
        return chain(self.leaf_set.smaller, self.leaf_set.larger, self.table)

    def measured(self, node: NodeHandle, rtt_us: int) -> None:
        """Record the round-trip time of a node."""
        self.table.offer(node, rtt_us)
        known = self.neighbourhood
        if len(known) < self._neighbours or rtt_us < known[-1][0]:
            others = [each for each in known if each[1].id != node.id]
            insort(others, (rtt_us, node), key=lambda each: (each[0], each[1].id))
            self.neighbourhood = others[: self._neighbours]

    def remove(self, node: NodeHandle) -> bool:
        """Forget a node; return whether it was in the leaf set."""
        was_leaf = self.leaf_set.remove(node)
        self.table.remove(node)
        self.neighbourhood = [each for each in self.neighbourhood if each[1] != node]
        for rtt_us, near in self.neighbourhood:  # candidates for the empty slot
            self.table.offer(near, rtt_us)
        return was_leaf

    # --- Next hop

    def following(self, key: int, phase: int) -> tuple[NodeHandle, int]:
        """Return the next hop of a key (the node itself: deliver) and the phase.

        Leaf set, routing table, and the rare case, in this order (2001, section 2).
        """
        if phase == RoutePhase.LEAF_SET or self.leaf_set.covers(key):
            return self.leaf_set.closest(key), RoutePhase.LEAF_SET
        entry = self.table.entry(key)
        if entry is not None and not self._is_suspect(entry):
            return entry, RoutePhase.PREFIX
        return self._closest(key, self), RoutePhase.PREFIX

    def before(self, joining: NodeHandle, key: int) -> tuple[NodeHandle, int]:
        """Return the next hop of a join if the joining node itself is known: it returned, or sent a probe."""
        others = [node for node in self if node.address != joining.address]
        if self.leaf_set.covers(key):
            members = (node for node in others if node in self.leaf_set)
            return closest(key, (self.own, *members)), RoutePhase.LEAF_SET
        return self._closest(key, others), RoutePhase.PREFIX

    def detours(self, key: int) -> list[NodeHandle]:
        """Return all nodes that may be the next hop of a key."""
        b, row, far = self._b, shared_digits(self.own.id, key, self._b), distance(self.own.id, key)
        is_near = self.leaf_set.covers(key)

        def is_fit(node: NodeHandle) -> bool:
            shared, is_closer = shared_digits(node.id, key, b), distance(node.id, key) < far
            return is_closer if is_near else shared > row or (shared == row and is_closer)

        known = dict.fromkeys(chain(self, (node for _, node in self.neighbourhood)))
        return [node for node in known if is_fit(node) and not self._is_suspect(node)]

    def _closest(self, key: int, nodes: Iterable[NodeHandle]) -> NodeHandle:
        """Return the closest node that shares no fewer digits with the key, or the node itself.

        A node that is being probed is chosen only if there is no other: the message waits for it, since this
        node is not the closest one while that node is alive.
        """
        row, far = shared_digits(self.own.id, key, self._b), distance(self.own.id, key)
        fit = (
            node
            for node in nodes
            if distance(node.id, key) < far and shared_digits(node.id, key, self._b) >= row
        )
        return min(fit, key=lambda node: (self._is_suspect(node), distance(node.id, key)), default=self.own)
