"""Peers reached by address: order, limits, and connections that open, cross, idle and break."""

from collections import deque
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from random import Random

import pytest

from node.core import machine as m
from node.core.peers.peer_pool import Forget, PeerPool, PoolLimits, ReceivedFrom, SendTo, Unreachable

PORT = 7400
LIMITS = PoolLimits(connections=3, idle_us=1_000_000, dial_timeout_us=100_000, burst=2, waiting=8)


@dataclass
class Scripted:
    """A machine with scripted effects that records its inputs."""

    heard: list = field(default_factory=list)
    does: deque = field(default_factory=deque)
    frame_limit_bytes: int = 1 << 20

    def handle(self, given, now_us):
        self.heard.append(given)
        return [self.does.popleft()] if self.does else []

    def progress(self):
        return m.NodeProgress()


class Bench:
    """A pool and its effects."""

    def __init__(self, limits=LIMITS):
        self.machine = Scripted()
        self.pool = PeerPool(self.machine, PORT, limits)
        self.now_us = 0
        self.give(m.Started())

    def give(self, given, after_us=1_000):
        self.now_us += after_us
        self.done = list(self.pool.handle(given, self.now_us))
        return self.done

    def do(self, effect):
        self.machine.does.append(effect)
        return self.give(m.Nudge())

    def told(self, kind):
        return [each for each in self.machine.heard if isinstance(each, kind)]


def address(number):
    return str(IPv4Address(number))


def test_the_first_message_opens_a_connection_for_it_and_later_ones_in_order():
    bench = Bench()
    assert bench.do(SendTo(9, ("a",))) == [m.Connect("9", address(9), PORT, 100_000)]
    assert bench.do(SendTo(9, ("b",))) == []
    assert bench.give(m.Connected(1, "9")) == [m.Send(1, ["a", "b"]), m.AwaitWritable(1)]
    assert bench.do(SendTo(9, ("c",))) == []
    assert bench.give(m.Writable(1)) == [m.Send(1, ["c"])]


def test_a_failed_dial_is_reported_once():
    bench = Bench()
    bench.do(SendTo(9, ("a",)))
    bench.give(m.ConnectFailed("9", "refused"))
    assert bench.told(Unreachable) == [Unreachable(9, "refused")]


def test_a_broken_connection_is_reported_and_the_next_message_redials():
    bench = Bench()
    bench.do(SendTo(9, ("a",)))
    bench.give(m.Connected(1, "9"))
    bench.give(m.Disconnected(1, "reset"))
    assert bench.told(Unreachable) == [Unreachable(9, "reset")]
    assert bench.do(SendTo(9, ("b",))) == [m.Connect("9", address(9), PORT, 100_000)]


def test_idle_connections_are_closed():
    bench = Bench()
    bench.give(m.Connected(1, address=address(9)))
    bench.give(m.Connected(2, address=address(8)))
    bench.give(m.Received(2, ("x",)), after_us=900_000)
    assert m.Close(1) in bench.give(m.TimerFired(("peer pool",)), after_us=200_000)
    assert bench.do(SendTo(8, ("a",))) == [m.Send(2, ("a",))]


def test_the_least_used_connection_makes_room_for_a_new_one():
    bench = Bench()
    for number in (1, 2, 3):
        bench.give(m.Connected(number, address=address(number)))
    bench.give(m.Received(1, ("x",)))
    assert bench.give(m.Connected(4, address=address(4))) == [m.Close(2)]


def test_a_peer_that_reads_nothing_has_a_bounded_queue():
    bench = Bench()
    bench.do(SendTo(9, ("a",)))
    bench.do(SendTo(9, tuple(range(8))))
    assert [each.address for each in bench.told(Unreachable)] == [9]


def test_messages_forgotten_while_dialling_are_not_sent():
    bench = Bench()
    bench.do(SendTo(9, ("old",)))
    bench.do(Forget(9))
    bench.do(SendTo(9, ("new",)))
    assert bench.give(m.Connected(1, "9")) == [m.Send(1, ["new"])]


def test_malformed_bytes_end_the_connection():
    bench = Bench()
    bench.give(m.Connected(1, address=address(9)))
    assert bench.give(m.Malformed(1, "no such type")) == [m.Close(1, abort=True)]
    assert bench.told(Unreachable) == [Unreachable(9, "malformed: no such type")]


class Wire:
    """A random network between two pools: connections open, cross, fail, break, and fill up."""

    def __init__(self, seed):
        self.rng = Random(seed)
        self.benches = {1: Bench(), 2: Bench()}
        self.queues: dict = {}  # (who reads, its connection) -> what is on its way
        self.other: dict = {}
        self.dialling = []
        self.number = 0
        self.writable, self.closing, self.sent = [], [], {1: 0, 2: 0}

    def execute(self, who):
        for effect in self.benches[who].done:
            match effect:
                case m.Connect():
                    self.dialling.append(who)
                case m.Send():
                    if (who, effect.connection) in self.other:
                        self.queues[self.other[who, effect.connection]].extend(effect.messages)
                case m.Close():
                    self.end((who, effect.connection))
                case m.AwaitWritable():
                    if (who, effect.connection) in self.other:
                        self.writable.append((who, effect.connection))

    def end(self, end):
        there = self.other.pop(end, None)
        if there is not None:
            self.other.pop(there, None)
            self.queues.pop(end, None)
            self.closing.append(there)

    def give(self, who, given):
        self.benches[who].give(given)
        self.execute(who)

    def step(self):
        choices = (self.send, self.deliver, self.dial, self.room, self.lose, self.forget, self.sweep)
        act = self.rng.choices(choices, (4, 6, 3, 3, 1, 1, 1))[0]
        act(self.rng.choice((1, 2)))

    def send(self, who):
        self.sent[who] += 1
        self.benches[who].machine.does.append(SendTo(3 - who, (self.sent[who],)))
        self.give(who, m.Nudge())

    def dial(self, who):
        if who in self.dialling:
            self.dialling.remove(who)
            there = 3 - who
            if self.rng.random() < 0.3:
                self.give(who, m.ConnectFailed(str(there), "refused"))
                return
            self.number += 2
            near, far = (who, self.number), (there, self.number + 1)
            self.other |= {near: far, far: near}
            self.queues |= {near: deque(), far: deque()}
            self.give(there, m.Connected(far[1], address=address(who)))
            self.give(who, m.Connected(near[1], str(there)))

    def deliver(self, who):
        if self.closing and self.rng.random() < 0.5:
            end = self.closing.pop(0)
            for message in self.queues.pop(end, ()):
                self.give(end[0], m.Received(end[1], (message,)))
            self.give(end[0], m.Disconnected(end[1], "closed"))
            return
        mine = [end for end, queue in self.queues.items() if end[0] == who and queue and end in self.other]
        if mine:
            end = self.rng.choice(mine)
            self.give(who, m.Received(end[1], (self.queues[end].popleft(),)))

    def room(self, who):
        for end in [end for end in self.writable if end[0] == who]:
            self.writable.remove(end)
            if end in self.other:
                self.give(who, m.Writable(end[1]))

    def forget(self, who):
        self.benches[who].machine.does.append(Forget(3 - who))
        self.give(who, m.Nudge())

    def sweep(self, who):
        self.give(who, m.TimerFired(("peer pool",)))

    def lose(self, who):
        for end in list(self.other)[:1]:
            self.end(end)


@pytest.mark.parametrize("seed", range(4))
def test_messages_arrive_at_most_once_and_no_state_leaks_through_any_connection_failures(seed):
    wire = Wire(seed)
    for _ in range(600):
        wire.step()
    for who, bench in wire.benches.items():
        numbers = [
            number for each in bench.told(ReceivedFrom) if each.address == 3 - who for number in each.messages
        ]
        assert len(numbers) > 5
        assert len(set(numbers)) == len(numbers)
        pool = bench.pool
        assert len(pool._addresses) <= LIMITS.connections
        assert set(pool._addresses.values()) <= set(pool._peers)
