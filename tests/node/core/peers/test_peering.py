"""Peering: one connection per pair of peers; duplicates, silence, unknown processes, peers that do not read.

The machines here belong to no system: they greet and record their inputs.
"""

from dataclasses import dataclass
from random import Random
from typing import Annotated

import pytest

from node.core import machine as m
from node.core.message_layout import Codec, Field, TailField, numbered
from node.core.peers.dialing import Pauses, Target
from node.core.peers.peer_channel import PeerChannel
from node.core.peers.peering import SILENCE, PeeringLimits, PeeringMachine

PAUSES = Pauses(first_us=50_000, last_us=500_000, timeout_us=1_000_000)
LIMITS = PeeringLimits(PAUSES, silence_us=300_000, burst_bytes=1_000, overdraft_bytes=2_000)
PORT = 7


@dataclass(frozen=True, slots=True)
class Hello:
    incarnation: Annotated[int, Field("Q", "", "of the process")]
    name: Annotated[str, TailField("text", "who it is")]


@dataclass(frozen=True, slots=True)
class Note:
    text: Annotated[str, TailField("text", "anything")]


CODEC = Codec(numbered((Hello, Note)))


class Peer(PeeringMachine[PeerChannel]):
    def __init__(self, name, *targets):
        super().__init__(name, Random(name), CODEC, LIMITS, PeerChannel)
        self.keep_connected([target(each) for each in targets])
        self.told = []

    def greeting(self):
        return Hello(self.incarnation, self.name)

    def opened(self, channel):
        self.told.append(("opened", channel.name))

    def lost(self, channel, reason):
        self.told.append(("lost", channel.name))

    def take(self, channel, message):
        self.told.append((message.text, channel.name if channel.has_greeted else "?"))


def target(name):
    return Target(name, name, PORT)


class Bench:
    """One machine; the test executes its effects."""

    def __init__(self, *targets):
        self.peer, self.now_us = Peer("m", *targets), 0
        self.effects = []
        self.give(m.Started())

    def give(self, given, after_us=0):
        self.now_us += after_us
        self.effects = list(self.peer.handle(given, self.now_us))

    def accept(self, connection, name, incarnation=1):
        self.give(m.Connected(connection))
        self.hear(connection, Hello(incarnation, name))

    def hear(self, connection, *messages, after_us=0):
        self.give(m.Received(connection, messages), after_us)

    def look(self, after_us):
        self.give(m.TimerFired(SILENCE), after_us)

    def effects_of(self, kind):
        return [effect for effect in self.effects if isinstance(effect, kind)]

    @property
    def connections(self):
        return sorted(self.peer.connections)


class World:
    """Machines and the messages between them: in order per connection, otherwise at random."""

    def __init__(self, *peers, seed):
        self.peers = {peer.name: peer for peer in peers}
        self.rng = Random(seed)
        self.ends = {}  # (name, number) -> the other end
        self.on_its_way = {}  # end -> inputs for it, in order
        self.number = 0
        for peer in peers:
            self.give(peer.name, m.Started())

    def give(self, name, given):
        for effect in self.peers[name].handle(given, 0):
            match effect:
                case m.Connect():
                    self.on_its_way[name, -len(self.on_its_way) - 1] = [effect]
                case m.Send():
                    self.post(name, effect.connection, m.Received, effect.messages)
                case m.Close():
                    self.post(name, effect.connection, m.Disconnected, "closed")
                    self.ends[name, effect.connection] = None

    def post(self, name, number, kind, what):
        if other := self.ends.get((name, number)):
            self.on_its_way[other].append(kind(other[1], what))

    def run(self):
        """Run until no message is in flight."""
        while some := [end for end, inputs in self.on_its_way.items() if inputs]:
            end = self.rng.choice(some)
            given = self.on_its_way[end].pop(0)
            if isinstance(given, m.Connect):
                self.connect(end[0], given.peer)
            elif self.ends[end] is not None:  # who closed it hears no more of it
                if isinstance(given, m.Disconnected):
                    self.ends[end] = None
                self.give(end[0], given)

    def connect(self, name, peer):
        self.number += 2
        near, far = (name, self.number), (peer, self.number + 1)
        self.ends |= {near: far, far: near}
        self.on_its_way |= {near: [m.Connected(near[1], peer)], far: [m.Connected(far[1])]}


@pytest.mark.parametrize("seed", range(8))
def test_two_peers_that_dial_each_other_at_once_keep_the_same_connection(seed):
    first, second = Peer("a", "b"), Peer("b", "a")
    world = World(first, second, seed=seed)
    world.run()
    (ours,), (theirs,) = first.connections.values(), second.connections.values()
    assert world.ends["a", ours.connection] == ("b", theirs.connection)
    assert (first.channels, second.channels) == ({"b": ours}, {"a": theirs})
    assert (ours.dialled, theirs.dialled) in {("b", None), (None, "a")}
    assert all([what for what, _ in peer.told].count("opened") for peer in (first, second))


def test_both_sides_greet_first_and_unknown_processes_may_dial():
    bench = Bench()
    bench.give(m.Connected(1))
    assert bench.effects == [m.Send(1, (Hello(1, "m"),))]
    bench.hear(1, Hello(9, "stranger"), Note("good day"))
    assert bench.peer.told == [("opened", "stranger"), ("good day", "stranger")]


def test_a_wrong_peer_at_an_address_is_disconnected_and_the_right_one_redialled():
    bench = Bench("x")
    bench.give(m.Connected(1, "x"))
    bench.hear(1, Hello(1, "y"))
    assert bench.effects_of(m.Close) == [m.Close(1)]
    assert not bench.peer.channels
    assert [timer.timer for timer in bench.effects_of(m.SetTimer)] == [("dial", "x")]


def test_a_peer_that_dialled_us_is_not_dialled_until_it_is_lost():
    bench = Bench("x")
    bench.accept(1, "x")
    bench.give(m.Connected(2, "x"))
    assert bench.effects == [m.Close(2)]  # it was faster
    bench.give(m.Disconnected(1, "reset"))
    assert [dial.peer for dial in bench.effects_of(m.Connect)] == ["x"]
    assert bench.peer.told == [("opened", "x"), ("lost", "x")]


def test_only_a_silent_peer_is_aborted():
    bench = Bench()
    for connection, name in ((1, "silent"), (2, "lively")):
        bench.accept(connection, name)
        bench.hear(connection, Note("I am here"))
    bench.hear(2, Note("still"), after_us=200_000)
    bench.look(after_us=99_999)
    assert bench.connections == [1, 2]
    bench.look(after_us=1)
    assert bench.effects_of(m.Close) == [m.Close(1, abort=True)]
    assert [line.fields["peer"] for line in bench.effects_of(m.Log) if line.event == "peer_silent"] == [
        "silent"
    ]
    assert ("lost", "silent") in bench.peer.told


def test_the_first_answer_of_a_peer_may_take_as_long_as_a_dial_timeout():
    bench = Bench()
    bench.accept(1, "far away")
    for _ in range(3):
        bench.look(after_us=300_000)
    assert bench.connections == [1]
    bench.look(after_us=100_000)
    assert bench.connections == []


def test_own_pauses_do_not_count_as_silence_of_a_peer():
    bench = Bench()
    bench.accept(1, "x")
    bench.hear(1, Note("I am here"), after_us=1)
    bench.look(after_us=60_000_000)  # it was due long ago: we were stopped
    assert bench.connections == [1]
    bench.peer.pause_reading(bench.peer.channels["x"])
    for _ in range(10):
        bench.look(after_us=300_000)
    assert bench.connections == [1]
    bench.peer.resume_reading(bench.peer.channels["x"])
    bench.look(after_us=299_999)
    assert bench.connections == [1]
    bench.look(after_us=1)
    assert bench.connections == []


def test_a_reading_peer_regains_room_and_another_is_disconnected():
    bench = Bench()
    bench.accept(1, "x")
    channel = bench.peer.channels["x"]
    bench.peer.send(channel, Note("a" * 1_000))
    bench.give(m.Nudge())
    assert not channel.open_for_bulk
    assert bench.effects_of(m.AwaitWritable) == [m.AwaitWritable(1)]
    bench.give(m.Writable(1))
    assert channel.open_for_bulk
    for _ in range(4):
        bench.peer.send(channel, Note("b" * 900))
    assert bench.connections == [1]
    bench.peer.send(channel, Note("b" * 900))
    assert bench.connections == []


def test_an_oversized_message_does_not_count_against_small_ones_after_it():
    """Check it, because otherwise the next message would disconnect the peer, which would then get the same
    data again.
    """
    bench = Bench()
    bench.accept(1, "x")
    channel = bench.peer.channels["x"]
    bench.peer.send(channel, Note("a" * 10_000))
    bench.peer.send(channel, Note("b" * 900))
    assert bench.connections == [1]
    bench.peer.send(channel, *[Note("b" * 900)] * 2)
    assert bench.connections == []


def test_ready_is_reported_once_when_all_dialled_peers_have_greeted():
    bench = Bench("x")
    bench.give(m.Connected(1, "x"))
    assert not bench.effects_of(m.Ready)
    bench.hear(1, Hello(1, "x"))
    assert bench.effects_of(m.Ready)
    bench.give(m.Disconnected(1, "reset"))
    bench.accept(2, "x")
    assert not bench.effects_of(m.Ready)


def test_at_the_end_all_connections_close_and_none_is_accepted():
    bench = Bench("x")
    bench.accept(1, "y")
    bench.give(m.Finish())
    assert bench.effects_of(m.Close) == [m.Close(1)]
    assert bench.effects[-1] == m.Finished()
    bench.accept(2, "z")
    assert bench.effects == []
