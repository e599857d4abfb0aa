"""The flat network: delivery times, cuts, and the same trace for the same seed."""

from random import Random

import pytest

from node.core import machine as m
from node.core.peers.peer_pool import ReceivedFrom, SendTo, Unreachable
from node.sim.flat_network import FlatNetwork

DELAY_US = 1_000


class Chatter:
    """Records its inputs, and returns the effects of `act` for each."""

    frame_limit_bytes = 1 << 20

    def __init__(self, act=lambda given, now_us: ()):
        self.heard = []
        self.act = act

    def handle(self, given, now_us):
        self.heard.append((now_us, given))
        return self.act(given, now_us)

    def progress(self):
        return m.NodeProgress()


@pytest.fixture
def network():
    network = FlatNetwork(lambda a, b: DELAY_US * (1 + abs(a - b)))
    for address in range(3):
        network.add(address, Chatter())
    return network


def send(network, source, target, *messages):
    network.call(source, lambda machine, now_us: [SendTo(target, messages)])


def heard(network, address):
    return network.nodes[address].machine.heard


def test_a_message_takes_the_delay_between_its_nodes(network):
    send(network, 0, 2, "far")
    send(network, 0, 1, "near")
    network.run(10_000)
    assert heard(network, 2) == [(3_000, ReceivedFrom(0, ("far",)))]
    assert heard(network, 1) == [(2_000, ReceivedFrom(0, ("near",)))]
    assert network.sent == 2


def test_messages_between_two_nodes_arrive_in_order(network):
    rng, sent = Random(1), []
    for number in range(100):
        network.run(network.clock.now_us + rng.randrange(3) * 100)
        sent.append(number)
        send(network, 0, 1, number)
    network.run(network.clock.now_us + 10_000)
    assert [message for _, given in heard(network, 1) for message in given.messages] == sent


def test_cut_routes_are_silent_in_one_direction(network):
    network.reaches = lambda source, target: (source, target) != (0, 1)
    send(network, 0, 1, "lost")
    send(network, 1, 0, "back")
    network.run(10_000)
    assert heard(network, 1) == []
    assert heard(network, 0) == [(2_000, ReceivedFrom(1, ("back",)))]
    network.reaches = None
    send(network, 0, 1, "again")
    network.run(20_000)
    assert [given for _, given in heard(network, 1)] == [ReceivedFrom(0, ("again",))]


def test_a_sender_to_a_dead_node_is_notified_after_a_round_trip(network):
    network.kill(1)
    send(network, 0, 1, "lost")
    network.run(10_000)
    assert heard(network, 0) == [(4_000, Unreachable(1, "refused", is_refused=True))]


def test_a_timer_that_is_reset_fires_once_at_its_last_time(network):
    timer = ("wait",)
    for at_us in (1_000, 5_000):
        network.call(0, lambda machine, now_us, at_us=at_us: [m.SetTimer(timer, at_us)])
    network.call(1, lambda machine, now_us: [m.SetTimer(timer, 1_000), m.CancelTimer(timer)])
    network.run(10_000)
    assert heard(network, 0) == [(5_000, m.TimerFired(timer))]
    assert heard(network, 1) == []
