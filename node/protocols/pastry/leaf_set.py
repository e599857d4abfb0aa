"""The leaf set: a node's nearest neighbours on the ring, half of them on each side.

On a ring with fewer nodes than the leaf set holds, a node is on both sides, and the set covers the ring.
"""

from collections.abc import Callable
from itertools import chain

from node.protocols.pastry.ids import RING, closest
from node.protocols.reachability.nodes import NodeHandle


class LeafSet:
    """The leaf set of one node. `smaller` and `larger` are its neighbours on each side, nearest first.

    is_ring: both sides meet, so that these are all nodes; stored because each routed message needs it.
    """

    def __init__(self, own: NodeHandle, size: int) -> None:
        self.own = own
        self.smaller: list[NodeHandle] = []
        self.larger: list[NodeHandle] = []
        self.is_ring = True
        self._half = size // 2
        self._ids: set[int] = {own.id}  # ids of the members and the node itself

    @classmethod
    def given(
        cls, own: NodeHandle, size: int, smaller: list[NodeHandle], larger: list[NodeHandle]
    ) -> "LeafSet":
        """Return a leaf set with the given sides, nearest nodes first."""
        leaf_set = cls(own, size)
        leaf_set.smaller, leaf_set.larger = smaller, larger
        leaf_set._look()
        return leaf_set

    @property
    def members(self) -> list[NodeHandle]:
        """All members, each once: the smaller side first."""
        return list(dict.fromkeys(chain(self.smaller, self.larger)))

    def __contains__(self, node: NodeHandle) -> bool:
        return node.id in self._ids and node.id != self.own.id

    def add(self, node: NodeHandle) -> bool:
        """Add a node if it is near enough; return whether it was added."""
        if node.id in self._ids:
            return False
        own = self.own.id
        taken = _insert(self.smaller, node, self._half, lambda each: (own - each.id) % RING)
        taken = _insert(self.larger, node, self._half, lambda each: (each.id - own) % RING) or taken
        if taken:
            self._look()
        return taken

    def _look(self) -> None:
        smaller, larger = ({each.id for each in side} for side in (self.smaller, self.larger))
        self.is_ring = not smaller.isdisjoint(larger) or not (smaller and larger)
        self._ids = {self.own.id, *smaller, *larger}

    def check(self) -> None:
        """Assert that both sides are in order, not too long, and without the node itself."""
        own = self.own.id
        for side, sign in ((self.smaller, -1), (self.larger, 1)):
            away = [sign * (each.id - own) % RING for each in side]
            assert len(side) <= self._half, "too many leafs"
            assert 0 not in away, "a node is its own leaf"
            assert away == sorted(set(away)), "leafs out of order"

    def would_take(self, node: NodeHandle) -> bool:
        """Return whether `add` would add the node."""
        if node.id in self._ids:
            return False
        own, half = self.own.id, self._half
        return (
            len(self.smaller) < half
            or len(self.larger) < half
            or (own - node.id) % RING < (own - self.smaller[-1].id) % RING
            or (node.id - own) % RING < (self.larger[-1].id - own) % RING
        )

    def remove(self, node: NodeHandle) -> bool:
        """Remove a node; return whether it was there. Other members may then be on both sides."""
        if node not in self:
            return False
        rest = [member for member in self.members if member != node]
        self.smaller, self.larger, self.is_ring, self._ids = [], [], True, {self.own.id}
        for member in rest:
            self.add(member)
        return True

    @property
    def is_complete(self) -> bool:
        """Whether each side is full or the set covers the ring."""
        return self.is_ring or (len(self.smaller) == self._half and len(self.larger) == self._half)

    def covers(self, key: int) -> bool:
        """Return whether the key lies between the outermost members, so that its closest node is known."""
        if self.is_ring:
            return True
        first = self.smaller[-1].id
        return (key - first) % RING <= (self.larger[-1].id - first) % RING

    def closest(self, key: int) -> NodeHandle:
        """Return the numerically closest node to the key, among the members and the node itself."""
        return closest(key, chain((self.own,), self.smaller, self.larger))

    def nearest(self, key: int, count: int) -> list[NodeHandle]:
        """Return the `count` members that are numerically closest to the key, closest first."""
        found: list[NodeHandle] = []
        rest = self.members
        while rest and len(found) < count:
            found.append(closest(key, rest))
            rest.remove(found[-1])
        return found


def _insert(side: list[NodeHandle], node: NodeHandle, half: int, away: Callable[[NodeHandle], int]) -> bool:
    """Insert a node into a side; return whether it stays."""
    at, far = len(side), away(node)
    while at and away(side[at - 1]) > far:
        at -= 1
    if at == half:
        return False
    side.insert(at, node)
    del side[half:]
    return True
