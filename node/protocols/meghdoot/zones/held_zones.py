"""The zones that a peer holds, by CAN's claims, and their neighbours, to which events go from each.

If a neighbour has replicas, events go to it and them in turn (4.1). Changes of neighbours are applied on the
next query: in a space of many dimensions each join concerns hundreds of zones, and a zone has hundreds of
neighbours.
"""

from collections.abc import Sequence
from functools import lru_cache
from hashlib import blake2b
from struct import Struct

import numpy as np

from node.core.peers.peer_pool import Address
from node.protocols.can.claims import Versions, ZoneClaims
from node.protocols.can.zones import Point, Zone
from node.protocols.meghdoot.parameters import PropagationForm
from node.protocols.meghdoot.region import NextZones, SpaceRegion, Steps, is_upper_left, steps_of_zone
from node.protocols.reachability.nodes import NodeHandle

ZONES_MAX = 1 << 17
CHANGES_MAX = 64
"""Changes of zones that are kept; after more, all zones are read again."""
Child = tuple[int, Address]
"""A zone id, and one of the zone's holders."""
OwnershipChange = tuple[Address, Zone, bool]
"""A peer, possibly this one; a zone; whether the peer has it now, or no longer."""


@lru_cache(maxsize=ZONES_MAX)
def zone_id(zone: Zone) -> int:
    """Return a 64-bit hash of a zone's edges; a split or merge changes it."""
    edges = Struct(f">{2 * zone.dimensions}d").pack(*zone.low, *zone.high)
    return int.from_bytes(blake2b(edges, digest_size=8).digest(), "big")


class HeldZone:
    """A zone of this peer, and its neighbours. Several of one peer may be neighbours of each other."""

    def __init__(self, zone: Zone, claims: ZoneClaims, turns: dict[int, int]) -> None:
        self.zone = zone
        self.id = zone_id(zone)
        self._claims = claims
        self._turns = turns
        table = claims.table
        around = np.flatnonzero(table.adjacent(zone)).tolist()
        known = [(table.owners[row], table.zones[row]) for row in around]
        self._next = NextZones(zone, table.low[around], table.high[around])
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
        for owner, zone, is_there in changes:
            if is_there:
                self._add(owner, zone)
            else:
                self._remove(owner, zone)

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
        table = self._claims.table
        around = [table.zones[row] for row in np.flatnonzero(table.adjacent(self.zone)).tolist()]
        before = [each for each in around if is_upper_left(self.zone, each) and region.touches(each)]

        def is_served(zone: Zone) -> bool:
            return any(is_upper_left(zone, each) and each.adjacent(zone) for each in before)

        return [row for row in rows if not is_served(self._beside[row][1])]

    def _look_up(self, row: int) -> tuple[int, Sequence[Address]]:
        owner, beside = self._beside[row]
        found = self._holders[row] = zone_id(beside), self._claims.holder(owner).addresses
        return found


class HeldZones:
    """All zones of a peer, including those that it replicates."""

    def __init__(self) -> None:
        self._claims: ZoneClaims
        self._changes: list[OwnershipChange] = []
        self._versions: Versions | None = None
        self._zones: tuple[Zone, ...] = ()
        self._held: dict[int, HeldZone] = {}
        self._known: tuple[Zone, ...] = ()  # the zones in `_held`
        self._around: tuple[Address, ...] | None = None
        self._is_old = True
        self._turns: dict[int, int] = {}

    def watch(self, claims: ZoneClaims) -> None:
        """Follow the claims of this peer's node."""
        self._claims, claims.table.watch = claims, self._on_change

    def _on_change(self, owner: Address, zone: Zone, is_there: bool) -> None:
        if len(self._changes) <= CHANGES_MAX:
            self._changes.append((owner, zone, is_there))
        self.changed()

    def changed(self) -> None:
        """Note that the overlay changed."""
        self._is_old, self._around = True, None

    @property
    def by_id(self) -> dict[int, HeldZone]:
        """All zones by id."""
        if self._is_old:
            self._is_old = False
            self._renew()
        return self._held

    def _renew(self) -> None:
        changes, self._changes = self._changes, []
        if len(changes) > CHANGES_MAX or self.zones != self._known:
            self._known = self.zones
            held = (HeldZone(zone, self._claims, self._turns) for zone in self.zones)
            self._held = {each.id: each for each in held}
            return
        for each in self._held.values():
            each.apply(changes)

    @property
    def zones(self) -> tuple[Zone, ...]:
        """The zones alone."""
        versions = self._claims.held
        if versions is not self._versions:
            self._versions, self._zones = versions, tuple(versions)
        return self._zones

    @property
    def replicas(self) -> Sequence[NodeHandle]:
        """All other peers that hold the zones of this peer; a restarted one has another id."""
        return self._claims.own.replicas

    def is_owner(self, zone: Zone) -> bool:
        """Return whether this peer owns the zone rather than replicates it."""
        versions = self._claims.own.versions
        return bool(versions) and zone in versions

    @property
    def around(self) -> tuple[Address, ...]:
        """All other peers, also replicas, with zones near these."""
        if self._around is None:
            holders = (self._claims.own, *self._claims.others.values())
            found = dict.fromkeys(address for holder in holders for address in holder.addresses)
            found.pop(self._claims.own.node.address, None)
            self._around = tuple(found)
        return self._around

    def containing(self, point: Point) -> HeldZone | None:
        """Return the zone that contains the point, if this peer holds it."""
        return next((each for each in self.by_id.values() if each.zone.contains(point)), None)
