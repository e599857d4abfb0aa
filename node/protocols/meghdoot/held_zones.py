"""The zones that a peer holds, with their neighbours: to whom events go from each.

A neighbour with replicas is sent events in turn: the next one by the next of its holders (4.1).
"""

from node.core.peer_pool import Address
from node.protocols.can.zones import Point, Zone
from node.protocols.meghdoot.layers import Overlay, Surroundings, zone_id
from node.protocols.meghdoot.region import NextZones, Region, Steps, steps_of_zone

Child = tuple[int, Address]
"""A zone, and which of its holders."""


class HeldZone:
    """A zone of this peer, and those around it."""

    def __init__(self, zone: Zone, around: Surroundings, turns: dict[int, int]) -> None:
        self.zone = zone
        self.id = zone_id(zone)
        self.around = around
        self._turns = turns
        self._next = NextZones(zone, around.low, around.high)
        self._steps: Steps | None = None
        self._alone: dict[int, Child] = {}  # zones beside this one that have one holder, by their rows

    @property
    def steps(self) -> Steps:
        """The zone's, once they are needed."""
        if self._steps is None:
            self._steps = steps_of_zone(self.zone)
        return self._steps

    def children(self, region: Region, *, is_basic: bool, is_for_owners: bool = False) -> list[Child]:
        """To whom something goes that spreads over a region; `is_basic`: the algorithm as printed.

        is_for_owners: replicas would not do.
        """
        rows = self._next.all_upper_left(region) if is_basic else self._next.children(region)
        alone = self._alone
        return [alone.get(row) or self._in_turn(row, is_for_owners=is_for_owners) for row in rows]

    def _in_turn(self, row: int, *, is_for_owners: bool) -> Child:
        zone, holders = zone_id(self.around.zones[row]), self.around.holders[row]
        if len(holders) == 1:
            self._alone[row] = zone, holders[0]
        if len(holders) == 1 or is_for_owners:
            return zone, holders[0]
        turn = self._turns.get(zone, 0)
        self._turns[zone] = turn + 1
        return zone, holders[turn % len(holders)]


class HeldZones:
    """All of a peer's; made anew when the overlay says that something has changed."""

    def __init__(self, overlay: Overlay) -> None:
        self._overlay = overlay
        self._held: dict[int, HeldZone] | None = None
        self._turns: dict[int, int] = {}

    def changed(self) -> None:
        """The overlay is not as it was."""
        self._held = None

    @property
    def by_id(self) -> dict[int, HeldZone]:
        """All of them."""
        if self._held is None:
            held = (HeldZone(zone, self._overlay.beside(zone), self._turns) for zone in self._overlay.held())
            self._held = {each.id: each for each in held}
        return self._held

    def containing(self, point: Point) -> HeldZone | None:
        """The zone in which a point is, if this peer holds it."""
        return next((each for each in self.by_id.values() if each.zone.contains(point)), None)
