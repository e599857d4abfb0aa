"""Zones compared with points: operations on boxes agree with the points in them."""

from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from node.protocols.can.zone_table import ZoneTable
from node.protocols.can.zones import Zone
from tests.node.protocols.can.partitions import partition, points

BITS = 8
"""Edges of the zones below are multiples of 1/8: a grid's cells are in or out as a whole."""

SPACES = st.tuples(st.integers(1, 14), st.integers(1, 60), st.randoms(use_true_random=False))


def boxes(dimensions: int) -> st.SearchStrategy[Zone]:
    """Draw boxes with edges on a grid."""
    side = st.tuples(st.integers(0, BITS - 1), st.integers(1, BITS)).filter(lambda each: each[0] < each[1])
    return st.lists(side, min_size=dimensions, max_size=dimensions).map(
        lambda sides: Zone(tuple(low / BITS for low, _ in sides), tuple(high / BITS for _, high in sides))
    )


def cells(*zones: Zone) -> set[tuple[int, ...]]:
    """Return the grid cells inside the zones."""
    found = set()
    for zone in zones:
        ranges = [
            range(round(low * BITS), round(high * BITS))
            for low, high in zip(zone.low, zone.high, strict=True)
        ]
        grid = np.meshgrid(*ranges, indexing="ij")
        found |= set(zip(*(each.ravel().tolist() for each in grid), strict=True))
    return found


TWO = st.integers(1, 3).flatmap(lambda dimensions: st.tuples(boxes(dimensions), boxes(dimensions)))


@given(SPACES)
def test_each_point_is_in_one_zone_and_the_table_finds_it(
    space: tuple[int, int, Random],
) -> None:
    dimensions, count, rng = space
    zones = partition(count, dimensions, rng)
    table = table_of(zones)
    assert abs(sum(zone.volume for zone in zones) - 1) < 1e-9
    for point in points(zones, 5, rng):
        containing = [zone.contains(point) for zone in zones]
        assert sum(containing) == 1
        assert table.containing(point).tolist() == containing


@given(SPACES)
def test_a_table_answers_as_its_zones_do_one_by_one(space: tuple[int, int, Random]) -> None:
    dimensions, count, rng = space
    zones = partition(count, dimensions, rng)
    table = table_of(zones)
    for number in rng.sample(range(count), count // 3):
        table.remove(number, zones[number])
    left = [(number, zone) for number, zone in enumerate(zones) if (number, zone) in table]
    assert sorted(table) == left
    assert sorted(zip(table.owners, table.zones, strict=True)) == left
    for zone in rng.choices(zones, k=5):
        assert table.adjacent(zone).tolist() == [zone.adjacent(other) for other in table.zones]
        assert table.intersecting(zone).tolist() == [zone.intersects(other) for other in table.zones]
    for point in points(zones, 5, rng):
        nearest = [np.clip(point, zone.low, zone.high) for zone in table.zones]
        distances = [float(np.sum((near - point) ** 2)) for near in nearest]
        assert np.allclose(table.distances(point), distances)
        near = table.touching(Zone(point, point))
        assert near.tolist() == [distance == 0 for distance in distances]


@given(TWO)
def test_operations_on_two_boxes_agree_with_their_cells(two: tuple[Zone, Zone]) -> None:
    first, second = two
    mine, others = cells(first), cells(second)
    assert first.intersects(second) == bool(mine & others)
    assert first.covers(second) == (others <= mine)
    assert cells(first.intersection(second)) == mine & others
    assert first.intersection(second).is_empty == (not mine & others)
    rest = first.without(second)
    assert cells(*rest) == mine - others
    assert sum(len(cells(each)) for each in rest) == len(cells(*rest)), "they overlap"
    merged = first.merged(second)
    hull = Zone(tuple(map(min, first.low, second.low)), tuple(map(max, first.high, second.high)))
    is_box = not first.intersects(second) and cells(hull) == mine | others
    assert (merged is not None) == is_box
    assert merged is None or cells(merged) == mine | others
    beside = {
        (*cell[:each], cell[each] + step, *cell[each + 1 :])
        for cell in mine
        for each in range(first.dimensions)
        for step in (-1, 1)
    }
    is_beside = bool(beside & others) and not first.intersects(second)
    assert first.adjacent(second) == is_beside == second.adjacent(first)


def table_of(zones: list[Zone]) -> ZoneTable[int]:
    """Return a table of zones that are owned by their numbers."""
    table = ZoneTable[int](zones[0].dimensions)
    for number, zone in enumerate(zones):
        table.add(number, zone)
    return table


def test_the_nearest_zones_follow_changes_of_the_table() -> None:
    """Check the cache of nearest zones, which a new or removed zone clears."""
    point, left, right = (0.75, 0.5), Zone((0.0, 0.0), (0.5, 1.0)), Zone((0.5, 0.0), (1.0, 1.0))
    table = table_of([left])
    assert table.nearest(point) == ((0, left),)
    table.add(1, right)
    assert table.nearest(point) == ((1, right),)
    table.add(2, right)
    assert table.nearest(point) == ((1, right), (2, right))
    table.remove(1, right)
    assert table.nearest(point) == ((2, right),)
