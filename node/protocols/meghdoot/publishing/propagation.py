"""Events at a zone: notification and forwarding to the next zones (3.4, algorithm Deliver Event).

Everything that spreads over a region is forwarded in the same way; the action at a zone differs
(`SpreadingMessage.visit`): an event notifies subscribers, a recovery (4.3) sends subscriptions.
"""

from dataclasses import dataclass
from typing import Any, Protocol

from node.core.peers.peer_pool import Address
from node.protocols.can.zones import Point
from node.protocols.meghdoot.parameters import MeghdootParameters
from node.protocols.meghdoot.publishing.waves import Again, Key, Wave, Waves
from node.protocols.meghdoot.region import SpaceRegion, Steps, points_in
from node.protocols.meghdoot.transport import OverlayTransport
from node.protocols.meghdoot.zones.held_zones import HeldZone, HeldZones

SEEN_MAX = 16_384
"""Latest visits that are remembered; up to twice as many may be."""
SEEN_US = 30_000_000
"""Time for which a visit is remembered, longer than messages of one attempt travel."""


class SpreadingMessage(Protocol):
    """A message that spreads over a region. is_for_owners: replicas must not be used."""

    origin: int
    number: int
    attempt: int
    publisher: Address
    region: SpaceRegion
    is_for_owners: bool

    @property
    def steps(self) -> Steps:
        """Grid steps of the region."""

    def visit(self, zone: HeldZone) -> dict[Address, int]:
        """Execute the action at a zone; return the subscribers that must answer.

        The result maps their addresses to process generations.
        """

    def doubts(self, zone: HeldZone) -> int:
        """Return 1 if relevant data of a zone may be incomplete, else 0."""

    def onward(self, zone: int, waited_us: int) -> Any:
        """See `waves.Onward`."""

    @property
    def again(self) -> Again | None:
        """Function that notifies a subscriber again (`waves.Again`), if possible."""


@dataclass(slots=True)
class VisitCounts:
    """Visits of zones since the start of a peer. repeats: repeated visits of the same zone."""

    visits: int = 0
    repeats: int = 0
    strays: int = 0  # for zones that this peer does not hold (any more)


class Propagation:
    """Processing of waves at the zones of a peer, and forwarding."""

    def __init__(
        self,
        parameters: MeghdootParameters,
        mail: OverlayTransport,
        held: HeldZones,
        waves: Waves,
    ) -> None:
        self.counts = VisitCounts()
        self._parameters = parameters
        self._mail = mail
        self._held = held
        self._waves = waves
        self._form = parameters.propagation
        self._is_confirming = parameters.is_confirming
        self._seen: set[Key] = set()
        self._seen_before: set[Key] = set()  # visits before `_seen` was started
        self._seen_until_us = 0

    def begin(self, spread: SpreadingMessage, point: Point, origin: Address) -> bool:
        """Start at the zone that contains the region's corner; return whether this peer holds it."""
        zone = self._held.containing(point)
        if zone is None:
            return False
        self._visit(spread, zone, origin, is_root=True)
        return True

    def take(self, spread: SpreadingMessage, sender: Address, zone_id: int) -> None:
        """Process a wave that was forwarded to one of this peer's zones."""
        zone = self._held.by_id.get(zone_id)
        if zone is not None:
            self._visit(spread, zone, sender, is_root=False)
            return
        self.counts.strays += 1
        self._visit_any(spread, sender, zone_id)

    def _visit_any(self, spread: SpreadingMessage, sender: Address, asked: int) -> None:
        """Visit all affected zones of this peer, because the sender does not know how its zone was split."""
        key = spread.origin, spread.number, spread.attempt, asked
        wave = self._wave(key, spread, sender, is_root=False)
        for zone in self._held.by_id.values():
            if spread.region.touches(zone.zone):
                wave.children[zone.id] = self._mail.own
        if self._is_confirming:
            self._waves.begin(wave)
        for child in sorted(wave.children):
            self._visit(spread, self._held.by_id[child], self._mail.own, is_root=False)

    def _wave(self, key: Key, spread: SpreadingMessage, parent: Address, *, is_root: bool) -> Wave:
        until_us = self._mail.now_us + self._parameters.wave_timeout_us
        return Wave(key, parent, is_root, spread.publisher, until_us, 0, 0)

    def _visit(self, spread: SpreadingMessage, zone: HeldZone, parent: Address, *, is_root: bool) -> None:
        key = spread.origin, spread.number, spread.attempt, zone.id
        if not self._is_new(key):
            self.counts.repeats += 1
            if self._is_confirming and not self._waves.is_open(key, parent):
                self._waves.answer(self._wave(key, spread, parent, is_root=is_root))
            return
        self.counts.visits += 1
        notified = spread.visit(zone)
        children = zone.children(spread.region, form=self._form, is_for_owners=spread.is_for_owners)
        if self._is_confirming:
            wave = self._wave(key, spread, parent, is_root=is_root)
            wave.points = points_in(zone.steps, spread.steps)
            wave.doubts = spread.doubts(zone)
            wave.told, wave.again = notified, spread.again
            wave.children, wave.onward = dict(children), spread.onward
            self._waves.begin(wave)
        for child, address in children:
            self._mail.send(address, spread.onward(child, 0))

    def _is_new(self, key: Key) -> bool:
        now_us = self._mail.now_us
        if now_us >= self._seen_until_us or len(self._seen) >= SEEN_MAX:
            self._seen, self._seen_before = set(), self._seen
            self._seen_until_us = now_us + SEEN_US
        if key in self._seen or key in self._seen_before:
            return False
        self._seen.add(key)
        return True
