"""Random partitions of the space into zones, for properties."""

from random import Random

from node.protocols.can.zones import Point, Zone, whole_space


def partition(count: int, dimensions: int, rng: Random) -> list[Zone]:
    """Return this many zones, made by splits of random zones, half of them in the middle."""
    zones = [whole_space(dimensions)]
    while len(zones) < count:
        zone = zones.pop(rng.randrange(len(zones)))
        dimension = rng.randrange(dimensions)
        low, high = zone.low[dimension], zone.high[dimension]
        share = 0.5 if rng.random() < 0.5 else rng.uniform(0.1, 0.9)
        zones += zone.split(dimension, low + share * (high - low))
    return zones


def points(zones: list[Zone], count: int, rng: Random) -> list[Point]:
    """Points anywhere; and some on edges, corners and at the top of the space, where mistakes would be."""
    found: list[Point] = []
    for _ in range(count):
        edges = [rng.choice(zones) for _ in zones[0].low]
        edge = tuple(rng.choice((zone.low[each], zone.high[each])) for each, zone in enumerate(edges))
        found += [tuple(rng.random() for _ in edge), edge]
        found.append(tuple(rng.choice((at, rng.random())) for at in edge))
    return found
