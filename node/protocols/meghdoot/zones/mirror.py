"""The place of a subscription's copy (4.3).

It is the reflection of the subscription's point in the diagonal hyperplane. If that is in a zone of the same
peer, the place moves along increasing values of all odd dimensions (those of range starts) until another zone
begins. If the space ends first, it moves down the even ones. If the space ends there, too, which the paper
leaves open, any neighbour is used. The place is always at most one grid step outside the zone
(`region.around`), so that it can be found when the zone is lost.
"""

from collections.abc import Callable, Iterator

from node.protocols.can.zones import TOP, Point, Zone
from node.protocols.meghdoot.space import GRID, reflection

Holder = Callable[[Point], Zone | None]
"""Returns the zone of a peer that contains a point, if there is one."""


def copy_place(point: Point, own: Holder) -> Point | None:
    """Return the place of the copy of a subscription with this point; None if this peer has the whole space.

    own: returns the zone of the subscription's peer that contains a point.
    """
    mirrored = reflection(point)
    zone = own(mirrored)
    if zone is None:
        return mirrored
    ways = (_rightwards(mirrored, zone), _downwards(mirrored, zone), *_across_faces(mirrored, zone))
    return next((moved for moved in ways if moved is not None and own(moved) is None), None)


def _across_faces(point: Point, zone: Zone) -> Iterator[Point]:
    """Yield the points straight across each face of the zone."""
    for number, at in enumerate(point):
        for moved in (zone.high[number], zone.low[number] - 1 / GRID):
            if 0.0 <= moved < TOP and moved != at:
                yield (*point[:number], moved, *point[number + 1 :])


def _rightwards(point: Point, zone: Zone) -> Point | None:
    """Return the point moved along odd dimensions to the end of the zone; None if the space ends there."""
    room = {number: zone.high[number] - point[number] for number in range(0, len(point), 2)}
    first = min(room, key=lambda number: room[number])
    if zone.high[first] == TOP:
        return None
    moved = [at + room[first] if number in room else at for number, at in enumerate(point)]
    moved[first] = zone.high[first]  # exact in spite of rounding
    return tuple(moved)


def _downwards(point: Point, zone: Zone) -> Point | None:
    """Return the point moved down even dimensions to just below the zone; None if the space ends there."""
    room = {number: point[number] - zone.low[number] for number in range(1, len(point), 2)}
    first = min(room, key=lambda number: room[number])
    if zone.low[first] == 0.0:
        return None
    moved = [max(0.0, at - room[first]) if number in room else at for number, at in enumerate(point)]
    moved[first] = zone.low[first] - 1 / GRID
    return tuple(moved)
