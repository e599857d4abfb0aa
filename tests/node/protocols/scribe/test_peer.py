"""The papers' interface: a few lines let nodes create, join and multicast, in virtual time and over TCP."""

import asyncio
import os
import re
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
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
from node.sim.flat_network import FlatNetwork
from node.tcp.peer import serve

HOSTS = f"127.{os.getpid() >> 8 & 127}.{os.getpid() & 255}."
"""Addresses of this machine that no other process uses for this, which may run the same tests."""
README = Path(scribe.__file__).with_name("README.md")


class Peers:
    """Peers in virtual time, which all know the first one; all delays are 10 ms."""

    def __init__(self, count=12, **parameters):
        self.network = FlatNetwork(lambda a, b: 10_000)
        self.all = []
        self.parameters = parameters
        for number in range(count):
            contacts = ["10.0.0.1"] if number else []
            name = f"peer {number}"
            peer = ScribePeer(name, f"10.0.0.{number + 1}", contacts, rng=Random(name), **parameters)
            self.network.start(peer.node.address, peer)
            self.all.append(peer)
            self.run(0.2)
        self.run(3)

    def restart(self, peer):
        """Replace a process by a new one without its state, and return the new one."""
        self.network.kill(peer.node.address)
        number = self.all.index(peer)
        contacts = ["10.0.0.1"] if number else ["10.0.0.2"]
        address = f"10.0.0.{number + 1}"
        rng = Random(f"again {number}")
        new = ScribePeer(f"peer {number}", address, contacts, rng=rng, **self.parameters)
        self.network.start(new.node.address, new)
        self.all[number] = new
        self.run(5)
        return new

    def run(self, seconds):
        self.network.run(self.network.clock.now_us + round(seconds * 1e6))

    def root(self, topic):
        node = closest(topic, (peer.node for peer in self.all))
        return next(peer for peer in self.all if peer.node == node)

    def not_root(self, topic):
        return [peer for peer in self.all if peer is not self.root(topic)]


def test_members_are_given_what_is_published_in_each_publishers_order():
    peers = Peers()
    topic = topic_of("news", "peer 0")
    got = {peer: [] for peer in peers.all}
    for peer in peers.all:
        peer.join("", topic, got[peer].append)
    peers.run(2)
    for number in range(20):
        for peer in peers.all[:3]:
            peer.multicast("", topic, b"%d of %d" % (number, peer.node.address))
        peers.run(0.05)
    peers.run(3)
    for messages in got.values():
        assert len(messages) == 60
        for peer in peers.all[:3]:
            ours = [each for each in messages if each.content.endswith(b"of %d" % peer.node.address)]
            assert [each.content for each in ours] == [
                b"%d of %d" % (n, peer.node.address) for n in range(20)
            ]
            assert [each.seq for each in ours] == list(range(1, 21))
            assert len({each.publisher for each in ours}) == 1


def test_who_leaves_is_given_nothing_more():
    peers = Peers()
    topic, got = topic_of("news", ""), []
    peers.all[3].join("", topic, got.append)
    peers.run(1)
    peers.all[0].multicast("", topic, b"first")
    peers.run(2)
    peers.all[3].leave("", topic)
    peers.all[0].multicast("", topic, b"second")
    peers.run(2)
    assert [each.content for each in got] == [b"first"]


def test_only_who_was_granted_it_subscribes_and_publishes():
    """Draft of 2001, 3 and 3.2."""
    peers = Peers()
    topic = topic_of("news", "peer 0")
    creator, friend, stranger, publisher, thief = peers.not_root(topic)[:5]
    told, got = [], {peer: [] for peer in (friend, stranger, creator)}
    creator.handlers.created = lambda key: told.append(("created", key))
    creator.create("mine", topic, subscribers=["friend"], publishers=["press"])
    peers.run(1)
    assert told == [("created", topic)]
    for peer in (stranger, publisher, thief):
        peer.handlers.denied = lambda key, right, peer=peer: told.append((peer, key, right))
    friend.join("friend", topic, got[friend].append)
    stranger.join("guess", topic, got[stranger].append)
    creator.join("mine", topic, got[creator].append)
    peers.run(2)
    publisher.multicast("press", topic, b"true")
    stranger.multicast("guess", topic, b"false")
    thief.create("other", topic)
    peers.run(3)
    assert [each.content for each in got[friend]] == [b"true"] == [each.content for each in got[creator]]
    assert got[stranger] == []
    assert set(told[1:]) == {
        (stranger, topic, Right.SUBSCRIBE),
        (stranger, topic, Right.PUBLISH),
        (thief, topic, Right.CREATE),
    }


def test_a_root_and_forwarders_are_let_in_by_the_same_rules():
    peers = Peers()
    topic = topic_of("news", "peer 0")
    root, denied = peers.root(topic), []
    for peer in peers.all:
        peer.handlers.denied = lambda key, right, peer=peer: denied.append(peer)
    peers.not_root(topic)[0].create("mine", topic, subscribers=["friend"])
    peers.run(1)
    for peer in peers.all:
        peer.join("friend" if peer.node.address % 2 else "", topic, lambda message: None)
    peers.run(3)
    assert set(denied) == {peer for peer in peers.all if not peer.node.address % 2}
    for peer in peers.all:
        assert peer.layers.trees.topic(topic).is_member == bool(peer.node.address % 2)
    assert root.layers.trees.topic(topic).grants is not None


def test_grants_outlive_their_root():
    """Draft of 2001, 3.5: they stand on the k nearest nodes."""
    peers = Peers()
    topic, denied = topic_of("news", "peer 0"), []
    creator, stranger = peers.not_root(topic)[:2]
    creator.create("mine", topic, subscribers=["friend"])
    peers.run(1)
    root = peers.root(topic)
    peers.network.kill(root.node.address)
    peers.all.remove(root)
    peers.run(8)
    stranger.handlers.denied = lambda key, right: denied.append(right)
    stranger.join("", topic, lambda message: None)
    peers.run(2)
    assert denied == [Right.SUBSCRIBE]


def test_a_creator_may_change_who_may_what():
    peers = Peers()
    topic, got = topic_of("news", "peer 0"), []
    creator, other = peers.not_root(topic)[:2]
    creator.create("mine", topic, subscribers=["friend"])
    peers.run(1)
    creator.create("mine", topic, subscribers=["friend", "other"], version=2)
    peers.run(1)
    other.handlers.joined = got.append
    other.join("other", topic, lambda message: None)
    peers.run(2)
    assert got == [topic]


def test_a_creator_that_is_the_root_learns_that_its_topic_exists():
    peers = Peers()
    topic, created, routed = topic_of("news", "peer 0"), [], []
    creator = peers.root(topic)
    creator.handlers.created = created.append
    creator.create("mine", topic, subscribers=["friend"])
    peers.run(1)
    assert created == [topic]
    pastry = creator.layers.pastry
    route, pastry.route = pastry.route, lambda *message: routed.append(message) or route(*message)
    peers.run(3)
    assert created == [topic]
    assert not [message for message, *_ in routed if message.__class__.__name__ == "Create"]


def test_a_root_learns_that_it_was_denied_a_right():
    peers = Peers()
    topic, denied = topic_of("news", "peer 0"), []
    peers.not_root(topic)[0].create("mine", topic, publishers=["press"])
    peers.run(1)
    root = peers.root(topic)
    root.handlers.denied = lambda key, right: denied.append(right)
    root.create("other", topic)
    root.multicast("other", topic, b"false")
    peers.run(2)
    assert set(denied) == {Right.CREATE, Right.PUBLISH}


def test_a_topic_next_to_its_creator_has_its_root_there():
    """2002, III.A: the alternative."""
    peers = Peers()
    for peer in peers.all:
        assert peers.root(topic_at(peer.node.id, "news")) is peer


def test_the_papers_handlers_see_what_passes():
    """2002, III.D."""
    peers = Peers()
    topic, got, joins, faults = topic_of("news", ""), [], [], []
    member, root = peers.not_root(topic)[0], peers.root(topic)
    root.handlers.forward_handler = lambda content: bytes(content).upper()
    root.handlers.join_handler = joins.append
    member.handlers.fault_handler = lambda join: faults.append(join) or replace(join, is_new=0)
    member.join("", topic, got.append)
    peers.run(1)
    peers.all[0].multicast("", topic, b"hello")
    peers.run(2)
    assert [each.content for each in got] == [b"HELLO"]
    assert [join.topic for join in joins] == [topic]
    peers.network.kill(root.node.address)
    peers.run(8)
    assert faults
    assert faults[0].address == member.node.address


def test_unknown_parameters_are_reported():
    with pytest.raises(ValueError, match="unknown parameter 'delivry'; known ones: probe_timeout_us, "):
        ScribePeer("alice", "10.0.0.1", rng=Random(1), delivry="best-effort")


def test_a_message_that_fits_into_no_frame_is_refused_at_once_and_the_longest_comes():
    peers, topic, got = Peers(3), topic_of("news", ""), []
    peers.all[2].join("", topic, lambda message: got.append(len(message.content)))
    peers.run(2)
    most = FRAME_LIMIT_BYTES - ENVELOPE_BYTES
    with pytest.raises(ValueError, match=f"content of {most + 1:,} bytes is over the limit of {most:,}"):
        peers.all[1].multicast("", topic, bytes(most + 1))
    peers.all[1].multicast("", topic, bytes(most))
    peers.run(3)
    assert got == [most]


def test_the_longest_message_fits_into_a_frame_in_all_that_may_be_around_it():
    payload = bytes(FRAME_LIMIT_BYTES - ENVELOPE_BYTES)
    for message in (Publish(1, 2, 3, 4, 5, 6, 1, payload), Replicate(1, 2, 3, 4, 1, payload)):
        around = Relay(1, 2, 3, 4, 5, 6, 7, Route(1, 2, 3, RoutePhase.PREFIX, message))
        assert CODEC.size_bytes(around) <= FRAME_LIMIT_BYTES


@dataclass(frozen=True, slots=True)
class Question:
    """A message of an application's own."""

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
def test_over_tcp():
    async def talk():
        got, ready = [], asyncio.Event()
        topic = topic_of("news", "peer 1")
        first, second, third = (
            ScribePeer(
                f"peer {n}", f"{HOSTS}{n}", [] if n == 1 else [f"{HOSTS}1"], rng=Random(n), port=17_400
            )
            for n in (1, 2, 3)
        )
        async with (
            serve(first, CODEC, f"{HOSTS}1"),
            serve(second, CODEC, f"{HOSTS}2"),
            serve(third, CODEC, f"{HOSTS}3"),
        ):
            third.handlers.joined = lambda topic: ready.set()
            third.join("", topic, got.append)
            async with asyncio.timeout(10):
                await ready.wait()
                for number in range(10):
                    second.multicast("", topic, b"%d" % number)
                while len(got) < 10:
                    await asyncio.sleep(0.05)
        return [message.content for message in got]

    assert asyncio.run(talk()) == [b"%d" % number for number in range(10)]


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, 1])
def test_the_readmes_examples_do_what_they_say(number, capsys):
    example = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)[number]
    example = example.replace("127.0.0.", HOSTS)
    exec(compile(example, f"README.md, example {number + 1}", "exec"), {"__name__": "example"})
    assert capsys.readouterr().out == "b'hello'\n"
