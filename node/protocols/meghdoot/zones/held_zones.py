"""The zones that a peer holds, and their neighbours, to which events go from each.

If a neighbour has replicas, events go to it and them in turn (4.1). Changes of neighbours are applied on the
next query (`OverlayView.ownership_changes`): in a space of many dimensions each join concerns hundreds of
zones, and a zone has hundreds of neighbours.
"""

from collections.abc import Sequence

from node.core.peers.peer_pool import Address
from node.protocols.can.zones import Point, Zone
from node.protocols.meghdoot.layers import OwnershipChange, zone_id
from node.protocols.meghdoot.parameters import PropagationForm
from node.protocols.meghdoot.region import NextZones, SpaceRegion, Steps, is_upper_left, steps_of_zone
from node.protocols.meghdoot.transport import OverlayView

Child = tuple[int, Address]
"""A zone id, and one of the zone's holders."""


class HeldZone:
    """A zone of this peer, and its neighbours."""

    def __init__(self, zone: Zone, overlay: OverlayView, turns: dict[int, int]) -> None:
        self.zone = zone
        self.id = zone_id(zone)
        self._overlay = overlay
        self._turns = turns
        around = overlay.neighbours(zone)
        known = list(zip(around.owners, around.zones, strict=True))
        self._next = NextZones(zone, around.low, around.high)
        self._beside = {row: known[row] for row in self._next.rows}
        self._rows = {each: row for row, each in self._beside.items()}
        self._serial = len(known)
        self._steps: Steps | None = None
        self._holders: dict[int, tuple[int, Sequence[Address]]] = {}  # holders of neighbouring zones, by row

    @property
    def steps(self) -> Steps:
        """Grid steps of the zone, computed on first use."""
        if self._steps is None:
            self._steps = steps_of_zone(self.zone)
        return self._steps

    def apply(self, changes: Sequence[OwnershipChange]) -> None:
        """Apply changes of neighbours, and forget their holders, which may have changed as well."""
        self._holders.clear()
        for each in changes:
            if each.is_there:
                self._add(each.owner, each.zone)
            else:
                self._remove(each.owner, each.zone)

    def _add(self, owner: Address, zone: Zone) -> None:
        if zone.adjacent(self.zone):
            row = self._serial
            self._serial += 1
            self._next.add(row, zone)
            self._beside[row] = owner, zone
            self._rows[owner, zone] = row

    def _remove(self, owner: Address, zone: Zone) -> None:
        row = self._rows.pop((owner, zone), None)
        if row is not None:
            self._next.remove(row)
            del self._beside[row]

    def children(
        self, region: SpaceRegion, *, form: PropagationForm = "unique", is_for_owners: bool = False
    ) -> list[Child]:
        """Return the zones to which a message that spreads over a region is forwarded, with their holders.

        is_for_owners: replicas must not be used.
        """
        if form == "unique":
            rows = self._next.children(region)
        else:
            rows = self._next.all_upper_left(region)
            if form == "checked" and rows:
                rows = self._unserved(region, rows)
        known, turns = self._holders, self._turns
        children = []
        for row in rows:
            zone, holders = known.get(row) or self._look_up(row)
            turn = 0
            if len(holders) > 1 and not is_for_owners:
                turn = turns.get(zone, 0)
                turns[zone] = turn + 1
            children.append((zone, holders[turn % len(holders)]))
        return children

    def _unserved(self, region: SpaceRegion, rows: Sequence[int]) -> Sequence[int]:
        """Return the neighbours to which no neighbour on this zone's lower right could forward (3.4)."""
        around = self._overlay.neighbours(self.zone).zones
        before = [each for each in around if is_upper_left(self.zone, each) and region.touches(each)]

        def is_served(zone: Zone) -> bool:
            return any(is_upper_left(zone, each) and each.adjacent(zone) for each in before)

        return [row for row in rows if not is_served(self._beside[row][1])]

    def _look_up(self, row: int) -> tuple[int, Sequence[Address]]:
        owner, beside = self._beside[row]
        found = self._holders[row] = zone_id(beside), self._overlay.holders(beside, owner)
        return found


class HeldZones:
    """All zones of a peer."""

    def __init__(self, overlay: OverlayView) -> None:
        self._overlay = overlay
        self._held: dict[int, HeldZone] = {}
        self._zones: tuple[Zone, ...] = ()
        self._around: tuple[Address, ...] | None = None
        self._is_old = True
        self._turns: dict[int, int] = {}

    def changed(self) -> None:
        """Note that the overlay changed."""
        self._is_old, self._around = True, None

    @property
    def by_id(self) -> dict[int, HeldZone]:
        """All zones by id."""
        if self._is_old:
            self._is_old = False
            self._renew(tuple(self._overlay.held()), self._overlay.ownership_changes())
        return self._held

    def _renew(self, zones: tuple[Zone, ...], changes: Sequence[OwnershipChange] | None) -> None:
        if changes is None or zones != self._zones:
            self._zones = zones
            held = (HeldZone(zone, self._overlay, self._turns) for zone in zones)
            self._held = {each.id: each for each in held}
            return
        for each in self._held.values():
            each.apply(changes)

    @property
    def around(self) -> tuple[Address, ...]:
        """All other peers with zones near these."""
        if self._around is None:
            self._around = tuple(self._overlay.known())
        return self._around

    def containing(self, point: Point) -> HeldZone | None:
        """Return the zone that contains the point, if this peer holds it."""
        return next((each for each in self.by_id.values() if each.zone.contains(point)), None)
