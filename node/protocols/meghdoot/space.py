"""The logical space: subscriptions and events as points in two dimensions for each attribute (3.2 to 3.4).

Counted from 0, dimension 2i is where a range over attribute i starts, and 2i + 1 where it ends. Values become
coordinates in [0, 1], the larger value never the smaller coordinate, so that a subscription which matches an
event is always in the region that the event affects; whether it does match is decided by the values.

Coordinates are whole multiples of 2^-40. So the space is a finite number of points, each in one zone, and
whether zones cover a region can be told by counting (`region.points_in`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from node.core.content.content import Attribute
from node.protocols.can.zones import TOP, Point, Zone

GRID = 1 << 40
"""Steps of a coordinate from 0 to 1."""
Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Space:
    """The space of a schema."""

    attributes: tuple[Attribute, ...]

    @property
    def dimensions(self) -> int:
        """Two for each attribute."""
        return 2 * len(self.attributes)

    def coordinate(self, attribute: int, value: float) -> float:
        """Where a value of an attribute lies; of one beyond its bounds, at the bound."""
        bounds = self.attributes[attribute]
        share = (value - bounds.low) / (bounds.high - bounds.low)
        if share <= 0.0:
            return 0.0
        return TOP if share >= 1.0 else int(share * GRID) / GRID

    def point(self, ranges: Sequence[Range]) -> Point:
        """Of a subscription <l1, h1, l2, h2, ...> (3.3), of an event <c11, c12, c21, c22, ...> (3.4).

        A subscription has the range of all values of an attribute that does not matter to it, and so has an
        event of one that it says nothing of; it has a range of one value of all others.
        """
        found: list[float] = []
        for attribute, (low, high) in enumerate(ranges):
            first = self.coordinate(attribute, low)
            found += (first, first if high == low else self.coordinate(attribute, high))
        return tuple(found)


def reflection(point: Point) -> Point:
    """<h1, l1, h2, l2, ...>: the point's mirror image in the diagonal hyperplane (4.3)."""
    return tuple(each for start, end in zip(point[::2], point[1::2], strict=True) for each in (end, start))


def reflected(zone: Zone) -> Zone:
    """The mirror image of a box."""
    return Zone(reflection(zone.low), reflection(zone.high))
