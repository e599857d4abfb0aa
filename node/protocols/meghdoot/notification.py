"""Subscribers of a zone whose subscriptions an event matches are notified, each once (3.4).

Who has said that it has an event is not notified of it again when its wave comes once more. Which events are
older than its subscription a subscriber knows itself: nobody else knows for certain when it asked.
"""

from node.core.peer_pool import Address
from node.protocols.meghdoot.event import SeenEvent
from node.protocols.meghdoot.held_zones import HeldZone, HeldZones
from node.protocols.meghdoot.keeping import Keeping
from node.protocols.meghdoot.layers import Mail
from node.protocols.meghdoot.messages import Event, EventName, Notify, Publish
from node.protocols.meghdoot.parameters import Parameters

ANSWERED_MAX = 16_384


class Notification:
    """Notifies for the zones of a peer."""

    def __init__(self, parameters: Parameters, mail: Mail, keeping: Keeping, held: HeldZones) -> None:
        self.count = 0
        self._is_confirming = parameters.is_confirming
        self._mail = mail
        self._keeping = keeping
        self._held = held
        self._answered: dict[tuple[Address, int, int], int] = {}  # in which life

    def visit(
        self, message: Publish | Event, payload: bytes, seen: SeenEvent, zone: HeldZone
    ) -> dict[Address, int]:
        """Notify subscribers in a zone; those that are to answer, with their lives."""
        if not len(self._keeping.subscriptions):
            return {}
        only = None if self._has_only(zone) else zone.zone
        told: dict[Address, int] = {}
        for each in self._keeping.subscriptions.matching(seen.values, only):
            life, address = each.life, each.subscriber
            if told.get(address, -1) < life:
                told[address] = life
        stream, seq = message.stream, message.first_seq
        if self._answered:
            for address, life in list(told.items()):
                if self._answered.get((address, stream, seq), -1) >= life:
                    del told[address]
        by_life: dict[int, Notify] = {}
        for address, life in told.items():
            notify = by_life.get(life)
            if notify is None:
                notify = Notify(stream, seq, message.settled, message.age_us, life, payload)
                by_life[life] = notify
            self._mail.send(address, notify)
        self.count += len(told)
        return told

    def again(
        self, message: Publish | Event, payload: bytes, subscriber: Address, life: int, waited_us: int
    ) -> None:
        """Notify a subscriber that has not answered of an event that came some time ago."""
        age_us = message.age_us + waited_us
        notify = Notify(message.stream, message.first_seq, message.settled, age_us, life, payload)
        self._mail.send(subscriber, notify)

    def _has_only(self, zone: HeldZone) -> bool:
        """A peer with several zones, or with what it has not sent on yet, has others' subscriptions, too."""
        return self._keeping.is_settled and len(self._held.by_id) == 1

    def notified(self, subscriber: Address, event: EventName) -> None:
        """A subscriber has an event that was for one of its lives; a later one may want it, too."""
        if self._is_confirming:
            key = subscriber, event.stream, event.first_seq
            self._answered[key] = max(self._answered.get(key, 0), event.life)
            if len(self._answered) > ANSWERED_MAX:
                del self._answered[next(iter(self._answered))]
