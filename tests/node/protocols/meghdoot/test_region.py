"""Events reach every zone of the region that they affect once, in any partition."""

from random import Random

import numpy as np
import pytest

from node.core.content.content import ContentAttribute
from node.protocols.can.zones import Zone
from node.protocols.meghdoot.region import (
    NextZones,
    SpaceRegion,
    affected,
    all_points,
    closed,
    points_in,
    steps_of_region,
    steps_of_zone,
)
from node.protocols.meghdoot.space import Space, reflected, reflection
from tests.node.protocols.meghdoot.partitions import any_event, any_partition, cases

SIZES = [(2, 60), (4, 120), (6, 150), (14, 150)]


@pytest.mark.parametrize(("dimensions", "count"), SIZES)
@pytest.mark.parametrize("seed", range(2))
def test_each_zone_of_the_region_of_an_event_or_a_box_is_visited_once_and_no_other(dimensions, count, seed):
    overlay, regions, rng = cases(seed, dimensions, count, events=40)
    boxes = [rng.choice(any_partition(dimensions, 40, rng)) for _ in range(20)]
    for region in (*regions, *(closed(reflected(box)) for box in boxes)):
        assert overlay.spread(region) == dict.fromkeys(overlay.touched(region), 1)


@pytest.mark.parametrize(("dimensions", "count"), SIZES)
def test_the_basic_form_reaches_all_zones_with_repetitions(dimensions, count):
    overlay, regions, _ = cases(7, dimensions, count, events=40)
    visits = repeats = 0
    for region in regions:
        found = overlay.spread(region, "all_upper_left")
        assert found.keys() == overlay.touched(region)
        visits += len(found)
        repeats += sum(found.values()) - len(found)
    assert repeats > 0.1 * visits


def test_the_printed_corners_do_not_reach_from_the_event():
    """Use an event with an unspecified value of one attribute: the printed region is everything, from <L, H>
    on.
    """
    space = Space((ContentAttribute("price", "real", 0, 100),))
    event = space.point([(0, 100)])
    assert event == (0.0, 1.0)
    assert affected(event) == SpaceRegion((0.0, 1.0), (0.0, 1.0))


@pytest.mark.parametrize(("dimensions", "count"), SIZES)
def test_the_points_of_all_zones_add_up_to_the_region(dimensions, count):
    overlay, regions, rng = cases(3, dimensions, count, events=30)
    for region in regions:
        steps = steps_of_region(region)
        parts = {at: points_in(steps_of_zone(zone), steps) for at, zone in enumerate(overlay.zones)}
        modulus = (1 << 61) - 1
        assert sum(parts.values()) % modulus == all_points(steps)
        assert {at for at, part in parts.items() if part} == overlay.touched(region)
        missed = rng.choice(sorted(overlay.touched(region)))
        assert (sum(parts.values()) - parts[missed]) % modulus != all_points(steps)


def test_subscriptions_that_match_are_in_the_region_that_the_event_affects():
    rng = Random(1)
    space = Space(
        (
            ContentAttribute("price", "real", -3.5, 17.25),
            ContentAttribute("volume", "integer", 1, 310_000_000),
        )
    )
    matched = 0
    for _ in range(3_000):
        values = [rng.uniform(-3.5, 17.25), float(rng.randrange(1, 310_000_001))]
        about = [value if rng.random() < 0.7 else None for value in values]
        ranges = []
        for each, value in zip(space.attributes, values, strict=True):
            ends = sorted(
                rng.choice((each.low, each.high, value, rng.uniform(each.low, each.high))) for _ in "ab"
            )
            ranges.append(tuple(ends))
        is_match = all(
            (low <= value <= high) if value is not None else (low, high) == (each.low, each.high)
            for (low, high), value, each in zip(ranges, about, space.attributes, strict=True)
        )
        event = [
            (each.low, each.high) if value is None else (value, value)
            for value, each in zip(about, space.attributes, strict=True)
        ]
        region = affected(space.point(event))
        point = space.point(ranges)
        inside = all(low <= at <= high for low, at, high in zip(region.low, point, region.high, strict=True))
        assert inside or not is_match
        matched += is_match
    assert matched > 300


@pytest.mark.parametrize("seed", range(2))
def test_changes_of_neighbours_give_the_same_result_as_a_new_table(seed):
    rng = Random(seed)
    zones = any_partition(4, 60, rng)
    zone = max(zones, key=lambda each: sum(each.adjacent(other) for other in zones))
    beside = [other for other in zones if zone.adjacent(other)]
    others = [other for other in any_partition(4, 60, rng) if zone.adjacent(other)]

    def next_to(known):
        edges = np.array([(each.low, each.high) for each in known.values()]).reshape(-1, 2, 4)
        return NextZones(zone, edges[:, 0], edges[:, 1])

    known = dict(enumerate(beside))
    changed = next_to(known)
    for row in rng.sample(range(len(beside)), len(beside) // 2):
        changed.remove(row)
        del known[row]
    for row, other in enumerate(others, len(beside)):
        changed.add(row, other)
        known[row] = other
    anew, numbers = next_to(known), list(known)
    found = 0
    for _ in range(300):
        region = affected(any_event(zones, rng))
        for form in ("children", "all_upper_left"):
            rows = getattr(changed, form)(region)
            assert sorted(rows) == sorted(numbers[row] for row in getattr(anew, form)(region))
            found += len(rows)
    assert found > 100


def test_reflections_are_mirror_images_in_the_diagonal():
    assert reflection((0.1, 0.7, 0.2, 0.2)) == (0.7, 0.1, 0.2, 0.2)
    zone = Zone((0.0, 0.5), (0.25, 1.0))
    assert reflected(zone) == Zone((0.5, 0.0), (1.0, 0.25))
    assert reflected(zone).contains(reflection((0.125, 0.75)))
