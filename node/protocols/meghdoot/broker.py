"""Meghdoot's layers of one peer, on any overlay, and the dispatch of messages to them."""

from collections.abc import Callable
from typing import Any

from node.core.content.content import ContentAttribute
from node.core.peers.peer_pool import Address
from node.core.specification import PlannedSubscription as Asked
from node.protocols.can.zones import Point, Zone
from node.protocols.meghdoot.layers import MessageTransport, Overlay
from node.protocols.meghdoot.messages import (
    Confirm,
    Event,
    Handed,
    Load,
    Notified,
    Notify,
    Publish,
    Recover,
    RecoverAt,
    RootConfirm,
    Store,
    StoreAt,
    Stored,
    Subscribed,
    Undelivered,
)
from node.protocols.meghdoot.parameters import MeghdootParameters
from node.protocols.meghdoot.publishing.event import EventReader
from node.protocols.meghdoot.publishing.notification import EventSpread, Notification
from node.protocols.meghdoot.publishing.propagation import Propagation
from node.protocols.meghdoot.publishing.publisher import MeghdootPublisher
from node.protocols.meghdoot.publishing.waves import Waves
from node.protocols.meghdoot.space import Space
from node.protocols.meghdoot.subscriber import Deliver, Interest, MeghdootSubscriber
from node.protocols.meghdoot.zones.held_zones import HeldZones
from node.protocols.meghdoot.zones.load import KnownLoads
from node.protocols.meghdoot.zones.recovery import FIRST_NUMBER, ZoneRecovery
from node.protocols.meghdoot.zones.subscription_storage import SubscriptionStorage


class Broker:
    """All layers of one peer. life: number of earlier starts of the peer. takes: handlers by message type."""

    def __init__(
        self,
        parameters: MeghdootParameters,
        attributes: tuple[ContentAttribute, ...],
        mail: MessageTransport,
        overlay: Overlay,
        *,
        life: int,
        interest: Interest,
        deliver: Deliver,
    ) -> None:
        self.space = space = Space(attributes)
        self.held = HeldZones(overlay)
        self.waves = Waves(parameters, mail)
        self.keeping = SubscriptionStorage(parameters, mail, space, overlay, self.held)
        self.notification = Notification(parameters, mail, self.keeping, self.held)
        self.recovery = ZoneRecovery(parameters, mail, space, keeping=self.keeping, waves=self.waves)
        self.propagation = Propagation(parameters, mail, self.held, self.waves)
        self.recovery.propagation = self.propagation
        self.load = KnownLoads(parameters, mail, self.held, self.keeping.subscriptions)
        self._reader = EventReader(space)
        self.publisher = MeghdootPublisher(parameters, mail, self._reader, life)
        self.subscriber = MeghdootSubscriber(
            parameters, mail, space, self._reader, life=life, interest=interest, deliver=deliver
        )
        self._mail = mail
        self._answers = self.waves.answers, self.subscriber.answers, self.keeping.answers
        self.takes: dict[type, Callable[[Address, Any], None]] = {
            Event: self._event,
            Notify: self.subscriber.notify,
            Notified: self._notified,
            Confirm: self._confirm,
            RootConfirm: self._root_confirm,
            Undelivered: lambda sender, message: self.publisher.undelivered(message),
            Store: lambda sender, message: self.keeping.take(message),
            StoreAt: lambda sender, message: self.keeping.take_copy(message),
            Stored: lambda sender, message: self.keeping.stores.stored(message.number),
            Subscribed: lambda sender, message: self.subscriber.confirmed(message.words),
            Publish: self._publish,
            Recover: lambda sender, message: self.recovery.take(message, sender),
            Handed: lambda sender, message: self.recovery.doubts.handed(message),
            Load: self.load.heard,
            RecoverAt: lambda sender, message: self.recovery.at(message),
        }

    # --- Requests of this peer

    def subscribe(self, asked: Asked) -> None:
        """Start or end a subscription."""
        self.subscriber.subscribe(asked)

    def publish(self, stream: int, payload: bytes) -> int:
        """Publish an event; return its number."""
        return self.publisher.publish(stream, payload)

    # --- Messages

    def point_of(self, message: Any) -> Point:
        """Return the destination of a routed message."""
        match message:
            case Publish():
                return self._reader.read(bytes(message.payload)).point
            case Store():
                [first, *_] = self.keeping.packing.unpack(message.subscriptions, self._mail.now_us)
                return self.space.point(first.ranges)
            case StoreAt():
                return self.keeping.packing.place(message.subscriptions)
            case RecoverAt():
                return self.recovery.corner_of(message)
        raise TypeError(f"{type(message).__name__} is not routed")

    def receive(self, sender: Address, message: Any) -> None:
        """Process a message from any peer, or one that was routed to this peer's zone."""
        self.takes[type(message)](sender, message)

    def _publish(self, sender: Address, message: Publish) -> None:
        spread = self._read_event(message)
        self.propagation.begin(spread, spread.seen.point, message.address)

    def _event(self, sender: Address, message: Event) -> None:
        self.propagation.take(self._read_event(message), sender, message.zone)

    def _read_event(self, message: Publish | Event) -> EventSpread:
        payload = message.payload if type(message.payload) is bytes else bytes(message.payload)
        seen = self._reader.read(payload)
        self.load.visited(seen)
        return EventSpread(message, payload, seen, self.notification, self.recovery.doubts)

    def _confirm(self, sender: Address, message: Confirm) -> None:
        for visited in message.visits:
            self.waves.confirmed(visited)

    def _root_confirm(self, sender: Address, message: RootConfirm) -> None:
        for visited in message.visits:
            if visited.first_seq >= FIRST_NUMBER:
                self.recovery.confirmed(visited)
            else:
                self.publisher.confirmed(visited)

    def _notified(self, sender: Address, message: Notified) -> None:
        for event in message.events:
            self.notification.notified(sender, event)
            self.waves.notified(sender, event)
            self.publisher.notified(sender, event)

    # --- Zones

    def changed(self) -> None:
        """Process a change of zones in the overlay."""
        self.held.changed()
        self.keeping.changed()

    def gave(self, zone: Zone, to: Address) -> None:
        """Send all data of a zone to the peer that has it now."""
        self.held.changed()
        self.recovery.doubts.give(zone, to)

    def gained(self, zone: Zone, giver: Address | None) -> None:
        """Process that this peer has a zone now; without a giver it was taken over, or is new."""
        if giver is not None:
            self.recovery.doubts.given_by_another(zone)
        elif zone.volume < 1.0:
            self.keeping.promote(zone)
            self.recovery.doubts.taken_over(zone)

    def woke(self) -> None:
        """Mark this peer's zones as in doubt, since others may have taken them over while it did not run."""
        zones = [each.zone for each in self.held.by_id.values() if self.keeping.is_own(each.zone)]
        self.recovery.doubts.woke(zone for zone in zones if zone.volume < 1.0)

    # --- Time

    def tick(self) -> None:
        """Execute due work of all layers."""
        self.waves.tick()
        self.keeping.tick()
        self.recovery.tick()
        self.publisher.tick()
        self.subscriber.tick()
        self.load.tick()

    @property
    def has_answers(self) -> bool:
        """Whether `flush` has something to send."""
        return any(self._answers)

    def flush(self) -> None:
        """Send all collected answers."""
        for answers in self._answers:
            answers.flush()

    def flush_to(self, address: Address) -> None:
        """Send the answers collected for a peer, together with other messages to it."""
        for answers in self._answers:
            if answers:
                answers.flush_to(address)
