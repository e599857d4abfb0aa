"""Events arrive once at their subscribers in unusual societies, and with values on edges."""

from itertools import product

import pytest

from node.core.content.content import ContentAttribute
from node.core.ordinals import of_word
from node.protocols.meghdoot.peer import MeghdootPeer
from tests.node.protocols.meghdoot.given import GivenPeers
from tests.node.protocols.meghdoot.societies import HIGH, Society, assert_whole
from tests.node.protocols.meghdoot.test_events import assert_all_came, published
from tests.node.protocols.peers import VirtualPeers

EDGES = (0.0, 50.0, 100.0)
WORDS = (
    ContentAttribute("word", "string", of_word("a", 3), of_word("zzz", 3), length=3),
    ContentAttribute("count", "integer", 1, 9),
)


@pytest.mark.parametrize("attributes", [1, 8])
def test_values_and_ranges_on_edges(attributes):
    peers = GivenPeers(attributes, 20, seed=attributes)
    ranges = [(low, high) for low, high in product(EDGES, EDGES) if low <= high]
    asked = {}
    for number, address in enumerate(sorted(peers.nodes) * 3):
        some = [peers.rng.choice(ranges) for _ in range(min(attributes, 2))]
        asked[address, number] = (*some, *((0.0, 100.0),) * (attributes - len(some)))
        peers.ask(address, number, asked[address, number])
    peers.run(1_000_000)
    some = [tuple(peers.rng.choice((*EDGES, float("nan"))) for _ in range(attributes)) for _ in range(30)]
    due = published(peers, asked, some)
    assert sum(map(len, due.values())) > 50
    assert_all_came(peers, due)


class Few(VirtualPeers):
    """A few peers, and the messages that each received."""

    def __init__(self, count):
        self.got = [[] for _ in range(count)]
        super().__init__(MeghdootPeer, count, 0, attributes=WORDS)

    def subscribe(self, number, **wanted):
        return self.all[number].subscribe(lambda event: self.got[number].append(event.content), **wanted)


@pytest.mark.parametrize("count", [1, 5])
def test_a_few_peers_that_join_at_once_serve_each_other(count):
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
def test_subscriptions_at_one_point_survive_a_crash(ranges, monkeypatch):
    """Kill the peer that has all of them, and restart it."""
    monkeypatch.setattr(Society, "any_ranges", lambda society: (ranges,) * society.attributes)
    society = Society(6, 3, seed=7, rate_per_s=4, run_us=3_000_000)
    dies = max(society.subscribers(), key=lambda name: len(society.node(name).broker.keeping.subscriptions))
    society.kill(dies, then_us=10_000_000)
    society.restart(dies, then_us=5_000_000)
    assert_whole(society, 50 if ranges[0] < ranges[1] else 0, settle_us=30_000_000)


@pytest.mark.parametrize("attributes", [1, 4])
def test_all_leave_but_publishers_and_one(attributes):
    society = Society(8, 6, attributes, seed=2, rate_per_s=4, run_us=3_000_000)
    _, *others = sorted(society.subscribers())
    for name in others:
        society.finish_one(name, then_us=400_000)
    society.run(6_000_000)
    for name in others:
        assert society.network.nodes[society.addresses[name]].is_finished
        society.kill(name)
    assert not any(list(node.broker.recovery.doubts) for node in society.nodes().values())
    society.run(5_000_000)
    assert_whole(society, 1)
