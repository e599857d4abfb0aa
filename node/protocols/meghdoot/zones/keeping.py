"""What a peer keeps of others: the subscriptions of its zones, and copies whose mirror image is in them.

A subscription counts as installed when the zone's replicas and its mirror image have it (4.3); its subscriber
is told so then, and asks again until it is. Copies are for recovery alone: no event is held against them.

Zones change hands. What a peer has of a zone that is no longer its own goes to whoever has its point, and is
forgotten here when it has come there. So also what lay on the wrong side of a division is put right.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from operator import attrgetter

from node.core.peers.peer_pool import Address
from node.protocols.can.zone_table import Floats
from node.protocols.can.zones import Point, Zone
from node.protocols.meghdoot.layers import Mail, Overlay
from node.protocols.meghdoot.messages import Purpose, Store, StoreAt, Stored, Subscribed, Word
from node.protocols.meghdoot.parameters import Parameters
from node.protocols.meghdoot.space import Space, reflection
from node.protocols.meghdoot.subscriptions import Key, Packing, Subscription, Subscriptions
from node.protocols.meghdoot.zones.held_zones import HeldZones
from node.protocols.meghdoot.zones.mirror import copy_place
from node.protocols.meghdoot.zones.stores import Stores
from node.protocols.reachability.nodes import NodeHandle

ROWS_MAX = 1_000
REPLACED_MAX = 256
"""Copies that are placed anew at a time, at most; likewise subscriptions that are sent on."""
PENDING_MAX = 65_536
Waits = set[str | Address]
COPY = "copy"


@dataclass(slots=True)
class Installation:
    """A word that is not yet where it must be. waits: for replicas, and for the copy."""

    word: Word
    subscriber: Address
    until_us: int
    waits: Waits = field(default_factory=set)


@dataclass(slots=True)
class Copying:
    """What a replica was sent. waits: lots that it may not have; if not by then, all is sent again."""

    again_us: int
    waits: int = 0


class Keeping:
    """The stores of a peer. waits for `held` to say which zones are its own."""

    def __init__(
        self, parameters: Parameters, mail: Mail, space: Space, overlay: Overlay, held: HeldZones
    ) -> None:
        self.subscriptions = Subscriptions(space)
        self.copies = Subscriptions(space)
        self.packing = Packing(len(space.attributes))
        self.stores = Stores(mail, self.packing, parameters.wave_timeout_us)
        self._parameters = parameters
        self._mail = mail
        self.space = space
        self._overlay = overlay
        self._held = held
        self._installing: dict[Key, Installation] = {}
        self.answers: dict[Address, list[Word]] = {}
        self._placed: dict[Key, Point] = {}
        self._replicated: dict[NodeHandle, Copying] = {}
        self.is_settled = True  # nothing is where it does not belong
        self._settle_us = self._expire_us = 0  # when it is looked again
        self._zones: Sequence[Zone] = ()

    # --- Words of subscribers

    def take(self, message: Store) -> None:
        """Keep what somebody sent."""
        told = self.packing.unpack(message.subscriptions, self._mail.now_us)
        if message.purpose == Purpose.INSTALL:
            for each in told:
                self._install(each)
            return
        if message.purpose == Purpose.COPY:
            for each in told:
                self.copies.put(each)
        else:
            self.add(told)
        if message.purpose == Purpose.RECOVERED:
            self._copy_on(told)
        self._mail.send(message.address, Stored(message.number))

    def take_copy(self, message: StoreAt) -> None:
        """Keep a copy whose mirror image is here."""
        packed = self.packing.without_place(message.subscriptions)
        for each in self.packing.unpack(packed, self._mail.now_us):
            self._note_repeated(self.copies.get(each.key), each, message.address)
            self.copies.put(each)
        self._mail.send(message.address, Stored(message.number))

    def add(self, told: Iterable[Subscription]) -> None:
        """Keep subscriptions of zones, from whoever had them."""
        for each in told:
            self.subscriptions.put(each)
        self.is_settled = False

    def _install(self, told: Subscription) -> None:
        self._note_repeated(self.subscriptions.get(told.key), told, told.subscriber)
        self.subscriptions.put(told)
        known = self.subscriptions.get(told.key)
        if known is None or known.version != told.version:
            return  # it has said something else since
        self._put_where_it_must_be(told)

    def _note_repeated(self, known: Subscription | None, told: Subscription, asker: Address) -> None:
        """Who says a word again so soon may not have got the answer, as across a cut: it is found out by
        which way it is reached, and the next answer goes that way. known: what is known of it.
        """
        if known is None or known.version != told.version:
            return
        if told.refreshed_us - known.refreshed_us < self._parameters.refresh_us:
            self._mail.miss(asker)

    def _install_again(self, late: Installation) -> None:
        """Something that was sent for a word got lost, or the answer: its subscriber may wait for much longer
        until it says the word again.
        """
        key = late.subscriber, late.word.number
        del self._installing[key]
        known = self.subscriptions.get(key)
        if (
            known is not None
            and known.version == late.word.version
            and self._owns(self.space.point(known.ranges))
        ):
            self._put_where_it_must_be(known)

    def _put_where_it_must_be(self, told: Subscription) -> None:
        now_us = self._mail.now_us
        word = Word(told.number, told.version)
        under_way = self._installing.get(told.key)
        if under_way is not None and under_way.word == word:
            return  # what it waits for is on its way
        installation = Installation(word, told.subscriber, now_us + self._parameters.wave_timeout_us)
        self._installing.pop(told.key, None)
        self._installing[told.key] = installation
        if len(self._installing) > PENDING_MAX:
            del self._installing[next(iter(self._installing))]
        point = self.space.point(told.ranges)
        zone = self._held.containing(point)
        for replica in self._overlay.replicas(zone.zone) if zone else ():
            installation.waits.add(replica.address)
            done = partial(self._is_at, installation, replica.address)
            self.stores.send(replica.address, Purpose.REPLICA, (told,), done)
        place = self.copy_place(point)
        if place is not None:
            installation.waits.add(COPY)
            self._place_copy(told, place, partial(self._is_at, installation, COPY))
        self._confirm_if_installed(installation)

    def copy_place(self, point: Point) -> Point | None:
        """Where the copy of a subscription goes; None without mirror images."""
        if not self._parameters.mirror:
            return None
        return copy_place(point, self._own_zone)

    def _own_zone(self, point: Point) -> Zone | None:
        zone = self._held.containing(point)
        return None if zone is None else zone.zone

    def _place_copy(self, told: Subscription, place: Point, done: Callable[[], None]) -> None:
        """Send a copy to its place. Where that has become this peer's own meanwhile, it goes to another."""

        def arrived() -> None:
            if self._own_zone(place) is None:
                self._placed[told.key] = place
                done()
            elif (moved := self.copy_place(self.space.point(told.ranges))) is not None:
                self._place_copy(told, moved, done)

        self.stores.copy(place, told, arrived)

    def _is_at(self, installation: Installation, where: str | Address) -> None:
        installation.waits.discard(where)
        self._confirm_if_installed(installation)

    def _confirm_if_installed(self, installation: Installation) -> None:
        key = installation.subscriber, installation.word.number
        if not installation.waits and self._installing.get(key) is installation:
            del self._installing[key]
            self.answers.setdefault(installation.subscriber, []).append(installation.word)

    # --- Zones change hands

    def changed(self) -> None:
        """Zones are not as they were, of this peer or beside it."""
        zones = self._overlay.held()
        if zones != self._zones:
            self._zones, self.is_settled = zones, False
        owned = [zone for zone in zones if self._overlay.is_owner(zone)]
        copies = {replica for zone in owned for replica in self._overlay.replicas(zone)}
        if copies == self._replicated.keys():
            return
        self._replicated = {replica: each for replica, each in self._replicated.items() if replica in copies}
        for replica in sorted(copies - self._replicated.keys(), key=attrgetter("address")):
            self.copy_to(replica)

    def hand_over(self, zone: Zone, to: Address) -> None:
        """Send what belongs to a zone to the peer that has it now. It is kept until it has come there."""
        subscriptions = self.subscriptions.within(zone)
        self.stores.send(to, Purpose.RECOVERED, subscriptions, lambda: None)
        moved = [each for each in self.copies if not self._is_at_home(each)]
        self.stores.send(to, Purpose.COPY, moved, lambda: None)

    def _is_at_home(self, copy: Subscription) -> bool:
        """Whether its mirror image is in a zone of this peer, and it did not have to move here."""
        return self._held.containing(reflection(self.space.point(copy.ranges))) is not None

    def promote(self, zone: Zone) -> None:
        """A zone that another had is this peer's: copies of its subscriptions that are here are these now."""
        self.add(self.copies.within(zone))
        for copying in self._replicated.values():
            copying.waits, copying.again_us = copying.waits + 1, self._mail.now_us  # all of it, again

    def moved_to(self, zone: Zone, own: Zone) -> list[Subscription]:
        """Subscriptions in one of this peer's zones whose copies had to move to another zone."""
        return [
            each
            for each in self.subscriptions.within(own)
            if (point := self.space.point(each.ranges))
            and self._own_zone(reflection(point)) is not None
            and (place := self.copy_place(point)) is not None
            and zone.contains(place)
        ]

    def copy_to(self, replica: NodeHandle) -> None:
        """Send all that this peer's zones have to one that has copies of them."""
        self._replicated[replica] = copying = Copying(0)
        for held in self._held.by_id.values():
            self._copy(replica.address, copying, self.subscriptions.within(held.zone))

    def _copy(self, address: Address, copying: Copying, lot: list[Subscription]) -> None:
        def done() -> None:
            copying.waits -= 1

        copying.again_us = self._mail.now_us + self._parameters.wave_timeout_us
        if self.stores.send(address, Purpose.REPLICA, lot, done):
            copying.waits += 1

    def copied(self) -> Iterator[tuple[Zone, Address]]:
        """Zones of this peer, and replicas that have all that it has of them."""
        for held in self._held.by_id.values():
            for replica in self._overlay.replicas(held.zone) if self._overlay.is_owner(held.zone) else ():
                copying = self._replicated.get(replica)
                if copying is not None and not copying.waits:
                    yield held.zone, replica.address

    def is_own(self, zone: Zone) -> bool:
        """Whether this peer owns a zone that it holds, and is no replica."""
        return self._overlay.is_owner(zone)

    def is_copy(self, zone: Zone) -> bool:
        """Whether this peer holds a zone as a replica."""
        return zone in self._overlay.held() and not self._overlay.is_owner(zone)

    def _copy_on(self, told: Iterable[Subscription]) -> None:
        """What came to this peer's zones, to those with copies of them."""
        by_copy: dict[NodeHandle, list[Subscription]] = {}
        for each in told:
            held = self._held.containing(self.space.point(each.ranges))
            for replica in self._overlay.replicas(held.zone) if held else ():
                by_copy.setdefault(replica, []).append(each)
        for replica, lot in by_copy.items():
            if replica in self._replicated:
                self._copy(replica.address, self._replicated[replica], lot)

    def points_in(self, zone: Zone) -> Floats:
        """The points of subscriptions in a zone, a row for each dimension."""
        found: Floats = self.subscriptions.points()[:, self.subscriptions.rows_in(zone)]
        return found

    def _settle(self) -> None:
        """Send on what lies in no zone of this peer, and place copies anew whose place has changed."""
        self._settle_us = self._mail.now_us + self._parameters.retransmit_us
        moved = self.subscriptions.outside(self._overlay.held())
        for each in moved[:REPLACED_MAX]:
            self.stores.route(self.space.point(each.ranges), each, partial(self._forget, each))
        replaced = list(self._misplaced())
        for each, place in replaced[:REPLACED_MAX]:
            self._place_copy(each, place, lambda: None)
        self.is_settled = not moved and not replaced

    def _misplaced(self) -> Iterator[tuple[Subscription, Point]]:
        """Subscriptions of zones that this peer owns whose copies are elsewhere, and where they should be."""
        for each in self.subscriptions if self._parameters.mirror else ():
            point = self.space.point(each.ranges)
            place = self.copy_place(point) if self._owns(point) else None
            if place is not None and place != self._placed.get(each.key):
                yield each, place

    def _owns(self, point: Point) -> bool:
        zone = self._held.containing(point)
        return zone is not None and self._overlay.is_owner(zone.zone)

    def _forget(self, moved: Subscription) -> None:
        """Who has its point has it now. That may be this peer again: zones change hands on the way."""
        if self._own_zone(self.space.point(moved.ranges)) is not None:
            return
        known = self.subscriptions.get(moved.key)
        if known is not None and known.version == moved.version:
            self.subscriptions.remove(moved.key)
            self._placed.pop(moved.key, None)

    # --- Time

    def tick(self) -> None:
        """Forget what is over, and settle what lies wrong."""
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
        """Forget those of whom nobody has spoken for long."""
        for late in self.subscriptions.expire(now_us - self._parameters.expire_us):
            self._placed.pop(late.key, None)
        self.copies.expire(now_us - self._parameters.expire_us)

    def flush(self) -> None:
        """Tell subscribers what is installed."""
        for address in list(self.answers):
            self.flush_to(address)

    def flush_to(self, address: Address) -> None:
        """Tell one of them, to whom something goes anyway."""
        words = self.answers.pop(address, ())
        for first in range(0, len(words), ROWS_MAX):
            self._mail.send(address, Subscribed(tuple(words[first : first + ROWS_MAX])))
