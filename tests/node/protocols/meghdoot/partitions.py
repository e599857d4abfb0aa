"""Random partitions of the space, and the propagation of events over them, computed from all zones."""

from random import Random

import numpy as np

from node.protocols.meghdoot.region import NextZones, affected
from node.protocols.meghdoot.space import GRID
from tests.node.protocols.can.partitions import partition


def any_partition(dimensions, count, rng):
    """Return this many zones from random splits, with edges on the grid."""
    return partition(count, dimensions, rng, GRID)


def some_coordinate(zones, rng):
    """Draw a coordinate, often an edge of a zone, because edges are error-prone."""
    if rng.random() < 0.4:
        zone = rng.choice(zones)
        return rng.choice((*zone.low, *zone.high))
    return rng.randrange(GRID + 1) / GRID


def any_event(zones, rng, share_of_partial=0.3):
    found = []
    for _ in range(zones[0].dimensions // 2):
        if rng.random() < share_of_partial:
            found += (0.0, 1.0)
        else:
            found += (some_coordinate(zones, rng),) * 2
    return tuple(found)


def neighbours_of(zones):
    """Return, by zone, the zones that share a face with it."""
    return [[n for n, other in enumerate(zones) if zone.adjacent(other)] for zone in zones]


class Overlay:
    def __init__(self, zones):
        self.zones = zones
        self.neighbours = neighbours_of(zones)
        edges = np.array([zone.low for zone in zones]), np.array([zone.high for zone in zones])
        self.next = [
            NextZones(zone, edges[0][near], edges[1][near])
            for zone, near in zip(zones, self.neighbours, strict=True)
        ]

    def spread(self, region, form="children"):
        """Return how often each zone receives a message that spreads over a region from its corner."""
        [first] = [at for at, zone in enumerate(self.zones) if zone.contains(region.corner)]
        visits, waiting = {first: 1}, [first]
        while waiting:
            at = waiting.pop()
            for row in getattr(self.next[at], form)(region):
                to = self.neighbours[at][row]
                if to not in visits:
                    waiting.append(to)
                visits[to] = visits.get(to, 0) + 1
        return visits

    def touched(self, region):
        return {at for at, zone in enumerate(self.zones) if region.touches(zone)}


def cases(seed, dimensions, count, events):
    rng = Random(seed)
    overlay = Overlay(any_partition(dimensions, count, rng))
    return overlay, [affected(any_event(overlay.zones, rng)) for _ in range(events)], rng
