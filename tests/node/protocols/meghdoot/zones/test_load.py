"""Joining peers are placed at loaded peers, and split or copy their zones (4.1, 4.2)."""

from random import Random
from types import SimpleNamespace

import numpy as np
import pytest

from node.core.content import stock_quotes
from node.core.content.content import ContentAttribute
from node.core.content.event_values import EventValues
from node.core.content.subscription_draws import SubscriptionDraws
from node.protocols.can.zones import Zone, whole_space
from node.protocols.meghdoot.admission import halving_cut
from node.protocols.meghdoot.messages import Climb, Load, Loaded
from node.protocols.meghdoot.parameters import MeghdootParameters
from node.protocols.meghdoot.publishing.event import EventContent
from node.protocols.meghdoot.space import Space
from node.protocols.meghdoot.studies.peers import Peers
from node.protocols.meghdoot.zones.load import KnownLoads, ReportedLoad

WORKLOAD = stock_quotes.workload(uniform=True)
EVENTS = EventValues(WORKLOAD, 1)


def society(peers, subscriptions, events, **parameters):
    """Return peers that joined one after the other, subscribed, and published."""
    rng = np.random.default_rng(1)
    drawn = SubscriptionDraws(WORKLOAD, EVENTS).draw(subscriptions, rng)
    found = Peers(WORKLOAD, Random(1), parameters)
    for _ in range(peers):
        found.join()
    for wish in drawn.by_wish():
        for ranges in wish:
            found.subscribe(ranges)
    for number in range(events):
        found.publish(found.anyone(), EVENTS.one(number))
        found.settle()
    found.look_round()
    return found


def replicas(peers):
    return sum(len(node.can.claims.own.replicas) for node in peers.nodes.values())


def test_copies_share_the_events_and_have_all_subscriptions():
    peers = society(2, 6, 60, match_cost=0.0)
    for _ in range(4):
        peers.join()
        peers.look_round()
    assert replicas(peers) == 4
    for node in peers.nodes.values():
        own = {each.key for zone in node.can.zones for each in node.broker.keeping.subscriptions.within(zone)}
        for replica in node.can.claims.own.replicas:
            kept = peers.nodes[replica.address].broker.keeping.subscriptions
            assert own <= {each.key for each in kept}
    visits = {address: node.broker.propagation.counts.visits for address, node in peers.nodes.items()}
    for number in range(60, 160):
        peers.publish(peers.anyone(), EVENTS.one(number))
        peers.settle()
    grown = [peers.nodes[address].broker.propagation.counts.visits - visits[address] for address in visits]
    assert min(grown) > 0
    assert sum(node.broker.propagation.counts.repeats for node in peers.nodes.values()) == 0


def test_a_joining_node_is_placed_at_a_peer_with_more_load_than_its_neighbours():
    peers = society(12, 100, 100)
    had = {at: (node.can.zones, node.can.claims.own.replicas) for at, node in peers.nodes.items()}
    load = {at: node.broker.load.load for at, node in peers.nodes.items()}
    new = peers.join()
    nodes = {at: peers.nodes[at].can for at in had}
    [giver] = [at for at, can in nodes.items() if had[at] != (can.zones, can.claims.own.replicas)]
    assert load[giver] >= max(load[each] for each in nodes[giver].claims.others if each != new)


@pytest.mark.parametrize(
    ("seen", "dimension"),
    [
        (None, 0),  # all cuts are equal: the first of the longest sides
        ((0.9, 0.9, 0.1, 0.1), 2),  # events with low values of the second attribute leave its upper half out
        ((0.1, 0.1, 0.9, 0.9), 0),
    ],
)
def test_the_halving_that_keeps_most_events_out_of_one_half_is_chosen(seen, dimension):
    points = np.array([[0.2, 0.4, 0.6, 0.8], [1.0] * 4, [0.2, 0.4, 0.6, 0.8], [1.0] * 4])
    events = None if seen is None else np.array([seen] * 5).T
    cut = halving_cut(whole_space(4), points, events)
    assert cut is not None
    assert cut[0] == dimension
    assert 0.4 < cut[1] <= 0.6


SPACE = Space((ContentAttribute("a", "real", 0.0, 1.0),))
NOWHERE = SimpleNamespace(by_id={}, around=())


class Silent:
    """A transport that only has a clock."""

    def __init__(self, own):
        self.own, self.now_us = own, 0

    def send(self, address, message):
        raise AssertionError("no neighbours expected")


def loads(own=1, held=NOWHERE, stored=(), **parameters):
    """Return one peer's knowledge of loads."""
    return KnownLoads(MeghdootParameters(**parameters), Silent(own), held, stored)


@pytest.mark.parametrize(
    ("both", "matches", "is_less"),
    [
        (1.0, 1_000_000, True),  # all events come to both halves: a split saves no work
        (0.0, 0, True),  # as good
        (0.0, 1, False),
        (0.5, 399, True),  # 100 events: 100 + 199.5 with copies, 1.5 x (100 + 99.75) with halves
        (0.5, 401, False),
    ],
)
def test_a_zone_is_copied_if_that_saves_more_work_than_a_split(both, matches, is_less):
    book = loads(match_cost=0.5)
    book.events, book.matches = 100.0, float(matches)
    assert book.is_better_copied(both) is is_less


@pytest.mark.parametrize(
    ("load_counts", "stored", "is_copied"),
    [
        ("stored", 199, True),  # 100 events, and 99.5 for subscriptions: loaded by events
        ("stored", 201, False),
        ("matching", 1, True),  # each event was matched against one subscription: 100 and 50
        ("matching", 3, False),
    ],
)
def test_by_the_papers_rule_a_zone_is_split_if_subscriptions_are_more_load_than_events(
    load_counts, stored, is_copied
):
    book = loads(stored=range(stored), match_cost=0.5, split_rule="paper", load_counts=load_counts)
    for _ in range(100):
        book.visited(EventContent(SPACE, (0.5,)))
    assert book.is_better_copied(1.0) is is_copied
    assert book.load == 100 + 0.5 * (stored if load_counts == "stored" else 100 * stored)


def test_events_from_before_a_split_that_no_longer_visit_the_zone_do_not_count():
    book = loads()
    for value in (0.25, 0.75):
        book.visited(EventContent(SPACE, (value,)))
    assert book.recent_points(Zone((0.5, 0.0), (1.0, 1.0))).T.tolist() == [[0.75, 0.75]]
    assert book.recent_points(Zone((0.9, 0.0), (1.0, 1.0))) is None


def test_peers_do_not_report_a_failed_peer_forever():
    books = {own: loads(own) for own in (1, 2)}
    books[1].load_received(9, Load(1_000.0, ()))
    for exchange in range(1, 40):
        for own, book in books.items():
            book._mail.now_us = exchange * MeghdootParameters().load_us
            rows = tuple(Loaded(address, heard.load) for address, heard in book.most.items())
            books[3 - own].load_received(own, Load(1.0, rows))
            book.tick()
    assert all(book.most.get(9, ReportedLoad(0.0, 0)).load < 1.0 for book in books.values())


def test_the_load_of_a_former_neighbour_is_forgotten():
    """Check it, because an old report would still direct a search for the highest load there."""
    held = SimpleNamespace(by_id={}, around=())
    book = loads(held=held)
    book.load_received(9, Load(1_000.0, ()))
    book._mail.now_us = MeghdootParameters().load_us
    book.tick()
    held.around = (9,)
    assert book.climb(8, Climb(5, 5, 0, 0, 0.0)) is None
