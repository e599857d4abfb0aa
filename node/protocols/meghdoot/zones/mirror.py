"""Where the copy of a subscription is kept (4.3).

Its place is the reflection of its point in the diagonal hyperplane. Where that is in a zone of the same peer,
one goes from there along increasing values of all odd dimensions (those in which ranges start) until another
zone begins. Where the space ends first, one begins again and goes down the even ones. Where it ends in that
direction, too, which the paper leaves open, any neighbour will do. Wherever it goes, it is at most a step of
the grid from the zone (`region.around`), so that it can be found when the zone is lost.
"""

from collections.abc import Callable, Iterator

from node.protocols.can.zones import TOP, Point, Zone
from node.protocols.meghdoot.space import GRID, reflection

Holder = Callable[[Point], Zone | None]
"""The zone of a peer in which a point is, if there is one."""


def copy_place(point: Point, own: Holder) -> Point | None:
    """Where the copy of a subscription with this point goes; None if this peer has the whole space.

    own: the zones of the peer that has the subscription.
    """
    mirrored = reflection(point)
    zone = own(mirrored)
    if zone is None:
        return mirrored
    ways = (_rightwards(mirrored, zone), _downwards(mirrored, zone), *_beside(mirrored, zone))
    return next((moved for moved in ways if moved is not None and own(moved) is None), None)


def _beside(point: Point, zone: Zone) -> Iterator[Point]:
    """Straight over each face of the zone."""
    for number, at in enumerate(point):
        for moved in (zone.high[number], zone.low[number] - 1 / GRID):
            if 0.0 <= moved < TOP and moved != at:
                yield (*point[:number], moved, *point[number + 1 :])


def _rightwards(point: Point, zone: Zone) -> Point | None:
    """Along odd dimensions, all at once, to where the zone ends; None if the space ends there."""
    room = {number: zone.high[number] - point[number] for number in range(0, len(point), 2)}
    first = min(room, key=lambda number: room[number])
    if zone.high[first] == TOP:
        return None
    moved = [at + room[first] if number in room else at for number, at in enumerate(point)]
    moved[first] = zone.high[first]  # exactly, whatever was rounded
    return tuple(moved)


def _downwards(point: Point, zone: Zone) -> Point | None:
    """Likewise down even dimensions, to just below the zone."""
    room = {number: point[number] - zone.low[number] for number in range(1, len(point), 2)}
    first = min(room, key=lambda number: room[number])
    if zone.low[first] == 0.0:
        return None
    moved = [max(0.0, at - room[first]) if number in room else at for number, at in enumerate(point)]
    moved[first] = zone.low[first] - 1 / GRID
    return tuple(moved)
