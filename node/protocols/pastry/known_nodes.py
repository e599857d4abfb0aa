"""The nodes that a node knows: leaf set, routing table, neighbourhood set; and who of them is next on a way.

Section 2 of both Scribe papers. No way goes round in a loop: as long as it leads by prefix, each node shares
more digits with the key or is closer to it; as soon as a leaf set covers the key, each node is closer
(`Phase`).
"""

from bisect import insort
from collections.abc import Callable, Iterable, Iterator
from itertools import chain

from node.protocols.pastry.ids import closest, distance, shared_digits
from node.protocols.pastry.leaf_set import LeafSet
from node.protocols.pastry.messages import Phase
from node.protocols.pastry.parameters import PastryParameters
from node.protocols.pastry.routing_table import RoutingTable
from node.protocols.reachability.nodes import NodeHandle


class KnownNodes:
    """Of one node. `neighbourhood` has the nearest ones, with their round-trip times in microseconds.

    is_suspect: whether a node is being asked whether it lives.
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
        """All in the leaf set and the routing table; some may be given twice."""
        return chain(self.leaf_set.smaller, self.leaf_set.larger, self.table)

    def measured(self, node: NodeHandle, rtt_us: int) -> None:
        """How far away a node is."""
        self.table.offer(node, rtt_us)
        known = self.neighbourhood
        if len(known) < self._neighbours or rtt_us < known[-1][0]:
            others = [each for each in known if each[1].id != node.id]
            insort(others, (rtt_us, node), key=lambda each: (each[0], each[1].id))
            self.neighbourhood = others[: self._neighbours]

    def remove(self, node: NodeHandle) -> bool:
        """Forget a node; whether it was in the leaf set."""
        was_leaf = self.leaf_set.remove(node)
        self.table.remove(node)
        self.neighbourhood = [each for each in self.neighbourhood if each[1] != node]
        for rtt_us, near in self.neighbourhood:  # the slot of the one that is gone may be theirs
            self.table.offer(near, rtt_us)
        return was_leaf

    # --- Who is next

    def following(self, key: int, phase: int) -> tuple[NodeHandle, int]:
        """To whom a message for a key goes next (the node itself: it is delivered), and how.

        Leaf set, routing table, and the rare case, in this order (2001, section 2).
        """
        if phase == Phase.LEAF_SET or self.leaf_set.covers(key):
            return self.leaf_set.closest(key), Phase.LEAF_SET
        entry = self.table.entry(key)
        if entry is not None and not self._is_suspect(entry):
            return entry, Phase.PREFIX
        return self._closest(key, self), Phase.PREFIX

    def before(self, joining: NodeHandle, key: int) -> tuple[NodeHandle, int]:
        """To whom a join goes where the joining node is known already: it came back, or sent a probe."""
        others = [node for node in self if node.address != joining.address]
        if self.leaf_set.covers(key):
            members = (node for node in others if node in self.leaf_set)
            return closest(key, (self.own, *members)), Phase.LEAF_SET
        return self._closest(key, others), Phase.PREFIX

    def detours(self, key: int) -> list[NodeHandle]:
        """All to whom a message for a key may go next."""
        b, row, far = self._b, shared_digits(self.own.id, key, self._b), distance(self.own.id, key)
        is_near = self.leaf_set.covers(key)

        def is_fit(node: NodeHandle) -> bool:
            shared, is_closer = shared_digits(node.id, key, b), distance(node.id, key) < far
            return is_closer if is_near else shared > row or (shared == row and is_closer)

        known = dict.fromkeys(chain(self, (node for _, node in self.neighbourhood)))
        return [node for node in known if is_fit(node) and not self._is_suspect(node)]

    def _closest(self, key: int, nodes: Iterable[NodeHandle]) -> NodeHandle:
        """Of those that share no fewer digits with the key than the node itself and are closer; or itself.

        One that is being probed only where there is no other: the message waits for it, for this node is not
        the closest while that lives.
        """
        row, far = shared_digits(self.own.id, key, self._b), distance(self.own.id, key)
        fit = (
            node
            for node in nodes
            if distance(node.id, key) < far and shared_digits(node.id, key, self._b) >= row
        )
        return min(fit, key=lambda node: (self._is_suspect(node), distance(node.id, key)), default=self.own)
