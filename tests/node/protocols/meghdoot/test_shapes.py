"""Events come once to whom they are for in societies of unusual shapes, and where values lie on edges."""

from itertools import product
from random import Random

import pytest

from node.core import machine as m
from node.core.content.content import ContentAttribute
from node.core.ordinals import of_word
from node.protocols.meghdoot.peer import MeghdootPeer
from node.sim.flat_network import FlatNetwork
from tests.node.protocols.meghdoot.given import GivenPeers, wants
from tests.node.protocols.meghdoot.societies import HIGH, Society

EDGES = (0.0, 50.0, 100.0)
WORDS = (
    ContentAttribute("word", "string", of_word("a", 3), of_word("zzz", 3), length=3),
    ContentAttribute("count", "integer", 1, 9),
)


def with_equal_subscriptions(ranges):
    """Return a society in which all subscriptions are equal."""

    class Equal(Society):
        def any_ranges(self, attributes):
            return (ranges,) * attributes

    return Equal


def is_right(society, delivered=50):
    """Nothing is lost, stray or duplicated, and zones are the whole space."""
    lost, stray, repeated, count = society.judged()
    zones = [zone for node in society.nodes().values() for zone in node.can.zones]
    assert (lost, stray, repeated) == (0, 0, 0)
    assert count >= delivered
    assert society.silent()
    assert sum(zone.volume for zone in zones) == pytest.approx(1.0)


@pytest.mark.parametrize("attributes", [1, 8])
def test_values_and_ranges_on_edges(attributes):
    peers = GivenPeers(attributes, 20, seed=attributes)
    ranges = [(low, high) for low, high in product(EDGES, EDGES) if low <= high]
    asked = {}
    for number, address in enumerate(sorted(peers.peers) * 3):
        some = [peers.rng.choice(ranges) for _ in range(min(attributes, 2))]
        asked[address, number] = (*some, *((0.0, 100.0),) * (attributes - len(some)))
        peers.subscribe(address, number, asked[address, number])
    peers.run(1_000_000)
    due = {address: set() for address in peers.peers}
    for number in range(30):
        values = tuple(peers.rng.choice((*EDGES, float("nan"))) for _ in range(attributes))
        publisher = sorted(peers.peers)[number % 20]
        seq = peers.publish(publisher, values)
        for (address, _), wanted in asked.items():
            if wants(wanted, values):
                due[address].add((publisher, seq))
        peers.run(20_000)
    peers.run(2_000_000)
    got = peers.delivered()
    assert sum(map(len, due.values())) > 50
    assert {address: sorted(each) for address, each in got.items()} == {
        address: sorted(each) for address, each in due.items()
    }


class Few:
    """A few peers, which know the first one, with the messages that each received."""

    def __init__(self, count, attributes=WORDS):
        self.network = FlatNetwork(lambda a, b: 10_000)
        self.got = [[] for _ in range(count)]
        self.all = []
        for number in range(count):
            peer = MeghdootPeer(
                f"peer {number}",
                f"10.0.0.{number + 1}",
                ["10.0.0.1"] if number else [],
                attributes=attributes,
                rng=Random(number),
            )
            self.network.start(peer.node.address, peer)
            self.all.append(peer)
        self.run(3)

    def run(self, seconds):
        self.network.run(self.network.clock.now_us + round(seconds * 1e6))

    def subscribe(self, number, **wanted):
        return self.all[number].subscribe(lambda event: self.got[number].append(event.content), **wanted)


@pytest.mark.parametrize("count", [1, 2, 5])
def test_few_peers_that_come_at_once_serve_each_other(count):
    peers = Few(count)
    for number in range(count):
        peers.subscribe(number, word=("a", "m"))
        peers.subscribe(number, count=9)
    peers.run(3)
    for word, number, content in (("a", 1, b"low"), ("m", 5, b"edge"), ("zzz", 9, b"top"), ("n", 1, b"no")):
        peers.all[-1].publish({"word": word, "count": number}, content)
    peers.run(3)
    assert [sorted(each) for each in peers.got] == [[b"edge", b"low", b"top"]] * count
    assert all(peer.layers.broker.publisher.is_silent for peer in peers.all)


def test_quick_changes_of_a_subscription_leave_the_last_one():
    peers = Few(4)
    kept = dropped = None
    for _ in range(5):
        if kept is not None:
            peers.all[1].unsubscribe(kept)
        kept = peers.subscribe(1, count=5)
        dropped = peers.subscribe(2, count=5)
        peers.run(0.015)
        peers.all[2].unsubscribe(dropped)
    peers.run(5)
    peers.all[3].publish({"word": "x", "count": 5}, b"event")
    peers.run(3)
    assert peers.got == [[], [b"event"], [], []]


@pytest.mark.parametrize("ranges", [(25.0, 75.0), (HIGH, HIGH)])
def test_subscriptions_that_all_lie_at_one_point(ranges):
    """The peer that has them all dies, and comes back."""
    wide = ranges[0] < ranges[1]
    society = with_equal_subscriptions(ranges)(6, 3, seed=7, rate_per_s=4)
    society.run(3_000_000)
    kept = {name: len(node.broker.keeping.subscriptions) for name, node in society.nodes().items()}
    dies = max((name for name in kept if "subscriber" in name), key=lambda name: kept[name])
    society.kill(dies)
    society.run(10_000_000)
    society.restart(dies)
    society.run(5_000_000)
    society.finish(40_000_000)
    is_right(society, 50 if wide else 0)


@pytest.mark.parametrize("attributes", [1, 4])
def test_all_leave_but_publishers_and_one(attributes):
    society = Society(8, 6, attributes, seed=2, rate_per_s=4)
    society.run(3_000_000)
    stays, *others = sorted(name for name in society.specs if "subscriber" in name)
    for name in others:
        society.network.give(society.addresses[name], m.Finish())
        society.run(400_000)
    society.run(6_000_000)
    for name in others:
        assert society.network.nodes[society.addresses[name]].is_finished
        society.kill(name)
    society.run(5_000_000)
    society.finish()
    assert stays in society.nodes()
    is_right(society, 1)


@pytest.mark.slow
def test_two_thirds_of_all_subscribers_die_at_once():
    society = Society(9, 6, 1, seed=3, rate_per_s=2)
    society.run(4_000_000)
    for name in society.rng.sample([name for name in society.specs if "subscriber" in name], 6):
        society.kill(name)
    society.run(15_000_000)
    society.finish(60_000_000)
    is_right(society)
