"""Subscriptions of a zone whose peer is gone, from those that have its mirror image (4.3).

Whoever takes a zone over without having been its replica spreads RECOVER over the zone's reflection, as an
event is spread over its region. Each peer there sends the copies that it has of the zone's subscriptions, and
the subscriptions whose copies were in the zone. Copies that had to move to a zone beside their own are asked
for by a second request, which spreads over all that is around the zone; so are those that had moved into it.

Until all of that has come, and was known for certain where it came from, it is in doubt whether the zone
knows all of its subscriptions. Events are passed on and notified as usual meanwhile, but the wave's answer
says so, and publishers send them out again. Subscribers speak of their subscriptions now and then
(`refresh_us`): when all had to, doubt ends.
"""

from node.core.peers.peer_pool import Address
from node.protocols.can.zones import Point, Zone
from node.protocols.meghdoot.layers import Mail
from node.protocols.meghdoot.messages import EventName, Purpose, Recover, RecoverAt, Visited, Where
from node.protocols.meghdoot.parameters import Parameters
from node.protocols.meghdoot.publishing.propagation import Propagation
from node.protocols.meghdoot.publishing.waves import Waves
from node.protocols.meghdoot.region import Region, Steps, all_points, around, closed, steps_of_region
from node.protocols.meghdoot.space import Space, reflected
from node.protocols.meghdoot.subscriptions import Subscription
from node.protocols.meghdoot.zones.doubts import Doubt, Doubts
from node.protocols.meghdoot.zones.held_zones import HeldZone
from node.protocols.meghdoot.zones.keeping import Keeping

FIRST_NUMBER = 1 << 62
"""Numbers of recoveries are none of events."""


class Recovery:
    """What a peer asks others for, and tells them. `propagation` is set from outside."""

    propagation: Propagation

    def __init__(
        self,
        parameters: Parameters,
        mail: Mail,
        space: Space,
        *,
        keeping: Keeping,
        waves: Waves,
    ) -> None:
        self.doubts = Doubts(
            parameters, mail, space, keeping.hand_over, is_own=keeping.is_own, is_copy=keeping.is_copy
        )
        self._assure_us = 0
        self._parameters = parameters
        self._mail = mail
        self._keeping = keeping
        self._waves = waves
        self._last = 0

    # --- Of this peer's zones

    def tick(self) -> None:
        """Ask, and ask again; assure replicas."""
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

    def _ask(self, doubt: Doubt) -> None:
        if doubt.is_given and not doubt.attempt:  # its giver is late: as if it were gone
            self._keeping.promote(doubt.zone)
        doubt.attempt += 1
        doubt.awaited = {}
        for where in Where:
            self._last = self._last % 0xFFFFFFFF + 1
            doubt.awaited[self._last] = where
            edges = self.doubts.edges_of(doubt.zone)
            message = RecoverAt(self._mail.own, self._last, doubt.attempt, where, edges)
            self._mail.route(message, self.corner_of(message))

    def confirmed(self, visited: Visited) -> None:
        """All that were asked by one request have sent what they have."""
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

    # --- Of others' zones

    def corner_of(self, message: RecoverAt) -> Point:
        """Where a request begins to spread."""
        return _region(self.doubts.zone_of(message.edges), message.where).corner

    def at(self, message: RecoverAt) -> None:
        """Spread a request from here on."""
        self.propagation.begin(self._spread(message), self.corner_of(message), message.address)

    def take(self, message: Recover, sender: Address) -> None:
        """A request came to one of this peer's zones."""
        self.propagation.take(self._spread(message), sender, message.zone)

    def _spread(self, message: Recover | RecoverAt) -> "RecoverySpread":
        return RecoverySpread(self, message, self.doubts.zone_of(bytes(message.edges)))

    def doubts_of(self, spread: "RecoverySpread", held: HeldZone) -> int:
        """See `propagation.Spread`; what this peer asks for itself is not in doubt for that."""
        is_own = spread.publisher == self._mail.own
        return self.doubts.count_in(held, spread.number - FIRST_NUMBER if is_own else 0)

    def visit(self, spread: "RecoverySpread", held: HeldZone) -> dict[Address, int]:
        """Send what a zone of this peer has; see `propagation.Spread`."""
        if spread.publisher == self._mail.own:
            return {}
        return self._send(spread.publisher, spread.number, self._found(spread.lost, spread.where, held))

    def _found(self, lost: Zone, where: int, held: HeldZone) -> dict[Purpose, list[Subscription]]:
        """What a zone of this peer has of one that was lost."""
        keeping, mirrored = self._keeping, reflected(lost)
        found = {Purpose.RECOVERED: keeping.copies.within(lost)}
        if where == Where.AROUND:
            found[Purpose.COPY] = keeping.copies.within(mirrored) + keeping.moved_to(lost, held.zone)
        elif held.zone.intersects(mirrored):
            found[Purpose.COPY] = keeping.subscriptions.within(held.zone.intersection(mirrored))
        return found

    def _send(
        self, asker: Address, number: int, found: dict[Purpose, list[Subscription]]
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
    """A request that spreads (`propagation.Spread`). lost: the zone whose subscriptions are wanted."""

    is_for_owners = True
    again = None

    def __init__(self, recovery: Recovery, message: Recover | RecoverAt, lost: Zone) -> None:
        self.origin = self.publisher = message.address
        self.number, self.attempt = FIRST_NUMBER + message.number, message.attempt
        self.lost, self.where, self.region = lost, message.where, _region(lost, message.where)
        self._recovery, self._message = recovery, message

    @property
    def steps(self) -> Steps:
        """See `propagation.Spread`."""
        return steps_of_region(self.region)

    def visit(self, zone: HeldZone) -> dict[Address, int]:
        """See `propagation.Spread`."""
        return self._recovery.visit(self, zone)

    def doubts(self, zone: HeldZone) -> int:
        """See `propagation.Spread`."""
        return self._recovery.doubts_of(self, zone)

    def onward(self, zone: int, waited_us: int) -> Recover:
        """See `propagation.Spread`."""
        message = self._message
        edges = bytes(message.edges)
        return Recover(message.address, message.number, message.attempt, message.where, zone, edges)


def _region(lost: Zone, where: int) -> Region:
    """Over which a request for a zone spreads."""
    return closed(reflected(lost)) if where == Where.MIRROR else around(lost)
