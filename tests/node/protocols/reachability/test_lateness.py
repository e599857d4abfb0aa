"""If a node or its peers are late, timeouts are extended by that lateness."""

from dataclasses import dataclass

import pytest

from node.core import machine as m
from node.protocols.reachability.hops import HopAcknowledgements
from node.protocols.reachability.lateness import HALF_US, LATE_MAX, Lateness
from node.protocols.reachability.nodes import NodeHandle

TIMEOUT_US = 500_000
NEAR, FAR = NodeHandle(1, 1), NodeHandle(2, 2)


@dataclass(frozen=True)
class Message:
    number: int = 0
    hops: int = 0


def test_lateness_decays_by_halves_and_is_bounded():
    late = Lateness(TIMEOUT_US)
    late.note(800_000, 0)
    late.note(100_000, 0)
    assert (late.at(0), late.at(HALF_US), late.at(3 * HALF_US)) == (800_000, 400_000, 100_000)
    assert (late.since(0, HALF_US), late.since(1, HALF_US)) == (400_000, 0)
    late.note(10**12, HALF_US)
    assert late.at(HALF_US) == late.since(1, HALF_US) == LATE_MAX * TIMEOUT_US
    assert late.at(60 * HALF_US) == 0


def never(address):
    """Return that no node reports parts of a long message."""
    return False


@pytest.fixture
def hops():
    """Return hop acknowledgements that put their effects into `effects`."""
    effects = []
    made = HopAcknowledgements(TIMEOUT_US, effects.append)
    made.effects = effects
    return made


def due_us(hops):
    return [effect.at_us for effect in hops.effects if isinstance(effect, m.SetTimer)][-1]


def test_a_late_timer_does_not_count_as_lateness_of_a_peer(hops):
    number = hops.hand(NEAR, Message(), 1_000).number
    assert hops.late(number, 1_000 + 4 * TIMEOUT_US, never) is None
    assert due_us(hops) == 1_000 + 4 * TIMEOUT_US + TIMEOUT_US + 3 * TIMEOUT_US
    assert hops.late(number, due_us(hops), never).node == NEAR


@pytest.mark.parametrize(("answers", "late_us"), [(NEAR, TIMEOUT_US), (FAR, 0)])
def test_the_timeout_of_a_late_node_grows(hops, answers, late_us):
    message = hops.hand(NEAR, Message(), 0)
    again = hops.hand(FAR, hops.late(message.number, TIMEOUT_US, never).route, TIMEOUT_US)
    assert again.number == message.number
    hops.routed(answers.address, message.number, 2 * TIMEOUT_US)
    assert hops.lateness.at(2 * TIMEOUT_US) == late_us
    hops.hand(NEAR, Message(), 2 * TIMEOUT_US)
    assert due_us(hops) == 3 * TIMEOUT_US + late_us


def test_the_timeout_doubles_with_each_retransmission(hops):
    now_us, waited = 0, []
    message = hops.hand(NEAR, Message(), now_us)
    for _ in range(7):
        waited.append(due_us(hops) - now_us)
        now_us = due_us(hops)
        message = hops.hand(NEAR, hops.late(message.number, now_us, never).route, now_us)
    assert waited == [TIMEOUT_US << times for times in (0, 1, 2, 3, 4, 4, 4)]


def test_the_timeout_is_extended_while_the_receiver_gets_a_long_message(hops):
    number = hops.hand(NEAR, Message(), 0).number
    assert hops.late(number, TIMEOUT_US, lambda address: address == NEAR.address) is None
    assert due_us(hops) == 2 * TIMEOUT_US
    assert hops.lateness.at(TIMEOUT_US) == 0
    assert hops.late(number, due_us(hops), never).node == NEAR
