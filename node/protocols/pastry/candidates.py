"""Nodes that others told of and that did not answer yet: which of them belong into the leaf set if they live.

Of the leaf sets that a node is told, MSPastry (DSN 2004, figure 2) probes those that would stand in its own
if all of them did, and no others. A node that joins has an empty leaf set: held against that, everybody
would belong into it, and their neighbours as well, once round the ring.
"""

from collections.abc import Iterable

from node.core.peers.peer_pool import Address
from node.protocols.pastry.known_nodes import KnownNodes
from node.protocols.pastry.leaf_set import LeafSet
from node.protocols.reachability.nodes import NodeHandle
from node.protocols.reachability.reachability import Reachability


class Candidates:
    """For the leaf set of one node, of so many members. They are kept until all probes are over."""

    def __init__(self, nodes: KnownNodes, size: int, reach: Reachability) -> None:
        self._nodes = nodes
        self._size = size
        self._reach = reach
        self._told: dict[Address, NodeHandle] = {}

    def hear(self, nodes: Iterable[NodeHandle], told_by: Address) -> None:
        """Another node takes these for alive: find out whether those live that belong into the leaf set."""
        for node in nodes:
            if self._nodes.leaf_set.would_take(node):
                self._told[node.address] = node
        self.probe(told_by)

    def fail(self, node: NodeHandle) -> bool:
        """It gives no answer: those that stood behind it may belong there now. Whether it was one."""
        if self._told.pop(node.address, None) is None:
            return False
        self.probe()
        return True

    def probe(self, told_by: Address | None = None) -> None:
        """Ask those that are wanted whether they live."""
        for node in self.wanted:
            self._reach.probe(node, told_by)

    def clear(self) -> None:
        """All that belong there are there."""
        self._told.clear()

    @property
    def wanted(self) -> list[NodeHandle]:
        """Those that belong into the leaf set and are not in it."""
        if not self._told:
            return []
        leaf_set = self._nodes.leaf_set
        whole = LeafSet(leaf_set.own, self._size)
        for node in (*leaf_set.members, *self._told.values()):
            whole.add(node)
        return [node for node in whole.members if node not in leaf_set]
