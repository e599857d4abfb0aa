"""Reported nodes that have not answered yet, and the choice of those that belong in the leaf set if alive.

MSPastry (DSN 2004, figure 2) probes only the reported nodes that would be in the own leaf set if all of them
were alive. A joining node's leaf set is empty: compared with that alone, every node would belong in it, and
their neighbours as well, once around the ring.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from node.core.peers.peer_pool import Address
from node.protocols.pastry.known_nodes import KnownNodes
from node.protocols.pastry.leaf_set import LeafSet
from node.protocols.reachability.nodes import NodeHandle
from node.protocols.reachability.reachability import Reachability


@dataclass(slots=True, eq=False)
class LeafCandidates:
    """Candidates for one node's leaf set of `size` members. They are kept until all probes have ended."""

    nodes: KnownNodes
    size: int
    reach: Reachability
    _told: dict[Address, NodeHandle] = field(default_factory=dict)

    def add(self, nodes: Iterable[NodeHandle], told_by: Address) -> None:
        """Add nodes that another node considers alive, and probe those that belong in the leaf set."""
        for node in nodes:
            if self.nodes.leaf_set.would_take(node):
                self._told[node.address] = node
        self.probe(told_by)

    def fail(self, node: NodeHandle) -> bool:
        """Remove a failed node and probe those that take its place; return whether it was a candidate."""
        if self._told.pop(node.address, None) is None:
            return False
        self.probe()
        return True

    def probe(self, told_by: Address | None = None) -> None:
        """Probe all wanted nodes."""
        for node in self.wanted:
            self.reach.probe(node, told_by)

    def clear(self) -> None:
        """Remove all candidates, since the leaf set is complete."""
        self._told.clear()

    @property
    def wanted(self) -> list[NodeHandle]:
        """Candidates that belong in the leaf set and are not in it."""
        if not self._told:
            return []
        leaf_set = self.nodes.leaf_set
        whole = LeafSet(leaf_set.own, self.size)
        for node in (*leaf_set.members, *self._told.values()):
            whole.add(node)
        return [node for node in whole.members if node not in leaf_set]
