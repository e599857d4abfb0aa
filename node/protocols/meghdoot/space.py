"""The logical space: subscriptions and events as points, with two dimensions per attribute (3.2 to 3.4).

Counted from 0, dimension 2i is the start of a range over attribute i, and 2i + 1 its end. Values map to
coordinates in [0, 1] monotonically, so that a subscription which matches an event is always in the region
that the event affects; the values decide whether it matches. Coordinates are multiples of 2^-40. So the space
is a finite number of points, each in one zone, and counting shows whether zones cover a region
(`region.points_in`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from node.core.content.content import ContentAttribute
from node.protocols.can.zones import TOP, Point, Zone

GRID = 1 << 40
"""Steps of a coordinate from 0 to 1."""
Range = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Space:
    """The space of a schema."""

    attributes: tuple[ContentAttribute, ...]

    @property
    def dimensions(self) -> int:
        """Number of dimensions: two per attribute."""
        return 2 * len(self.attributes)

    def coordinate(self, attribute: int, value: float) -> float:
        """Return the coordinate of a value; values beyond the attribute's bounds map to the bound."""
        bounds = self.attributes[attribute]
        share = (value - bounds.low) / (bounds.high - bounds.low)
        if share <= 0.0:
            return 0.0
        return TOP if share >= 1.0 else int(share * GRID) / GRID

    def point(self, ranges: Sequence[Range]) -> Point:
        """Return the point of a subscription (3.3) or an event (3.4).

        A subscription is <l1, h1, l2, h2, ...>, an event <c11, c12, c21, c22, ...>. The range of an attribute
        that is not given covers all its values; an event's value is a range of one value.
        """
        found: list[float] = []
        for attribute, (low, high) in enumerate(ranges):
            first = self.coordinate(attribute, low)
            found += (first, first if high == low else self.coordinate(attribute, high))
        return tuple(found)


def reflection(point: Point) -> Point:
    """Return <h1, l1, h2, l2, ...>: the point's mirror image in the diagonal hyperplane (4.3)."""
    return tuple(each for start, end in zip(point[::2], point[1::2], strict=True) for each in (end, start))


def reflected(zone: Zone) -> Zone:
    """Return the mirror image of a box."""
    return Zone(reflection(zone.low), reflection(zone.high))
