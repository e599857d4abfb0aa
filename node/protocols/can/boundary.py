"""Check that a node knows all its neighbours: then their zones cover the faces of its own.

A gap belongs to an unknown node: two nodes that split at once miss each other's new neighbours, or a message
was lost. The node asks those nearest to the gap for the owner (FIND). If repeated searches find none, the
owner failed together with all nodes that knew it; then the node takes over the box behind the gap, and yields
it to any later claim. The test compares the areas that neighbours share with a zone with that of the zone's
face: two sums, unless there is a gap.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import chain

import numpy as np

from node.core import machine as m
from node.core.peers.peer_pool import Address
from node.protocols.can.claims import VERSION_MAX, ZoneClaims
from node.protocols.can.messages import Find, coordinates_of, point_of
from node.protocols.can.parameters import CanParameters
from node.protocols.can.takeover import TakeoverProtocol
from node.protocols.can.territory import Territory
from node.protocols.can.zones import Point, Zone
from node.protocols.reachability.reachability import Reachability

TIMER: m.Timer = ("boundary",)
ASKED_MAX = 8  # nodes to ask about one gap
GAPS_MAX = 4  # gaps that are searched at a time
HOPS_MAX = 16
FORWARD_CHOICES = 3  # a search is forwarded to one of this many nodes nearest to the point
PATIENCE = 12  # checks of one gap until it is taken over
# of a box taken over without knowledge of its owner: any other claim outranks it
GAP_VERSION = VERSION_MAX // 2
ROUNDING = 1e-9  # rounding tolerance, as part of a face


@dataclass(slots=True)
class BoundaryWatch:
    """Boundary checks of one node."""

    claims: ZoneClaims
    territory: Territory
    takeover: TakeoverProtocol
    reach: Reachability
    parameters: CanParameters
    rng: m.Randomness
    emit: Callable[[m.Effect], None]
    _is_set: bool = False
    _looks: int = 0  # checks since there was no gap
    _turn: int = 0

    def doubt(self) -> None:
        """Schedule a check after a delay, since the missing claim may be on its way."""
        if not self._is_set:
            self._is_set = True
            self.emit(m.SetTimer(TIMER, self.reach.now_us + self.parameters.join_timeout_us))

    def timed_out(self) -> None:
        """Check for gaps."""
        self._is_set = False
        gaps = list(zip(range(GAPS_MAX), self._gaps(), strict=False))
        self._looks = self._looks + 1 if gaps else 0
        for _, (point, box) in gaps:
            if self._looks < PATIENCE or self.takeover.is_orphan(box):
                self._ask(point)
            else:
                self.emit(m.Log("gap", {"volume": box.volume}))
                self.territory.gain({box: GAP_VERSION}, None)
        if gaps:
            self.doubt()

    # --- Gaps

    def _gaps(self) -> Iterator[tuple[Point, Zone]]:
        """Yield a point in each gap and the box behind it."""
        for zone in list(self.claims.own.versions):
            low, high = np.asarray(zone.low), np.asarray(zone.high)
            table = self.claims.table
            rows = np.flatnonzero(table.adjacent(zone))
            shared = np.minimum(table.high[rows], high) - np.maximum(table.low[rows], low)
            above, below = table.low[rows] == high, table.high[rows] == low
            np.copyto(shared, 1.0, where=above | below)
            areas = np.multiply.reduce(shared / np.where(above | below, 1.0, high - low), axis=1)
            for dimension in range(zone.dimensions):
                for is_above, touches in ((False, below), (True, above)):
                    edge = zone.high[dimension] if is_above else zone.low[dimension]
                    if edge == float(is_above):
                        continue
                    beside = touches[:, dimension]
                    if areas[beside].sum() < 1.0 - ROUNDING:
                        zones = [table.zones[row] for row in rows[beside]]
                        yield from self._behind(zone, dimension, is_above, zones)

    def _behind(
        self, zone: Zone, dimension: int, is_above: bool, beside: list[Zone]
    ) -> Iterator[tuple[Point, Zone]]:
        outer = _with_side(
            zone, dimension, *((zone.high[dimension], 1.0) if is_above else (0.0, zone.low[dimension]))
        )
        rest = [outer]
        for each in beside:
            shadow = _with_side(each, dimension, outer.low[dimension], outer.high[dimension])
            rest = [part for box in rest for part in box.without(shadow)]
        for box in rest:
            at = zone.high[dimension] if is_above else float(np.nextafter(zone.low[dimension], 0.0))
            point = (*box.middle[:dimension], at, *box.middle[dimension + 1 :])
            gap = self._unclaimed_part(box, dimension, is_above)
            if not gap.is_empty:  # else both sides of the face are claimed, which is settled elsewhere
                yield point, gap

    def _unclaimed_part(self, box: Zone, dimension: int, is_above: bool) -> Zone:
        """Return the part of the box that no known zone overlaps."""
        low, high = box.low[dimension], box.high[dimension]
        for row in np.flatnonzero(self.claims.table.intersecting(box)).tolist():
            other = self.claims.table.zones[row]
            if is_above:
                high = min(high, other.low[dimension])
            else:
                low = max(low, other.high[dimension])
        return _with_side(box, dimension, low, high)

    # --- Searches

    def look_beyond(self) -> None:
        """Ask one node that is no neighbour, in turn, for the owner of a zone that was taken over.

        Otherwise nodes that were partitioned, and whose neighbours have failed since, would never meet.
        """
        trusted = [zone for zone, version in self.claims.own.versions.items() if version]
        strangers = [each for each in self.claims.outsiders() if not self.reach.is_failed(each)]
        if trusted and strangers:
            self._turn += 1
            zone = trusted[self._turn % len(trusted)]
            own = self.claims.own.node.address
            address = strangers[self._turn % len(strangers)]
            self.reach.send(address, Find(own, 0, coordinates_of(zone.middle)))

    def _ask(self, point: Point) -> None:
        own = self.claims.own.node.address
        message = Find(own, 0, coordinates_of(point))
        nearest = self._nearest(point, ASKED_MAX)
        others = [address for address in self.claims.others if address not in nearest]
        chosen = [others.pop(self.rng.randrange(len(others))) for _ in range(min(ASKED_MAX, len(others)))]
        for address in chain(nearest, chosen):
            self.reach.send(address, message)

    def _nearest(self, point: Point, count: int) -> list[Address]:
        own = self.claims.own.node.address
        order = np.argsort(self.claims.table.distances(point), kind="stable").tolist()
        owners = dict.fromkeys(self.claims.table.owners[row] for row in order)
        return [address for address in owners if address != own][:count]

    def find(self, sender: Address, message: Find) -> None:
        """Answer a search with the owner of the point, or forward it to a node near the point.

        It is forwarded to a random one of the nearest nodes: the nearest may know no more than the searching
        node.
        """
        point = point_of(message.point)
        rows = np.flatnonzero(self.claims.table.containing(point)).tolist()
        holders = [self.claims.holder(self.claims.table.owners[row]) for row in rows]
        for holder in holders:
            if holder.node.address != message.address:
                self.reach.send(message.address, *holder.claim_messages())
        if not holders and message.hops < HOPS_MAX:
            others = [
                each for each in self._nearest(point, ASKED_MAX) if each not in {message.address, sender}
            ]
            for address in others[self.rng.randrange(FORWARD_CHOICES) :][:1]:
                self.reach.send(address, Find(message.address, message.hops + 1, message.point))


def _with_side(zone: Zone, dimension: int, low: float, high: float) -> Zone:
    return Zone(
        (*zone.low[:dimension], low, *zone.low[dimension + 1 :]),
        (*zone.high[:dimension], high, *zone.high[dimension + 1 :]),
    )
