"""Delays of messages in the simulator: rates of ports and links, cuts, losses, and readers."""

import itertools
import statistics
from random import Random

import pytest

from node.core import machine as m
from node.sim.clock import VirtualClock
from node.sim.pipe import RETRANSMIT_US, WINDOW_BYTES, Pipe, WidePipe
from node.sim.wires import LinkLine, SimulatedLinkDirection, SimulatedPort, wire_bytes

GIGABIT = 1_000_000_000
LAN = LinkLine(1_000, GIGABIT)
BIG = 125_000  # bytes: about a millisecond of a gigabit
BIG_US = wire_bytes(BIG) * 8 / 1000


class World:
    """A clock, and the times of deliveries."""

    def __init__(self):
        self.clock = VirtualClock()
        self.arrived = []

    def deliver(self, target, given, size_bytes):
        self.arrived.append((self.clock.now_us, target, given.problem))

    def pipe(self, outward, inward, target="x"):
        return Pipe(self.clock, (outward, inward), target, self.deliver)

    def wide(self, line, *, seed=0):
        random = Random(seed).random
        there, again = (SimulatedLinkDirection(hop, line, random) for hop in (("a", "b"), ("b", "a")))
        return self.over((there,), (again,)), there, again

    def over(self, links, back):
        ports = SimulatedPort(LAN), SimulatedPort(LAN)
        return WidePipe(self.clock, ports, "x", self.deliver, (links, back))

    def at(self, name):
        return next(time_us for time_us, _, each in self.arrived if each == name)

    def order(self):
        return [each for _, _, each in self.arrived]


def named(name):
    return m.StorageFailed(name)  # any input will do


def test_a_small_message_takes_the_delays_of_both_ports():
    world = World()
    world.pipe(SimulatedPort(LAN), SimulatedPort(LAN)).send(100, named("a"))
    world.clock.run_until(10_000)
    assert world.at("a") == 2_001


def test_long_messages_of_two_connections_share_the_senders_port():
    world = World()
    port = SimulatedPort(LAN)
    for name in ("a", "b"):
        world.pipe(port, SimulatedPort(LAN), name).send(BIG, named(name))
    world.clock.run_until(10_000)
    assert world.at("a") == pytest.approx(2_000 + BIG_US, abs=1)
    assert world.at("b") == pytest.approx(2_000 + 2 * BIG_US, abs=2)


def test_a_small_message_waits_only_for_long_ones_of_its_own_connection():
    world = World()
    port, inward = SimulatedPort(LAN), SimulatedPort(LAN)
    mine, other = world.pipe(port, inward, "mine"), world.pipe(port, inward, "other")
    mine.send(BIG, named("long"))
    mine.send(10, named("after it"))
    other.send(10, named("beside it"))
    world.clock.run_until(10_000)
    assert world.order() == ["beside it", "long", "after it"]


def test_a_busy_port_keeps_the_order():
    world = World()
    inward = SimulatedPort(LAN)
    pipes = [world.pipe(SimulatedPort(LAN), inward, name) for name in "abc"]
    for number in range(60):
        world.clock.run_until(number * 137)
        sizes = (BIG, 10, 2_000)
        pipes[number % 3].send(sizes[number % 7 % 3], named(number))
    world.clock.run_until(1_000_000)
    for remainder in range(3):
        mine = [number for number in world.order() if number % 3 == remainder]
        assert mine == sorted(mine)
    assert len(world.arrived) == 60


def test_connections_share_the_rate_of_a_link():
    world = World()
    line = LinkLine(15_000, 10_000_000)
    pipe, link, _ = world.wide(line)
    second = world.over((link,), pipe._back)
    pipe.send(BIG, named("a"))
    second.send(BIG, named("b"))
    world.clock.run_until(1_000_000)
    slow_us = wire_bytes(BIG) * 0.8
    assert world.at("b") - world.at("a") == pytest.approx(slow_us, rel=0.02)


def test_two_links_of_equal_rate_delay_a_message_once():
    world = World()
    line = LinkLine(15_000, 10_000_000)
    links = [SimulatedLinkDirection(("a", str(number)), line, Random(number).random) for number in range(3)]
    pipe = world.over(tuple(links[:2]), (links[2],))
    pipe.send(BIG, named("a"))
    world.clock.run_until(1_000_000)
    assert world.at("a") == pytest.approx(30_000 + 2_000 + wire_bytes(BIG) * 0.8, abs=10)


def test_small_messages_share_the_rate_of_a_link_filled_by_long_ones():
    world = World()
    pipe, link, _ = world.wide(LinkLine(15_000, 100_000))
    others = [world.over((link,), pipe._back) for _ in range(20)]
    pipe.send(BIG, named("long"))
    for number, other in enumerate(others):
        other.send(1_000, named(str(number)))
    world.clock.run_until(20_000_000)
    assert world.at("0") < 400_000
    assert world.at("19") == pytest.approx(20 * wire_bytes(1_000) * 80 + 17_000, rel=0.05)


def test_the_receiver_is_notified_of_parts_of_all_queued_messages():
    world = World()
    pipe, _, _ = world.wide(LinkLine(15_000, 1_000_000))
    parts = []
    pipe._deliver = lambda target, given, size_bytes: parts.append((world.clock.now_us, len(given.messages)))
    for _ in range(3):
        pipe.send(BIG, m.Received(1, (b"",)))
    world.clock.run_until(5_000_000)
    times_us = [time_us for time_us, _ in parts]
    gaps_us = [later - sooner for sooner, later in itertools.pairwise(times_us)]
    assert sum(count for _, count in parts) == 3
    assert 25 <= len(parts) - 3 <= 30
    assert max(gaps_us) <= 200_000


def test_messages_in_flight_at_a_cut_arrive_in_order_after_the_heal():
    world = World()
    pipe, link, _ = world.wide(LinkLine(40_000))
    pipe.send(10, named("flying"))
    world.clock.run_until(10_000)
    link.cuts += 1
    pipe.note_cut(link)
    pipe.send(10, named("held"))
    world.clock.run_until(500_000)
    assert world.arrived == []
    link.cuts -= 1
    pipe.note_heal()
    world.clock.run_until(1_000_000)
    assert world.order() == ["flying", "held"]
    assert world.at("flying") >= 500_000 + RETRANSMIT_US + 40_000


def test_if_only_the_reverse_direction_is_cut_messages_in_flight_arrive():
    world = World()
    pipe, _, back = world.wide(LinkLine(40_000))
    pipe.send(10, named("flying"))
    back.cuts += 1
    pipe.note_cut(back)
    pipe.send(10, named("held"))
    world.clock.run_until(300_000)
    assert world.order() == ["flying"]


def test_messages_of_the_same_microsecond_keep_their_order():
    world = World()
    pipe, _, _ = world.wide(LinkLine(1_000, 10 * GIGABIT))
    for number in range(300):
        world.clock.run_until(number // 2)
        pipe.send((1_400, 10, 10)[number % 3], named(number))
    world.clock.run_until(1_000_000)
    assert world.order() == list(range(300))


def test_losses_delay_messages_by_the_seed_and_drop_none():
    runs = []
    for seed in (1, 1, 2):
        world = World()
        pipe, _, _ = world.wide(LinkLine(10_000, loss=0.2), seed=seed)
        for number in range(100):
            pipe.send(1_000, named(number))
        world.clock.run_until(100_000_000)
        assert world.order() == list(range(100))
        runs.append(world.arrived)
    assert runs[0] == runs[1] != runs[2]
    assert runs[0][-1][0] > 12_000 + RETRANSMIT_US


def test_a_pipe_has_room_when_little_is_left_to_send_and_the_receiver_reads():
    world = World()
    pipe = world.pipe(SimulatedPort(LAN), SimulatedPort(LAN))
    told = []
    pipe.send(1_000_000, named("much"))
    pipe.when_room(lambda _: told.append(world.clock.now_us))
    world.clock.run_until(5_000)
    assert told == []
    world.clock.run_until(20_000)
    assert 7_000 < told[0] < 8_500
    pipe.leave_unread(WINDOW_BYTES)
    pipe.when_room(lambda _: told.append(world.clock.now_us))
    world.clock.run_until(100_000)
    assert len(told) == 1
    pipe.read(WINDOW_BYTES)
    world.clock.run_until(100_001)
    assert len(told) == 2


def test_an_abort_drops_all_messages_in_flight():
    world = World()
    pipe, _, _ = world.wide(LinkLine(40_000))
    pipe.send(10, named("lost"))
    pipe.discard()
    pipe.hurry(named("reset"))
    world.clock.run_until(100_000)
    assert world.order() == ["reset"]


@pytest.mark.parametrize("correlated", [0.0, 0.75])
def test_messages_deviate_from_the_delay_by_the_jitter_and_keep_their_order(correlated):
    world = World()
    pipe, *_ = world.wide(LinkLine(20_000, jitter_us=5_000, jitter_correlation=correlated))
    for number in range(1_000):
        pipe.send(100, named(number))
        world.clock.run_until((number + 1) * 12_000)
    world.clock.run_until(20_000_000)
    late = [time_us - number * 12_000 - 2_000 for number, (time_us, *_) in enumerate(world.arrived)]
    assert world.order() == list(range(1_000))
    assert 15_000 <= min(late) < 17_000
    assert 23_000 < max(late) <= 25_001
    assert correlation(late) == pytest.approx(correlated, abs=0.1)


def correlation(values):
    """Return the correlation of neighbouring values."""
    return statistics.correlation(values[:-1], values[1:])
