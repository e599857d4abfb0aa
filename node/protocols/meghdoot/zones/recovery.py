"""Recovery of a lost zone's subscriptions from the peers that have its mirror image (4.3).

A peer that takes a zone over without being its replica spreads RECOVER over the zone's reflection, as an
event spreads over its region. Each peer there sends its copies of the zone's subscriptions, and the
subscriptions whose copies were in the zone. A second request, which spreads over everything around the zone,
covers copies that had to move out of their own zone into a neighbouring one, in both directions.

The zone is in doubt until all answers have arrived from peers that are not in doubt themselves. Events are
forwarded and notified as usual meanwhile, but the wave's answer reports the doubt, and publishers send them
again. Subscribers repeat their subscriptions periodically (`refresh_us`): when all must have done so, the
doubt ends.
"""

from node.core.peers.peer_pool import Address
from node.protocols.can.zones import Point, Zone
from node.protocols.meghdoot.messages import (
    EventName,
    Recover,
    RecoverAt,
    RecoveryZones,
    StorePurpose,
    Visited,
)
from node.protocols.meghdoot.parameters import MeghdootParameters
from node.protocols.meghdoot.publishing.propagation import Propagation
from node.protocols.meghdoot.publishing.waves import Waves
from node.protocols.meghdoot.region import SpaceRegion, Steps, all_points, around, closed, steps_of_region
from node.protocols.meghdoot.space import Space, reflected
from node.protocols.meghdoot.subscriptions import SubscriptionUpdate
from node.protocols.meghdoot.transport import OverlayTransport
from node.protocols.meghdoot.zones.doubts import DoubtfulZone, DoubtfulZones
from node.protocols.meghdoot.zones.held_zones import HeldZone
from node.protocols.meghdoot.zones.subscription_storage import SubscriptionStorage

FIRST_NUMBER = 1 << 62
"""First number of recoveries, above those of events."""


class ZoneRecovery:
    """Recovery requests of a peer, and its answers to others. `propagation` is set from outside."""

    propagation: Propagation

    def __init__(
        self,
        parameters: MeghdootParameters,
        mail: OverlayTransport,
        space: Space,
        *,
        keeping: SubscriptionStorage,
        waves: Waves,
    ) -> None:
        self.doubts = DoubtfulZones(
            parameters, mail, space, keeping.hand_over, is_own=keeping.is_own, is_copy=keeping.is_copy
        )
        self._assure_us = 0
        self._parameters = parameters
        self._mail = mail
        self._keeping = keeping
        self._waves = waves
        self._last = 0

    # --- Zones of this peer

    def tick(self) -> None:
        """Send due recovery requests, and confirm completeness to replicas."""
        self.doubts.tick()
        now_us = self._mail.now_us
        if self._assure_us <= now_us:
            self._assure_us = now_us + self._parameters.retransmit_us
            for zone, replica in self._keeping.copied():
                self.doubts.assure(zone, replica)
        for doubt in self.doubts:
            if self._parameters.mirror and doubt.again_us <= now_us:
                doubt.again_us = now_us + self._parameters.wave_timeout_us
                self._ask(doubt)

    def _ask(self, doubt: DoubtfulZone) -> None:
        if doubt.is_given and not doubt.attempt:  # its giver is late: treat it as failed
            self._keeping.promote(doubt.zone)
        doubt.attempt += 1
        doubt.awaited = {}
        for where in RecoveryZones:
            self._last = self._last % 0xFFFFFFFF + 1
            doubt.awaited[self._last] = where
            edges = self.doubts.edges_of(doubt.zone)
            self._mail.route(RecoverAt(self._mail.own, self._last, doubt.attempt, where, edges))

    def confirmed(self, visited: Visited) -> None:
        """Process that all peers asked by one request have answered."""
        number = visited.first_seq - FIRST_NUMBER
        for doubt in self.doubts:
            if number not in doubt.awaited:
                continue
            needed = all_points(steps_of_region(_region(doubt.zone, doubt.awaited[number])))
            if visited.points != needed or visited.undelivered or visited.doubts:
                soon_us = self._mail.now_us + self._parameters.retransmit_us
                doubt.again_us = min(doubt.again_us, soon_us)
                return
            del doubt.awaited[number]
            if not doubt.awaited:
                self.doubts.end(doubt, "mirror")

    # --- Zones of others

    def corner_of(self, message: RecoverAt) -> Point:
        """Return the point from which a request spreads."""
        return _region(self.doubts.zone_of(message.edges), message.where).corner

    def at(self, message: RecoverAt) -> None:
        """Start to spread a request."""
        self.propagation.begin(self._spread(message), self.corner_of(message), message.address)

    def take(self, message: Recover, sender: Address) -> None:
        """Process a request at one of this peer's zones."""
        self.propagation.take(self._spread(message), sender, message.zone)

    def _spread(self, message: Recover | RecoverAt) -> "RecoverySpread":
        return RecoverySpread(self, message, self.doubts.zone_of(bytes(message.edges)))

    def doubts_of(self, spread: "RecoverySpread", held: HeldZone) -> int:
        """See `propagation.SpreadingMessage`; this peer's own request does not count as a doubt."""
        is_own = spread.publisher == self._mail.own
        return self.doubts.count_in(held, spread.number - FIRST_NUMBER if is_own else 0)

    def visit(self, spread: "RecoverySpread", held: HeldZone) -> dict[Address, int]:
        """Send the data in a zone of this peer; see `propagation.SpreadingMessage`."""
        if spread.publisher == self._mail.own:
            return {}
        return self._send(spread.publisher, spread.number, self._found(spread.lost, spread.where, held))

    def _found(self, lost: Zone, where: int, held: HeldZone) -> dict[StorePurpose, list[SubscriptionUpdate]]:
        """Return the data of a lost zone in a zone of this peer."""
        keeping, mirrored = self._keeping, reflected(lost)
        found = {StorePurpose.RECOVERED: keeping.copies.within(lost)}
        if where == RecoveryZones.AROUND:
            found[StorePurpose.COPY] = keeping.copies.within(mirrored) + keeping.moved_to(lost, held.zone)
        elif held.zone.intersects(mirrored):
            found[StorePurpose.COPY] = keeping.subscriptions.within(held.zone.intersection(mirrored))
        return found

    def _send(
        self, asker: Address, number: int, found: dict[StorePurpose, list[SubscriptionUpdate]]
    ) -> dict[Address, int]:
        waits = [sum(map(bool, found.values()))]

        def stored() -> None:
            waits[0] -= 1
            if not waits[0]:
                self._waves.notified(asker, EventName(asker, number, 0))

        for purpose, subscriptions in found.items():
            if subscriptions:
                self._keeping.stores.send(asker, purpose, subscriptions, stored)
        return {asker: 0} if waits[0] else {}


class RecoverySpread:
    """A request that spreads (`propagation.SpreadingMessage`). lost: the zone to recover."""

    is_for_owners = True
    again = None

    def __init__(self, recovery: ZoneRecovery, message: Recover | RecoverAt, lost: Zone) -> None:
        self.origin = self.publisher = message.address
        self.number, self.attempt = FIRST_NUMBER + message.number, message.attempt
        self.lost, self.where, self.region = lost, message.where, _region(lost, message.where)
        self._recovery, self._message = recovery, message

    @property
    def steps(self) -> Steps:
        """See `propagation.SpreadingMessage`."""
        return steps_of_region(self.region)

    def visit(self, zone: HeldZone) -> dict[Address, int]:
        """See `propagation.SpreadingMessage`."""
        return self._recovery.visit(self, zone)

    def doubts(self, zone: HeldZone) -> int:
        """See `propagation.SpreadingMessage`."""
        return self._recovery.doubts_of(self, zone)

    def onward(self, zone: int, waited_us: int) -> Recover:
        """See `propagation.SpreadingMessage`."""
        message = self._message
        edges = bytes(message.edges)
        return Recover(message.address, message.number, message.attempt, message.where, zone, edges)


def _region(lost: Zone, where: int) -> SpaceRegion:
    """Return the region over which a request for a zone spreads."""
    return closed(reflected(lost)) if where == RecoveryZones.MIRROR else around(lost)
