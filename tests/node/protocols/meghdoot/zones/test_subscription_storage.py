"""A subscription counts as installed only when its copy is at another peer, through all changes of zones."""

from types import SimpleNamespace

import pytest

from node.core.content.content import ContentAttribute
from node.protocols.can.claims import ZoneClaims
from node.protocols.can.zones import Zone
from node.protocols.meghdoot.collected_answers import CollectedAnswers
from node.protocols.meghdoot.messages import Store, StoreAt, StorePurpose, Subscribed
from node.protocols.meghdoot.parameters import MeghdootParameters
from node.protocols.meghdoot.space import Space
from node.protocols.meghdoot.subscriptions import SubscriptionUpdate, version_of
from node.protocols.meghdoot.zones.held_zones import HeldZones
from node.protocols.meghdoot.zones.subscription_storage import SubscriptionStorage
from node.protocols.reachability.nodes import NodeHandle

SPACE = Space((ContentAttribute("price", "real", 0.0, 100.0),))
FIRST, BESIDE, LAST = (Zone((low, 0.0), (high, 1.0)) for low, high in ((0.0, 0.5), (0.5, 0.75), (0.75, 1.0)))
OWN, ASKER, OTHER = 1, 2, 3


class Peer:
    """A peer with some zones, and its messages. Its subscriptions have no replicas."""

    def __init__(self, *zones):
        self.sent, self.routed, self.missed = [], [], []
        self.mail = SimpleNamespace(
            own=OWN,
            now_us=0,
            late_us=0,
            send=lambda to, message: self.sent.append((to, message)),
            route=lambda message: self.routed.append((message, self.point_of(message))),
            miss=self.missed.append,
        )
        self.claims = ZoneClaims(NodeHandle(0, OWN), SPACE.dimensions)
        self.claims.set_own(dict.fromkeys(zones, 0))
        self.held = HeldZones()
        self.held.watch(self.claims)
        self.answers = CollectedAnswers(self.mail)
        self.keeping = SubscriptionStorage(
            MeghdootParameters(), self.mail, SPACE, self.held, answers=self.answers
        )

    def point_of(self, message):
        if isinstance(message, StoreAt):
            return self.keeping.packing.place(message.subscriptions)
        [told] = self.keeping.packing.unpack(message.subscriptions, self.mail.now_us)
        return SPACE.point(told.ranges)

    def gets(self, *zones):
        """Set the zones that it has from now on."""
        self.claims.set_own(dict.fromkeys(zones, 0))
        self.keeping.changed()

    def asked_for(self, low, high):
        """Subscribe to a range of prices and return the place to which the copy is routed."""
        self.keeping.take(Store(ASKER, 0, StorePurpose.INSTALL, self.packed(low, high)))
        return self.routed[-1][1]

    def packed(self, low, high):
        """Return a subscription of this subscriber, as bytes."""
        told = SubscriptionUpdate(ASKER, 7, version_of(1, 0), True, self.mail.now_us, ((low, high),))
        return self.keeping.packing.pack((told,), self.mail.now_us)

    def is_stored(self):
        """Confirm the last routed copy; return whether the subscription now counts as installed."""
        self.keeping.stores.stored(self.routed[-1][0].number)
        self.answers.flush()
        return any(isinstance(message, Subscribed) for _, message in self.sent)


def test_a_subscription_is_not_installed_if_its_copy_arrives_at_the_same_peer():
    """Deliver a copy that waited for a failed peer, whose zone this peer has taken over."""
    peer = Peer(FIRST)
    assert BESIDE.contains(peer.asked_for(10.0, 60.0))
    peer.gets(FIRST, BESIDE)
    assert not peer.is_stored()
    assert LAST.contains(peer.routed[-1][1])
    assert peer.is_stored()


def test_a_copy_is_placed_again_when_its_place_becomes_this_peers():
    peer = Peer(FIRST)
    peer.asked_for(10.0, 60.0)
    assert peer.is_stored()
    peer.gets(FIRST, BESIDE)
    peer.keeping.tick()
    assert LAST.contains(peer.routed[-1][1])
    peer.is_stored()
    sent = len(peer.routed)
    peer.mail.now_us = 10_000_000
    peer.keeping.tick()
    assert (len(peer.routed), peer.keeping.is_settled) == (sent, True)


@pytest.mark.parametrize(("then", "kept"), [((LAST,), []), ((FIRST, LAST), [7])])
def test_forwarded_subscriptions_are_forgotten_unless_they_return_with_their_zone(then, kept):
    """Deliver subscriptions that waited for a failed peer, whose zone this peer has taken over."""
    peer = Peer(FIRST)
    peer.asked_for(10.0, 60.0)
    peer.gets(LAST)
    peer.keeping.tick()
    assert FIRST.contains(peer.routed[-1][1])
    peer.gets(*then)
    peer.is_stored()
    assert [each.number for each in peer.keeping.subscriptions] == kept


@pytest.mark.parametrize(("after_us", "is_missed"), [(2_000_000, True), (31_000_000, False)])
def test_an_early_repetition_of_a_subscription_or_copy_may_get_no_answer(after_us, is_missed):
    peer, copies = Peer(FIRST), Peer(LAST)
    for now_us in (0, after_us):
        peer.mail.now_us = copies.mail.now_us = now_us
        peer.asked_for(10.0, 60.0)
        packed = copies.keeping.packing.at((0.8, 0.1), copies.packed(10.0, 80.0))
        copies.keeping.take_copy(StoreAt(OTHER, now_us, packed))
    assert peer.missed == [ASKER] * is_missed
    assert copies.missed == [OTHER] * is_missed
