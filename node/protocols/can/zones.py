"""Zones of the space that a CAN divides: axis-parallel boxes.

Source: Ratnasamy, Francis, Handley, Karp, Shenker: A Scalable Content-Addressable Network, SIGCOMM 2001. The
space is [0, 1] in each dimension. A zone includes its lower edges and excludes its upper edges, except upper
edges of the space itself, so that each point is in exactly one zone of a partition. The space does not wrap:
nothing lies beyond its edges. Zones are split at any coordinate, since Meghdoot (4.2) halves the stored data
rather than the volume.
"""

from dataclasses import dataclass
from math import prod

Point = tuple[float, ...]
TOP = 1.0  # the upper edge of the space, included in it


@dataclass(frozen=True, slots=True, order=True)
class Zone:
    """A box, [low, high) in each dimension, and [low, 1] at the top of the space."""

    low: Point
    high: Point

    @property
    def dimensions(self) -> int:
        """Number of dimensions of the space."""
        return len(self.low)

    @property
    def volume(self) -> float:
        """Volume of the zone; the whole space has 1."""
        return prod(high - low for low, high in zip(self.low, self.high, strict=True))

    @property
    def is_empty(self) -> bool:
        """Whether the zone contains no point."""
        return any(low >= high for low, high in zip(self.low, self.high, strict=True))

    @property
    def middle(self) -> Point:
        """Center of the zone."""
        return tuple((low + high) / 2 for low, high in zip(self.low, self.high, strict=True))

    @property
    def longest_side(self) -> int:
        """Dimension of the longest side; the first of several equally long ones."""
        sides = [high - low for low, high in zip(self.low, self.high, strict=True)]
        return sides.index(max(sides))

    def contains(self, point: Point) -> bool:
        """Return whether the point is in the zone."""
        for low, at, high in zip(self.low, point, self.high, strict=True):
            if at < low or (at >= high and not high == TOP == at):
                return False
        return True

    def intersects(self, other: "Zone") -> bool:
        """Return whether the zones share volume."""
        sides = zip(self.low, self.high, other.low, other.high, strict=True)
        return all(low < others_high and others_low < high for low, high, others_low, others_high in sides)

    def intersection(self, other: "Zone") -> "Zone":
        """Return the box that the zones share; empty unless they intersect."""
        low = tuple(map(max, self.low, other.low))
        return Zone(low, tuple(map(max, low, map(min, self.high, other.high))))

    def covers(self, other: "Zone") -> bool:
        """Return whether the other zone lies completely in this one."""
        edges = zip(self.low, other.low, other.high, self.high, strict=True)
        return all(low <= others_low and others_high <= high for low, others_low, others_high, high in edges)

    def adjacent(self, other: "Zone") -> bool:
        """Return whether the zones share a face: they touch in one dimension and overlap in all others."""
        touching = 0
        for low, high, others_low, others_high in zip(
            self.low, self.high, other.low, other.high, strict=True
        ):
            if high == others_low or others_high == low:
                touching += 1
            elif high < others_low or others_high < low:
                return False
        return touching == 1

    def split(self, dimension: int, at: float) -> tuple["Zone", "Zone"]:
        """Return the part below the coordinate and the part from there on."""
        assert self.low[dimension] < at < self.high[dimension], "a split outside the zone"
        below = (*self.high[:dimension], at, *self.high[dimension + 1 :])
        above = (*self.low[:dimension], at, *self.low[dimension + 1 :])
        return Zone(self.low, below), Zone(above, self.high)

    def merged(self, other: "Zone") -> "Zone | None":
        """Return the union of both zones if it is a box and they share no volume."""
        different = [
            number
            for number, (mine, others) in enumerate(
                zip(
                    zip(self.low, self.high, strict=True),
                    zip(other.low, other.high, strict=True),
                    strict=True,
                )
            )
            if mine != others
        ]
        if len(different) != 1:
            return None
        first, second = sorted((self, other), key=lambda zone: zone.low[different[0]])
        return Zone(first.low, second.high) if first.high[different[0]] == second.low[different[0]] else None

    def without(self, other: "Zone") -> list["Zone"]:
        """Return the rest of this zone outside the other one, as at most two boxes per dimension."""
        if not self.intersects(other):
            return [self]
        rest, boxes = self, []
        for dimension in range(self.dimensions):
            if rest.low[dimension] < other.low[dimension]:
                box, rest = rest.split(dimension, other.low[dimension])
                boxes.append(box)
            if other.high[dimension] < rest.high[dimension]:
                rest, box = rest.split(dimension, other.high[dimension])
                boxes.append(box)
        return boxes


def whole_space(dimensions: int) -> Zone:
    """Return the zone of the first node."""
    return Zone((0.0,) * dimensions, (TOP,) * dimensions)
