"""Nodes that others told of and that did not answer yet: which of them belong into the leaf set if they live.

Of the leaf sets that a node is told, MSPastry (DSN 2004, figure 2) probes those that would stand in its own
if all of them did, and no others. A node that joins has an empty leaf set: held against that, everybody
would belong into it, and their neighbours as well, once round the ring.
"""

from collections.abc import Iterable

from node.core.peer_pool import Address
from node.protocols.pastry.ids import NodeHandle
from node.protocols.pastry.leaf_set import LeafSet


class Candidates:
    """For the leaf set of one node. They are kept until all probes are over."""

    def __init__(self, leaf_set: LeafSet, size: int) -> None:
        self._leaf_set = leaf_set
        self._size = size
        self._told: dict[Address, NodeHandle] = {}

    def __contains__(self, node: NodeHandle) -> bool:
        return node.address in self._told

    def hear(self, nodes: Iterable[NodeHandle]) -> None:
        """Others take these for alive."""
        for node in nodes:
            if self._leaf_set.would_take(node):
                self._told[node.address] = node

    def fail(self, node: NodeHandle) -> None:
        """It gives no answer: those that stood behind it may belong there now."""
        self._told.pop(node.address, None)

    def clear(self) -> None:
        """All that belong there are there."""
        self._told.clear()

    @property
    def wanted(self) -> list[NodeHandle]:
        """Those that belong into the leaf set and are not in it."""
        if not self._told:
            return []
        whole = LeafSet(self._leaf_set.own, self._size)
        for node in (*self._leaf_set.members, *self._told.values()):
            whole.add(node)
        return [node for node in whole.members if node not in self._leaf_set]
