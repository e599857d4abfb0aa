"""Slices through the space: two of its dimensions, with the others fixed at a point, so that zones do not
overlap.

Zones have two dimensions per attribute; a drawing has two. In a projection all zones would overlap. In a
slice each point has one owner, as in the space itself: an area drawn twice has two owners, an area not drawn
has none. The slices go through middles of zones. They are chosen one by one; each meets the most zones that
no earlier one meets.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from analysis.pages.report.formatting import number
from analysis.pages.report.sections import HEIGHT, WIDTH, PanelBox, RegionLabel
from analysis.systems.meghdoot.zones import Holding
from analysis.timelines.arrays import Bools, Floats, Ints
from node.core.content.content import ContentAttribute
from node.protocols.can.zones import TOP, Point, Zone, whole_space

SLICES_MAX = 3
POINTS_MAX = 64
LEFT, TOP_EDGE, SIDE = 52.0, 12.0, 205.0
_BELOW, _ASIDE = 14.0, 6.0
PALEST, DARKEST = 0.1, 0.85


@dataclass(frozen=True, slots=True)
class Slice:
    """A slice: the horizontal and vertical dimensions, and the point that fixes the others."""

    x: int
    y: int
    at: Point
    names: tuple[str, str]
    others: str = ""  # the other dimensions' coordinates as text

    def meets(self, zone: Zone) -> bool:
        """Return whether the slice intersects a zone."""
        return zone.contains(self._with((zone.low[self.x], zone.low[self.y])))

    def unowned_zones(self, met: Sequence[Zone]) -> list[Zone]:
        """Return the parts of the slice outside the zones that it meets; flat in all other dimensions."""
        rest = [whole_space(2)]
        for zone in met:
            (x, y), (right, top) = ((edge[self.x], edge[self.y]) for edge in (zone.low, zone.high))
            rest = [part for each in rest for part in each.without(Zone((x, y), (right, top)))]
        return [Zone(self._with(each.low), self._with(each.high)) for each in rest]

    def _with(self, both: Point) -> Point:
        at = list(self.at)
        at[self.x], at[self.y] = both
        return tuple(at)

    def box(self, zone: Zone) -> PanelBox:
        """Return the rectangle of a zone in the drawing."""
        left, right = (LEFT + SIDE * edge[self.x] for edge in (zone.low, zone.high))
        bottom, top = (TOP_EDGE + SIDE * (1 - edge[self.y]) for edge in (zone.low, zone.high))
        size = round(right - left, 2), round(bottom - top, 2)
        return PanelBox(round(left, 2), round(top, 2), *size, "transparent", 0.0, "held", "")

    @property
    def labels(self) -> tuple[RegionLabel, ...]:
        """The labels of the axes, which range from the least value to the greatest."""
        middle, bottom = LEFT + SIDE / 2, TOP_EDGE + SIDE
        return (
            RegionLabel(middle, bottom + _BELOW, f"{self.names[0]} →"),
            RegionLabel(LEFT / 2 - _ASIDE, TOP_EDGE + SIDE / 2 - _BELOW, "↑"),
            RegionLabel(LEFT / 2 - _ASIDE / 2, TOP_EDGE + SIDE / 2, self.names[1].partition(" ")[0]),
            RegionLabel(LEFT / 2 - _ASIDE / 2, TOP_EDGE + SIDE / 2 + _BELOW, self.names[1].partition(" ")[2]),
        )


def names_of(attributes: Sequence[ContentAttribute]) -> tuple[str, ...]:
    """Return the names of the dimensions: the lower and upper bounds of subscriptions to each attribute."""
    return tuple(f"{each.name} {bound}" for each in attributes for bound in ("from", "to"))


def slices(zones: Sequence[Zone], attributes: Sequence[ContentAttribute]) -> list[Slice]:
    """Return slices that meet the most zones not met before; ties prefer the bounds of one attribute."""
    names = names_of(attributes)
    left, found = list(zones), list[Slice]()
    while left and len(found) < SLICES_MAX:
        best = _best(left, len(names), [(each.x, each.y) for each in found])
        if best is None:
            break
        x, y, at = best
        others = ", ".join(
            f"{name} {_value(attributes[number // 2], at[number])}"
            for number, name in enumerate(names)
            if number not in (x, y)
        )
        found.append(Slice(x, y, at, (names[x], names[y]), others))
        left = [zone for zone in left if not found[-1].meets(zone)]
    return found


def _value(attribute: ContentAttribute, coordinate: float) -> str:
    value = attribute.low + coordinate * (attribute.high - attribute.low)
    return attribute.text(round(value) if attribute.is_whole else float(f"{value:.3g}"))


def _best(
    left: Sequence[Zone], dimensions: int, before: Sequence[tuple[int, int]]
) -> tuple[int, int, Point] | None:
    """Return the slice through the middle of a remaining zone that meets most of them.

    before: pairs of dimensions already drawn; used again only if they meet more zones.
    """
    step = -(-len(left) // POINTS_MAX)
    points = [zone.middle for zone in left[::step]]
    inside = _inside(np.array(points), left)
    best, most = None, 0
    for x, y in sorted(_pairs(dimensions), key=lambda pair: pair in before):
        met = _met(inside, x, y)
        place = int(met.argmax())
        if met[place] > most:
            most, best = int(met[place]), (x, y, points[place])
    return best


def _pairs(dimensions: int) -> Iterator[tuple[int, int]]:
    """Yield all pairs of dimensions, the bounds of one attribute first."""
    yield from ((start, start + 1) for start in range(0, dimensions, 2))
    yield from ((x, y) for x in range(dimensions) for y in range(x + 1, dimensions) if x % 2 or y != x + 1)


def _inside(points: Floats, zones: Sequence[Zone]) -> Bools:
    """Return for each point, zone and dimension whether the point is between the zone's edges."""
    low, high = np.array([zone.low for zone in zones]), np.array([zone.high for zone in zones])
    at = points[:, None, :]
    found: Bools = (low <= at) & ((at < high) | ((high == TOP) & (at == TOP)))
    return found


def _met(inside: Bools, x: int, y: int) -> Ints:
    """Return the number of zones that a slice in two dimensions meets, by point."""
    outside = ~inside
    others = outside.sum(axis=2) - outside[:, :, x] - outside[:, :, y]
    found: Ints = (others == 0).sum(axis=1)
    return found


def boxes(
    drawn: Slice,
    held: Mapping[str, Sequence[Holding]],
    colours: Mapping[str, str],
    load: Mapping[str, float],
    says: Mapping[str, str],
) -> Iterator[PanelBox]:
    """Yield the areas without an owner, then every zone that the slice meets, those held for others last.

    load: of each host. says: the tooltip of each host.
    """
    most = max(load.values(), default=0.0) or 1.0
    met = [each for several in held.values() for each in several if drawn.meets(each.zone)]
    for zone in drawn.unowned_zones([each.zone for each in met]):
        yield replace(drawn.box(zone), kind="nobody", says="without an owner")
    for each in sorted(met, key=lambda each: each.version):
        shade = PALEST + (DARKEST - PALEST) * load.get(each.host, 0.0) / most
        trust = f", taken over {number(each.version)} times" if each.version else ""
        yield replace(
            drawn.box(each.zone),
            colour=colours.get(each.host, "gray"),
            shade=round(shade, 3),
            kind="trust" if each.version else "held",
            says=says.get(each.host, each.host) + trust,
        )


assert LEFT + SIDE <= WIDTH
assert TOP_EDGE + SIDE + _BELOW <= HEIGHT
