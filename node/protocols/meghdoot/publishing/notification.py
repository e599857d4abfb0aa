"""Notification of a zone's subscribers whose subscriptions match an event, each once (3.4).

A subscriber that has confirmed an event is not notified again when the event's wave is repeated. The
subscriber itself ignores events that are older than its subscription: only it knows for certain when it
subscribed.
"""

from node.core.peers.peer_pool import Address
from node.protocols.meghdoot.messages import Event, EventName, Notify, Publish
from node.protocols.meghdoot.parameters import MeghdootParameters
from node.protocols.meghdoot.publishing.event import EventContent
from node.protocols.meghdoot.region import Steps
from node.protocols.meghdoot.transport import OverlayTransport
from node.protocols.meghdoot.zones.doubts import DoubtfulZones
from node.protocols.meghdoot.zones.held_zones import HeldZone, HeldZones
from node.protocols.meghdoot.zones.subscription_storage import SubscriptionStorage

ANSWERED_MAX = 16_384


class EventSpread:
    """An event that spreads (`propagation.SpreadingMessage`). payload: the message's, as bytes."""

    __slots__ = (
        "_doubts",
        "_message",
        "_notification",
        "attempt",
        "is_for_owners",
        "number",
        "origin",
        "payload",
        "publisher",
        "region",
        "seen",
    )

    def __init__(
        self,
        message: Publish | Event,
        payload: bytes,
        seen: EventContent,
        notification: "Notification",
        doubts: DoubtfulZones,
    ) -> None:
        self.origin, self.number, self.attempt = message.stream, message.first_seq, message.attempt
        self.publisher, self.region, self.is_for_owners = message.address, seen.region, False
        self.payload, self.seen = payload, seen
        self._message, self._notification, self._doubts = message, notification, doubts

    @property
    def steps(self) -> Steps:
        """See `propagation.SpreadingMessage`."""
        return self.seen.steps

    def visit(self, zone: HeldZone) -> dict[Address, int]:
        """See `propagation.SpreadingMessage`."""
        return self._notification.visit(self, zone)

    def doubts(self, zone: HeldZone) -> int:
        """See `propagation.SpreadingMessage`."""
        return self._doubts.count_in(zone)

    def onward(self, zone: int, waited_us: int) -> Event:
        """See `propagation.SpreadingMessage`."""
        message = self._message
        age_us = message.age_us + waited_us
        return Event(
            self.origin,
            self.number,
            self.attempt,
            message.settled,
            age_us,
            self.publisher,
            zone,
            self.payload,
        )

    def again(self, subscriber: Address, life: int, waited_us: int) -> None:
        """Repeat the notification of a silent subscriber, `waited_us` after the event arrived."""
        self._notification.send(subscriber, self.notify(life, waited_us))

    def notify(self, life: int, waited_us: int) -> Notify:
        """Return the notification for a process generation of a subscriber.

        waited_us: time since the event arrived.
        """
        message = self._message
        return Notify(
            self.origin, self.number, message.settled, message.age_us + waited_us, life, self.payload
        )


class Notification:
    """Notification for the zones of a peer.

    is_enabled: events are matched with subscriptions; a study that counts no notifications does not need
    that. send: sends a message to a subscriber.
    """

    def __init__(
        self,
        parameters: MeghdootParameters,
        mail: OverlayTransport,
        keeping: SubscriptionStorage,
        held: HeldZones,
    ) -> None:
        self.is_enabled = True
        self.send = mail.send
        self._is_confirming = parameters.is_confirming
        self._keeping = keeping
        self._held = held
        self._answered: dict[tuple[Address, int, int], int] = {}  # process generation by subscriber and event

    def visit(self, spread: EventSpread, zone: HeldZone) -> dict[Address, int]:
        """Notify matching subscribers of a zone; return those that must answer.

        The result maps their addresses to process generations.
        """
        if not self.is_enabled or not len(self._keeping.subscriptions):
            return {}
        only = None if self._has_only() else zone.zone
        told: dict[Address, int] = {}
        for each in self._keeping.subscriptions.matching(spread.seen.values, only):
            life, address = each.life, each.subscriber
            if told.get(address, -1) < life:
                told[address] = life
        if self._answered:
            stream, seq = spread.origin, spread.number
            for address, life in list(told.items()):
                if self._answered.get((address, stream, seq), -1) >= life:
                    del told[address]
        by_life: dict[int, Notify] = {}
        for address, life in told.items():
            notify = by_life.get(life)
            if notify is None:
                notify = by_life[life] = spread.notify(life, 0)
            self.send(address, notify)
        return told

    def _has_only(self) -> bool:
        """Return whether all stored subscriptions belong to one zone.

        A peer with several zones, or with data that it has not moved yet, stores subscriptions of other
        zones, too.
        """
        return self._keeping.is_settled and len(self._held.by_id) == 1

    def notified(self, subscriber: Address, event: EventName) -> None:
        """Record that a subscriber has an event; a later process generation of it may need it, too."""
        if self._is_confirming:
            key = subscriber, event.stream, event.first_seq
            self._answered[key] = max(self._answered.get(key, 0), event.life)
            if len(self._answered) > ANSWERED_MAX:
                del self._answered[next(iter(self._answered))]
