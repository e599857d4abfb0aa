"""Storage of others' data at a peer: subscriptions of its zones, and copies whose mirror images are in them.

A subscription is installed when the zone's replicas and its mirror image have it (4.3); then its subscriber
is notified, which repeats its request until then. Copies serve only recovery: events are not matched against
them.

Zones change owners. Data of a zone that a peer no longer holds go to the peers that have their points, and
are forgotten here once they have arrived. This also moves subscriptions from the wrong side of a healed
partition.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter

from node.core.peers.peer_pool import Address
from node.protocols.can.zone_table import Floats
from node.protocols.can.zones import Point, Zone
from node.protocols.meghdoot.collected_answers import CollectedAnswers
from node.protocols.meghdoot.messages import Store, StoreAt, Stored, StorePurpose, Subscribed, UpdateName
from node.protocols.meghdoot.parameters import MeghdootParameters
from node.protocols.meghdoot.space import Space, reflection
from node.protocols.meghdoot.subscriptions import Key, Packing, SubscriptionStore, SubscriptionUpdate
from node.protocols.meghdoot.transport import OverlayTransport
from node.protocols.meghdoot.zones.held_zones import HeldZones
from node.protocols.meghdoot.zones.mirror import copy_place
from node.protocols.meghdoot.zones.stores import SubscriptionBatches
from node.protocols.reachability.nodes import NodeHandle

REPLACED_MAX = 256
"""Maximum of copies that are placed again, and of subscriptions that are moved, at a time."""
PENDING_MAX = 65_536
PendingCopies = set[str | Address]
COPY = "copy"


@dataclass(slots=True)
class Installation:
    """A subscription update that is not installed yet. waits: for replicas, and for the copy."""

    word: UpdateName
    subscriber: Address
    until_us: int
    waits: PendingCopies = field(default_factory=set)


@dataclass(slots=True)
class Copying:
    """Transfer to a replica. waits: batches that it may not have; after `again_us` all are sent again."""

    again_us: int
    waits: int = 0


class SubscriptionStorage:
    """The stores of a peer. `held` determines which zones are its own."""

    def __init__(
        self,
        parameters: MeghdootParameters,
        mail: OverlayTransport,
        space: Space,
        held: HeldZones,
        *,
        answers: CollectedAnswers,
    ) -> None:
        self.subscriptions = SubscriptionStore(space)
        self.copies = SubscriptionStore(space)
        self.packing = Packing(len(space.attributes))
        self.stores = SubscriptionBatches(mail, self.packing, parameters.wave_timeout_us)
        self._parameters = parameters
        self._mail = mail
        self.space = space
        self._held = held
        self._installing: dict[Key, Installation] = {}
        self._answers = answers
        self._placed: dict[Key, Point] = {}
        self._replicas: Sequence[NodeHandle] = ()  # those that `_replicated` is for
        self._replicated: dict[NodeHandle, Copying] = {}
        self.is_settled = True  # whether all data are where they belong
        self._settle_us = self._expire_us = 0  # times of the next checks
        self._zones: Sequence[Zone] = ()

    # --- Updates of subscribers

    def take(self, message: Store) -> None:
        """Store received subscriptions."""
        updates = self.packing.unpack(message.subscriptions, self._mail.now_us)
        if message.purpose == StorePurpose.INSTALL:
            for each in updates:
                self._install(each)
            return
        if message.purpose == StorePurpose.COPY:
            for each in updates:
                self.copies.put(each)
        else:
            self.add(updates)
        if message.purpose == StorePurpose.RECOVERED:
            self._copy_to_replicas(updates)
        self._mail.send(message.address, Stored(message.number))

    def take_copy(self, message: StoreAt) -> None:
        """Store a copy whose mirror image is here."""
        packed = self.packing.without_place(message.subscriptions)
        for each in self.packing.unpack(packed, self._mail.now_us):
            self._note_repeated(self.copies.get(each.key), each, message.address)
            self.copies.put(each)
        self._mail.send(message.address, Stored(message.number))

    def add(self, updates: Iterable[SubscriptionUpdate]) -> None:
        """Store subscriptions of zones, from any peer."""
        for each in updates:
            self.subscriptions.put(each)
        self.is_settled = False

    def _install(self, update: SubscriptionUpdate) -> None:
        self._note_repeated(self.subscriptions.get(update.key), update, update.subscriber)
        self.subscriptions.put(update)
        known = self.subscriptions.get(update.key)
        if known is None or known.version != update.version:
            return  # outdated
        self._start_installation(update)

    def _note_repeated(
        self, known: SubscriptionUpdate | None, update: SubscriptionUpdate, asker: Address
    ) -> None:
        """Probe the sender of an early repetition, which may have missed the answer, as across a cut.

        The next answer then takes a way that works. known: the stored update.
        """
        if known is None or known.version != update.version:
            return
        if update.refreshed_us - known.refreshed_us < self._parameters.refresh_us:
            self._mail.miss(asker)

    def _install_again(self, late: Installation) -> None:
        """Repeat the installation of an update after a message for it was lost.

        Otherwise its subscriber might wait much longer until it repeats the update.
        """
        key = late.subscriber, late.word.number
        del self._installing[key]
        known = self.subscriptions.get(key)
        if (
            known is not None
            and known.version == late.word.version
            and self._owns(self.space.point(known.ranges))
        ):
            self._start_installation(known)

    def _start_installation(self, update: SubscriptionUpdate) -> None:
        now_us = self._mail.now_us
        word = UpdateName(update.number, update.version)
        under_way = self._installing.get(update.key)
        if under_way is not None and under_way.word == word:
            return  # already in progress
        installation = Installation(word, update.subscriber, now_us + self._parameters.wave_timeout_us)
        self._installing.pop(update.key, None)
        self._installing[update.key] = installation
        if len(self._installing) > PENDING_MAX:
            del self._installing[next(iter(self._installing))]
        point = self.space.point(update.ranges)
        zone = self._held.containing(point)
        for replica in self._held.replicas if zone else ():
            installation.waits.add(replica.address)
            done = partial(self._has_arrived, installation, replica.address)
            self.stores.send(replica.address, StorePurpose.REPLICA, (update,), done)
        place = self.copy_place(point)
        if place is not None:
            installation.waits.add(COPY)
            self._place_copy(update, place, partial(self._has_arrived, installation, COPY))
        self._confirm_if_installed(installation)

    def copy_place(self, point: Point) -> Point | None:
        """Return the place of a subscription's copy; None without mirror images."""
        if not self._parameters.mirror:
            return None
        return copy_place(point, self._own_zone)

    def _own_zone(self, point: Point) -> Zone | None:
        zone = self._held.containing(point)
        return None if zone is None else zone.zone

    def _place_copy(self, update: SubscriptionUpdate, place: Point, done: Callable[[], None]) -> None:
        """Send a copy to its place; if this peer owns that on arrival, send it to another place."""

        def arrived() -> None:
            if self._own_zone(place) is None:
                self._placed[update.key] = place
                done()
            elif (moved := self.copy_place(self.space.point(update.ranges))) is not None:
                self._place_copy(update, moved, done)

        self.stores.copy(place, update, arrived)

    def _has_arrived(self, installation: Installation, where: str | Address) -> None:
        installation.waits.discard(where)
        self._confirm_if_installed(installation)

    def _confirm_if_installed(self, installation: Installation) -> None:
        key = installation.subscriber, installation.word.number
        if not installation.waits and self._installing.get(key) is installation:
            del self._installing[key]
            self._answers.add(installation.subscriber, Subscribed, installation.word)

    # --- Changes of zones

    def changed(self) -> None:
        """Process a change of zones of this peer or its neighbours."""
        zones = self._held.zones
        if zones != self._zones:
            self._zones, self.is_settled = zones, False
        replicas = self._held.replicas if any(map(self.is_own, zones)) else ()
        if replicas is self._replicas:
            return
        self._replicas, copies = replicas, set(replicas)
        self._replicated = {replica: each for replica, each in self._replicated.items() if replica in copies}
        for replica in sorted(copies - self._replicated.keys(), key=attrgetter("address")):
            self.copy_to(replica)

    def hand_over(self, zone: Zone, to: Address) -> None:
        """Send a zone's data to the peer that has it now; they are kept until they have arrived."""
        subscriptions = self.subscriptions.within(zone)
        self.stores.send(to, StorePurpose.RECOVERED, subscriptions, lambda: None)
        moved = [each for each in self.copies if not self._is_at_home(each)]
        self.stores.send(to, StorePurpose.COPY, moved, lambda: None)

    def _is_at_home(self, copy: SubscriptionUpdate) -> bool:
        """Return whether the copy's mirror image is in a zone of this peer; otherwise the copy had to move
        here.
        """
        return self._held.containing(reflection(self.space.point(copy.ranges))) is not None

    def promote(self, zone: Zone) -> None:
        """Make the copies of a zone's subscriptions its subscriptions, since this peer took the zone over."""
        self.add(self.copies.within(zone))
        for copying in self._replicated.values():
            copying.waits, copying.again_us = copying.waits + 1, self._mail.now_us  # sends everything again

    def moved_to(self, zone: Zone, own: Zone) -> list[SubscriptionUpdate]:
        """Return subscriptions of one of this peer's zones whose copies had to move to the given zone."""
        return [
            each
            for each in self.subscriptions.within(own)
            if (point := self.space.point(each.ranges))
            and self._own_zone(reflection(point)) is not None
            and (place := self.copy_place(point)) is not None
            and zone.contains(place)
        ]

    def copy_to(self, replica: NodeHandle) -> None:
        """Send all data of this peer's zones to a replica."""
        self._replicated[replica] = copying = Copying(0)
        for held in self._held.by_id.values():
            self._copy(replica.address, copying, self.subscriptions.within(held.zone))

    def _copy(self, address: Address, copying: Copying, batch: list[SubscriptionUpdate]) -> None:
        def done() -> None:
            copying.waits -= 1

        copying.again_us = self._mail.now_us + self._parameters.wave_timeout_us
        if self.stores.send(address, StorePurpose.REPLICA, batch, done):
            copying.waits += 1

    def copied(self) -> Iterator[tuple[Zone, Address]]:
        """Yield zones of this peer with the replicas that have all their data."""
        for held in self._held.by_id.values():
            for replica in self._held.replicas if self._held.is_owner(held.zone) else ():
                copying = self._replicated.get(replica)
                if copying is not None and not copying.waits:
                    yield held.zone, replica.address

    def is_own(self, zone: Zone) -> bool:
        """Return whether this peer owns a zone that it holds, rather than replicates it."""
        return self._held.is_owner(zone)

    def is_copy(self, zone: Zone) -> bool:
        """Return whether this peer replicates a zone."""
        return zone in self._held.zones and not self._held.is_owner(zone)

    def _copy_to_replicas(self, updates: Iterable[SubscriptionUpdate]) -> None:
        """Forward subscriptions of this peer's zones to the replicas."""
        by_copy: dict[NodeHandle, list[SubscriptionUpdate]] = {}
        for each in updates:
            held = self._held.containing(self.space.point(each.ranges))
            for replica in self._held.replicas if held else ():
                by_copy.setdefault(replica, []).append(each)
        for replica, batch in by_copy.items():
            if replica in self._replicated:
                self._copy(replica.address, self._replicated[replica], batch)

    def points_in(self, zone: Zone) -> Floats:
        """Return the points of subscriptions in a zone, one row per dimension."""
        found: Floats = self.subscriptions.points()[:, self.subscriptions.rows_in(zone)]
        return found

    def _settle(self) -> None:
        """Move subscriptions that lie in no zone of this peer, and copies whose place has changed."""
        self._settle_us = self._mail.now_us + self._parameters.retransmit_us
        moved = self.subscriptions.outside(self._held.zones)
        for each in moved[:REPLACED_MAX]:
            self.stores.route(each, partial(self._forget, each))
        replaced = list(self._misplaced())
        for each, place in replaced[:REPLACED_MAX]:
            self._place_copy(each, place, lambda: None)
        self.is_settled = not moved and not replaced

    def _misplaced(self) -> Iterator[tuple[SubscriptionUpdate, Point]]:
        """Yield subscriptions of own zones whose copies are elsewhere, and their correct places."""
        for each in self.subscriptions if self._parameters.mirror else ():
            point = self.space.point(each.ranges)
            place = self.copy_place(point) if self._owns(point) else None
            if place is not None and place != self._placed.get(each.key):
                yield each, place

    def _owns(self, point: Point) -> bool:
        zone = self._held.containing(point)
        return zone is not None and self._held.is_owner(zone.zone)

    def _forget(self, moved: SubscriptionUpdate) -> None:
        """Forget a moved subscription, unless this peer has its point again."""
        if self._own_zone(self.space.point(moved.ranges)) is not None:
            return
        known = self.subscriptions.get(moved.key)
        if known is not None and known.version == moved.version:
            self.subscriptions.remove(moved.key)
            self._placed.pop(moved.key, None)

    # --- Time

    def tick(self) -> None:
        """Repeat what is late, move misplaced data, and forget expired data."""
        now_us = self._mail.now_us
        said_by_us = now_us - self._mail.late_us
        self.stores.tick()
        for late in [each for each in self._installing.values() if each.until_us <= said_by_us]:
            self._install_again(late)
        for replica, copying in list(self._replicated.items()):
            if copying.waits and copying.again_us <= now_us:
                self.copy_to(replica)
        if not self.is_settled and self._settle_us <= now_us:
            self._settle()
        if self._expire_us <= now_us:
            self._expire_us = now_us + self._parameters.retransmit_us
            self._expire(now_us)

    def _expire(self, now_us: int) -> None:
        """Forget subscriptions that were not repeated for `expire_us`."""
        for late in self.subscriptions.expire(now_us - self._parameters.expire_us):
            self._placed.pop(late.key, None)
        self.copies.expire(now_us - self._parameters.expire_us)
