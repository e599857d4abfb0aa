"""Meghdoot's layers of one peer, and the dispatch of messages and upcalls of CAN to them."""

from collections.abc import Callable
from typing import Any

from node.core.content.content import ContentAttribute
from node.core.peers.peer_pool import Address
from node.protocols.can.layers import Split
from node.protocols.can.messages import Join
from node.protocols.can.replicas import REPLICAS_MAX
from node.protocols.can.zones import Point, Zone
from node.protocols.meghdoot import messages as wire
from node.protocols.meghdoot.admission import halving_cut, visiting_both
from node.protocols.meghdoot.collected_answers import CollectedAnswers
from node.protocols.meghdoot.parameters import MeghdootParameters
from node.protocols.meghdoot.publishing.event import EventReader
from node.protocols.meghdoot.publishing.notification import EventSpread, Notification
from node.protocols.meghdoot.publishing.propagation import Propagation
from node.protocols.meghdoot.publishing.publisher import MeghdootPublisher
from node.protocols.meghdoot.publishing.waves import Waves
from node.protocols.meghdoot.space import Space
from node.protocols.meghdoot.subscriber import Deliver, Interest, MeghdootSubscriber
from node.protocols.meghdoot.transport import OverlayTransport
from node.protocols.meghdoot.zones.held_zones import HeldZones
from node.protocols.meghdoot.zones.load import KnownLoads
from node.protocols.meghdoot.zones.recovery import FIRST_NUMBER, ZoneRecovery
from node.protocols.meghdoot.zones.subscription_storage import SubscriptionStorage
from node.protocols.reachability.nodes import NodeHandle


class Broker:
    """All layers of one peer, as the application on its overlay (`can.layers.CanApplication`).

    life: number of earlier starts of the peer.
    """

    def __init__(
        self,
        parameters: MeghdootParameters,
        attributes: tuple[ContentAttribute, ...],
        mail: OverlayTransport,
        *,
        life: int,
        interest: Interest,
        deliver: Deliver,
    ) -> None:
        self.space = space = Space(attributes)
        self.held = HeldZones()
        self.answers = answers = CollectedAnswers(mail)
        self.waves = Waves(parameters, mail, answers)
        self.keeping = SubscriptionStorage(parameters, mail, space, self.held, answers=answers)
        self.notification = Notification(parameters, mail, self.keeping, self.held)
        self.recovery = ZoneRecovery(parameters, mail, space, keeping=self.keeping, waves=self.waves)
        self.propagation = Propagation(parameters, mail, self.held, self.waves)
        self.recovery.propagation = self.propagation
        self.load = KnownLoads(parameters, mail, self.held, self.keeping.subscriptions)
        self._reader = EventReader(space)
        self.publisher = MeghdootPublisher(parameters, mail, self._reader, life)
        self.subscriber = MeghdootSubscriber(
            parameters, mail, space, self._reader, answers, life=life, interest=interest, deliver=deliver
        )
        self._mail, self._parameters = mail, parameters
        self._takes: dict[type, Callable[[Address, Any], None]] = {
            wire.Event: self._event,
            wire.Notify: self.subscriber.notify,
            wire.Notified: self._notified,
            wire.Confirm: self._confirm,
            wire.RootConfirm: self._root_confirm,
            wire.Undelivered: lambda sender, message: self.publisher.undelivered(message),
            wire.Store: lambda sender, message: self.keeping.take(message),
            wire.StoreAt: lambda sender, message: self.keeping.take_copy(message),
            wire.Stored: lambda sender, message: self.keeping.stores.stored(message.number),
            wire.Subscribed: lambda sender, message: self.subscriber.confirmed(message.words),
            wire.Publish: self._publish,
            wire.Recover: lambda sender, message: self.recovery.take(message, sender),
            wire.Handed: lambda sender, message: self.recovery.doubts.handed(message),
            wire.Load: self.load.load_received,
            wire.RecoverAt: lambda sender, message: self.recovery.at(message),
            wire.Climb: self._climb,
        }

    # --- Messages

    def point_of(self, message: Any) -> Point:
        """See `can.layers.CanApplication`."""
        match message:
            case wire.Publish():
                return self._reader.read(bytes(message.payload)).point
            case wire.Store():
                [first, *_] = self.keeping.packing.unpack(message.subscriptions, self._mail.now_us)
                return self.space.point(first.ranges)
            case wire.StoreAt():
                return self.keeping.packing.place(message.subscriptions)
            case wire.RecoverAt():
                return self.recovery.corner_of(message)
        raise TypeError(f"{type(message).__name__} is not routed")

    def deliver(self, message: Any) -> None:
        """See `can.layers.CanApplication`."""
        self.receive(self._mail.own, message)

    def receive(self, sender: Address, message: Any) -> None:
        """See `can.layers.CanApplication`; other messages are ignored."""
        take = self._takes.get(type(message))
        if take is not None:
            take(sender, message)

    def _climb(self, sender: Address, message: wire.Climb) -> None:
        join = self.load.climb(sender, message)
        if join is not None:
            self._mail.can.admit(join)

    def _publish(self, sender: Address, message: wire.Publish) -> None:
        spread = self._read_event(message)
        self.propagation.begin(spread, spread.seen.point, message.address)

    def _event(self, sender: Address, message: wire.Event) -> None:
        self.propagation.take(self._read_event(message), sender, message.zone)

    def _read_event(self, message: wire.Publish | wire.Event) -> EventSpread:
        payload = message.payload if type(message.payload) is bytes else bytes(message.payload)
        seen = self._reader.read(payload)
        self.load.visited(seen)
        return EventSpread(message, payload, seen, self.notification, self.recovery.doubts)

    def _confirm(self, sender: Address, message: wire.Confirm) -> None:
        for visited in message.visits:
            self.waves.confirmed(visited)

    def _root_confirm(self, sender: Address, message: wire.RootConfirm) -> None:
        for visited in message.visits:
            if visited.first_seq >= FIRST_NUMBER:
                self.recovery.confirmed(visited)
            else:
                self.publisher.confirmed(visited)

    def _notified(self, sender: Address, message: wire.Notified) -> None:
        for event in message.events:
            self.notification.notified(sender, event)
            self.waves.notified(sender, event)
            self.publisher.notified(sender, event)

    # --- Zones

    def split(self, zone: Zone) -> Split:
        """See `can.layers.CanApplication`: halve the subscriptions, or the longest side if there are none.

        "copy" if the rule says so (`KnownLoads.is_better_copied`), or if no cut exists.
        """
        load, points = self.load, self.keeping.points_in(zone)
        events = load.recent_points(zone)
        cut = halving_cut(zone, points, events)
        has_work = self._parameters.join == "by-load" and load.load > 0
        has_room = len(self._mail.can.claims.own.replicas) < REPLICAS_MAX
        is_better_copied = cut is None or load.is_better_copied(visiting_both(events, cut))
        load.halve()
        return "copy" if has_work and has_room and is_better_copied else cut

    def sends_on(self, join: Join) -> bool:
        """See `can.layers.CanApplication`: forward to a loaded peer; while no load is known, to any point."""
        if self._parameters.join != "by-load" or self.load.sends_on(join):
            return self._parameters.join == "by-load"
        if not self.load.most:
            self._mail.route(join)
            return True
        return False

    def is_shared(self, message: Any) -> bool:
        """See `can.layers.CanApplication`: an event may start at a replica of its point's zone."""
        return isinstance(message, wire.Publish)

    def zones_changed(self) -> None:
        """See `can.layers.CanApplication`."""
        self.held.changed()
        self.keeping.changed()

    def gave(self, zone: Zone, to: NodeHandle) -> None:
        """See `can.layers.CanApplication`."""
        self.held.changed()
        self.recovery.doubts.give(zone, to.address)

    def gained(self, zone: Zone, giver: NodeHandle | None) -> None:
        """See `can.layers.CanApplication`. A replica has no giver that confirms its data as complete."""
        if giver is not None and giver != self._mail.can.own:
            self.recovery.doubts.given_by_another(zone)
        elif zone.volume < 1.0:
            self.keeping.promote(zone)
            self.recovery.doubts.taken_over(zone)

    def resumed(self) -> None:
        """Mark this peer's zones as in doubt, since others may have taken them over while it did not run."""
        zones = [each.zone for each in self.held.by_id.values() if self.keeping.is_own(each.zone)]
        self.recovery.doubts.resumed(zone for zone in zones if zone.volume < 1.0)

    # --- Time

    def tick(self) -> None:
        """Execute due work of all layers."""
        self.waves.tick()
        self.keeping.tick()
        self.recovery.tick()
        self.publisher.tick()
        self.subscriber.tick()
        self.load.tick()
