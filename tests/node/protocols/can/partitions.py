"""Random partitions of the space into zones, for properties."""

from random import Random

from node.protocols.can.zones import Point, Zone, whole_space


def partition(count: int, dimensions: int, rng: Random, steps: int = 1 << 20) -> list[Zone]:
    """Return this many zones from random splits at multiples of 1 / steps, half of them in the middle."""
    zones = [whole_space(dimensions)]
    while len(zones) < count:
        zone = zones.pop(rng.randrange(len(zones)))
        dimension = rng.randrange(dimensions)
        first, last = int(zone.low[dimension] * steps) + 1, int(zone.high[dimension] * steps) - 1
        if first > last:
            zones.append(zone)
            continue
        at = (first + last) // 2 if rng.random() < 0.5 else rng.randint(first, last)
        zones += zone.split(dimension, at / steps)
    return zones


def points(zones: list[Zone], count: int, rng: Random) -> list[Point]:
    """Draw points anywhere, also on edges, on corners and at the top of the space, which are error-prone."""
    found: list[Point] = []
    for _ in range(count):
        edges = [rng.choice(zones) for _ in zones[0].low]
        edge = tuple(rng.choice((zone.low[each], zone.high[each])) for each, zone in enumerate(edges))
        found += [tuple(rng.random() for _ in edge), edge]
        found.append(tuple(rng.choice((at, rng.random())) for at in edge))
    return found
