"""The papers' interface: nodes create topics, join and multicast, in virtual time and over TCP."""

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated

import pytest

from node.core.framing import ENVELOPE_BYTES, FRAME_LIMIT_BYTES
from node.core.message_layout import Field
from node.protocols import scribe
from node.protocols.pastry.ids import closest
from node.protocols.pastry.messages import Route, RoutePhase
from node.protocols.reachability.messages import Relay
from node.protocols.reachability.nodes import id_of
from node.protocols.scribe.access import topic_at, topic_of
from node.protocols.scribe.messages import CODEC, Publish, Replicate, Right, codec
from node.protocols.scribe.peer import ScribePeer
from tests.node.protocols.peers import HOSTS, VirtualPeers

README = Path(scribe.__file__).with_name("README.md")


class Peers(VirtualPeers):
    def __init__(self, count=12, **parameters):
        super().__init__(ScribePeer, count, **parameters)

    def root(self, topic):
        node = closest(topic, (peer.node for peer in self.all))
        return next(peer for peer in self.all if peer.node == node)

    def not_root(self, topic):
        return [peer for peer in self.all if peer is not self.root(topic)]


TOPIC = topic_of("news", "peer 0")


def ignore(message):
    """Ignore a message."""


def test_members_get_each_publishers_messages_in_order_until_they_leave():
    peers = Peers()
    got = {peer: [] for peer in peers.all}
    for peer in peers.all:
        peer.join("", TOPIC, got[peer].append)
    peers.run(2)
    for number in range(20):
        for peer in peers.all[:3]:
            peer.multicast("", TOPIC, b"%d of %d" % (number, peer.node.address))
        peers.run(0.05)
    peers.run(3)
    for messages in got.values():
        assert len(messages) == 60
        for peer in peers.all[:3]:
            ours = [each for each in messages if each.content.endswith(b"of %d" % peer.node.address)]
            assert [(each.content, each.seq) for each in ours] == [
                (b"%d of %d" % (n, peer.node.address), n + 1) for n in range(20)
            ]
            assert len({each.publisher for each in ours}) == 1
    peers.all[3].leave("", TOPIC)
    peers.all[0].multicast("", TOPIC, b"more")
    peers.run(2)
    assert [len(got[peer]) for peer in peers.all[2:5]] == [61, 60, 61]


def test_only_nodes_with_the_right_subscribe_and_publish():
    """Draft of 2001, 3 and 3.2."""
    peers = Peers()
    creator, friend, stranger, publisher, thief = peers.not_root(TOPIC)[:5]
    told, got = [], {peer: [] for peer in (friend, stranger, creator)}
    creator.handlers.created = lambda key: told.append(("created", key))
    creator.create("mine", TOPIC, subscribers=["friend"], publishers=["press"])
    peers.run(1)
    assert told == [("created", TOPIC)]
    for peer in (stranger, publisher, thief):
        peer.handlers.denied = lambda key, right, peer=peer: told.append((peer, key, right))
    friend.join("friend", TOPIC, got[friend].append)
    stranger.join("guess", TOPIC, got[stranger].append)
    creator.join("mine", TOPIC, got[creator].append)
    peers.run(2)
    publisher.multicast("press", TOPIC, b"true")
    stranger.multicast("guess", TOPIC, b"false")
    thief.create("other", TOPIC)
    peers.run(3)
    assert [each.content for each in got[friend]] == [b"true"] == [each.content for each in got[creator]]
    assert got[stranger] == []
    assert set(told[1:]) == {
        (stranger, TOPIC, Right.SUBSCRIBE),
        (stranger, TOPIC, Right.PUBLISH),
        (thief, TOPIC, Right.CREATE),
    }


def test_roots_and_forwarders_need_the_same_rights():
    peers = Peers()
    root, denied = peers.root(TOPIC), []
    for peer in peers.all:
        peer.handlers.denied = lambda key, right, peer=peer: denied.append(peer)
    peers.not_root(TOPIC)[0].create("mine", TOPIC, subscribers=["friend"])
    peers.run(1)
    for peer in peers.all:
        peer.join("friend" if peer.node.address % 2 else "", TOPIC, ignore)
    peers.run(3)
    assert set(denied) == {peer for peer in peers.all if not peer.node.address % 2}
    for peer in peers.all:
        assert peer.layers.trees.topic(TOPIC).is_member == bool(peer.node.address % 2)
    assert root.layers.trees.topic(TOPIC).grants is not None


def test_a_creator_may_change_grants_and_they_outlive_their_root():
    """Draft of 2001, 3.5: the k nearest nodes store them."""
    peers, told = Peers(), []
    creator, other, stranger = peers.not_root(TOPIC)[:3]
    creator.create("mine", TOPIC, subscribers=["friend"])
    peers.run(1)
    creator.create("mine", TOPIC, subscribers=["friend", "other"], version=2)
    peers.run(1)
    root = peers.root(TOPIC)
    peers.network.kill(root.node.address)
    peers.all.remove(root)
    peers.run(8)
    other.handlers.joined = told.append
    stranger.handlers.denied = lambda key, right: told.append(right)
    other.join("other", TOPIC, ignore)
    stranger.join("", TOPIC, ignore)
    peers.run(2)
    assert sorted(told) == [Right.SUBSCRIBE, TOPIC]


def test_a_creator_that_is_the_root_learns_that_its_topic_exists():
    peers = Peers()
    created, routed = [], []
    creator = peers.root(TOPIC)
    creator.handlers.created = created.append
    creator.create("mine", TOPIC, subscribers=["friend"])
    peers.run(1)
    assert created == [TOPIC]
    pastry = creator.layers.pastry
    route, pastry.route = pastry.route, lambda *message: routed.append(message) or route(*message)
    peers.run(3)
    assert created == [TOPIC]
    assert not [message for message, *_ in routed if message.__class__.__name__ == "Create"]


def test_a_root_learns_that_it_was_denied_a_right():
    peers = Peers()
    denied = []
    peers.not_root(TOPIC)[0].create("mine", TOPIC, publishers=["press"])
    peers.run(1)
    root = peers.root(TOPIC)
    root.handlers.denied = lambda key, right: denied.append(right)
    root.create("other", TOPIC)
    root.multicast("other", TOPIC, b"false")
    peers.run(2)
    assert set(denied) == {Right.CREATE, Right.PUBLISH}


def test_a_topic_next_to_its_creator_has_its_root_there():
    """2002, III.A: the alternative."""
    peers = Peers()
    for peer in peers.all:
        assert peers.root(topic_at(peer.node.id, "news")) is peer


def test_the_papers_handlers_are_called():
    """2002, III.D."""
    peers = Peers()
    got, joins, faults = [], [], []
    member, root = peers.not_root(TOPIC)[0], peers.root(TOPIC)
    root.handlers.forward_handler = lambda content: bytes(content).upper()
    root.handlers.join_handler = joins.append
    member.handlers.fault_handler = lambda join: faults.append(join) or replace(join, is_new=0)
    member.join("", TOPIC, got.append)
    peers.run(1)
    peers.all[0].multicast("", TOPIC, b"hello")
    peers.run(2)
    assert [each.content for each in got] == [b"HELLO"]
    assert [join.topic for join in joins] == [TOPIC]
    peers.network.kill(root.node.address)
    peers.run(8)
    assert faults
    assert faults[0].address == member.node.address


def test_a_too_long_message_is_refused_and_the_longest_is_delivered():
    peers, got = Peers(3), []
    peers.all[2].join("", TOPIC, lambda message: got.append(len(message.content)))
    peers.run(2)
    most = FRAME_LIMIT_BYTES - ENVELOPE_BYTES
    with pytest.raises(ValueError, match=f"content of {most + 1:,} bytes is over the limit of {most:,}"):
        peers.all[1].multicast("", TOPIC, bytes(most + 1))
    peers.all[1].multicast("", TOPIC, bytes(most))
    peers.run(3)
    assert got == [most]


def test_the_longest_message_fits_into_a_frame_with_all_envelopes():
    payload = bytes(FRAME_LIMIT_BYTES - ENVELOPE_BYTES)
    for message in (Publish(1, 2, 3, 4, 5, 6, 1, payload), Replicate(1, 2, 3, 4, 1, payload)):
        around = Relay(1, 2, 3, 4, 5, 6, 7, Route(1, 2, 3, RoutePhase.PREFIX, message))
        assert CODEC.size_bytes(around) <= FRAME_LIMIT_BYTES


@dataclass(frozen=True, slots=True)
class Question:
    """A message of an application."""

    number: Annotated[int, Field("I", "", "which")]


def test_pastry_carries_an_applications_own_messages():
    """2002, II.C: route, send, deliver, forward, newLeafs."""
    peers = Peers(count=30, leaf_set=4, replicas=2)
    delivered, passed, leafs = [], [], []
    for peer in peers.all:
        peer.handlers.deliver = lambda message, key, peer=peer: delivered.append((message.number, peer))
    key = id_of("a key")
    start = max(peers.all, key=lambda peer: abs(peer.node.id - key))

    def changed(message, key, following):
        passed.append(following)
        return replace(message, number=message.number + 1) if message.number < 100 else None

    start.handlers.forward = changed
    start.route(Question(7), key)
    start.route(Question(100), key)
    peers.run(1)
    assert delivered == [(8, peers.root(key))]
    assert len(passed) == 2
    delivered.clear()
    start.send(Question(9), "10.0.0.5")
    peers.run(1)
    assert delivered == [(9, peers.all[4])]
    neighbour = next(peer for peer in peers.all if peer.node == start.layers.pastry.leaf_set.larger[0])
    start.handlers.new_leafs = leafs.append
    peers.network.kill(neighbour.node.address)
    peers.run(8)
    assert leafs
    assert codec(Question).by_name["QUESTION"].type >= 128


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1])
def test_the_readmes_examples_work(number, capsys):
    example = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)[number]
    example = example.replace("127.0.0.", HOSTS)
    exec(compile(example, f"README.md, example {number + 1}", "exec"), {"__name__": "example"})
    assert capsys.readouterr().out == "b'hello'\n"
