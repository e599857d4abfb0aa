"""The leaf set: the nodes that are next to one on the ring, half of them on each side.

On a ring of fewer nodes than the leaf set holds, a node stands on both sides, and the set covers the ring.
"""

from collections.abc import Callable
from itertools import chain

from node.protocols.pastry.ids import RING, closest
from node.protocols.reachability.nodes import NodeHandle


class LeafSet:
    """Of one node. `smaller` and `larger` are its neighbours on each side, the nearest first.

    is_ring: both sides meet, so that there are no nodes beside these. It is asked for each message that is
    passed on, and so kept.
    """

    def __init__(self, own: NodeHandle, size: int) -> None:
        self.own = own
        self.smaller: list[NodeHandle] = []
        self.larger: list[NodeHandle] = []
        self.is_ring = True
        self._half = size // 2
        self._ids: set[int] = {own.id}  # of all in it and the node itself

    @classmethod
    def given(
        cls, own: NodeHandle, size: int, smaller: list[NodeHandle], larger: list[NodeHandle]
    ) -> "LeafSet":
        """One that is known as a whole: the nearest nodes on each side, the nearest first."""
        leaf_set = cls(own, size)
        leaf_set.smaller, leaf_set.larger = smaller, larger
        leaf_set._look()
        return leaf_set

    @property
    def members(self) -> list[NodeHandle]:
        """All, each once: those on the smaller side first."""
        return list(dict.fromkeys(chain(self.smaller, self.larger)))

    def __contains__(self, node: NodeHandle) -> bool:
        return node.id in self._ids and node.id != self.own.id

    def add(self, node: NodeHandle) -> bool:
        """Take a node in if it is near enough; whether it was taken and was not there."""
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
        """Assert that both sides are in order, no longer than they may be, and without the node itself."""
        own = self.own.id
        for side, sign in ((self.smaller, -1), (self.larger, 1)):
            away = [sign * (each.id - own) % RING for each in side]
            assert len(side) <= self._half, "more leafs than may be"
            assert 0 not in away, "a leaf of itself"
            assert away == sorted(set(away)), "leafs that are not in order"

    def would_take(self, node: NodeHandle) -> bool:
        """Whether `add` would take it in."""
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
        """Whether it was there. Who stood on one side may now stand on both."""
        if node not in self:
            return False
        rest = [member for member in self.members if member != node]
        self.smaller, self.larger, self.is_ring, self._ids = [], [], True, {self.own.id}
        for member in rest:
            self.add(member)
        return True

    @property
    def is_complete(self) -> bool:
        """Whether each side is full, or there is nobody else."""
        return self.is_ring or (len(self.smaller) == self._half and len(self.larger) == self._half)

    def covers(self, key: int) -> bool:
        """Whether the key lies between the outermost members, so that its closest node is known."""
        if self.is_ring:
            return True
        first = self.smaller[-1].id
        return (key - first) % RING <= (self.larger[-1].id - first) % RING

    def closest(self, key: int) -> NodeHandle:
        """The numerically closest node to a key, of the members and the node itself."""
        return closest(key, chain((self.own,), self.smaller, self.larger))

    def nearest(self, key: int, count: int) -> list[NodeHandle]:
        """So many members that are numerically closest to a key, the closest first."""
        found: list[NodeHandle] = []
        rest = self.members
        while rest and len(found) < count:
            found.append(closest(key, rest))
            rest.remove(found[-1])
        return found


def _insert(side: list[NodeHandle], node: NodeHandle, half: int, away: Callable[[NodeHandle], int]) -> bool:
    """Put a node into its place on a side; whether it stayed."""
    at, far = len(side), away(node)
    while at and away(side[at - 1]) > far:
        at -= 1
    if at == half:
        return False
    side.insert(at, node)
    del side[half:]
    return True
