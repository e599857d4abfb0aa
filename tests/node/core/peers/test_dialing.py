"""Dialling: attempts never stop, have a bounded rate, and detect a healed link soon."""

from random import Random

from node.core.machine import CancelTimer, SetTimer
from node.core.peers.dialing import Dialer, DialEvent, DialState, Pauses, Target

FIRST_US, LAST_US, TIMEOUT_US = 50_000, 500_000, 1_000_000


class Bench:
    """A dialler that has started."""

    def __init__(self):
        self.effects = []
        pauses = Pauses(FIRST_US, LAST_US, TIMEOUT_US)
        self.dialer = Dialer(Target("peer", "address", 7), pauses, Random(1), self.effects.append)
        self.now_us = 0
        self.take(DialEvent.START)

    def take(self, event, after_us=0):
        self.now_us += after_us
        self.effects.clear()
        return self.dialer.take(event, self.now_us)

    def pause_us(self, event, after_us=0):
        """Process an event that ends an attempt or a connection; return the pause that follows."""
        assert self.take(event, after_us)
        (timer,) = [effect for effect in self.effects if isinstance(effect, SetTimer)]
        return timer.at_us - self.now_us


def test_pauses_double_up_to_a_limit_and_attempts_never_end():
    bench, pauses = Bench(), []
    for _ in range(100):
        pauses.append(bench.pause_us(DialEvent.FAILED))
        assert bench.take(DialEvent.RETRY, after_us=pauses[-1])
    assert FIRST_US * 0.75 <= pauses[0] <= FIRST_US
    assert pauses[0] < pauses[1] < pauses[2]
    assert all(LAST_US * 0.75 <= pause <= LAST_US for pause in pauses[5:])


def test_an_attempt_that_timed_out_is_soon_followed_by_the_next():
    bench = Bench()
    for _ in range(10):
        assert bench.pause_us(DialEvent.FAILED, after_us=TIMEOUT_US) == FIRST_US // 2
        bench.take(DialEvent.RETRY)


def test_pauses_grow_if_a_peer_closes_each_connection_at_once():
    bench, pauses = Bench(), []
    for _ in range(6):
        bench.take(DialEvent.CONNECTED)
        pauses.append(bench.pause_us(DialEvent.LOST))
        bench.take(DialEvent.RETRY, after_us=pauses[-1])
    assert pauses[-1] > 4 * pauses[0]


def test_a_lost_peer_that_had_sent_a_message_is_redialled_soon():
    bench = Bench()
    for _ in range(5):
        bench.take(DialEvent.FAILED)
        bench.take(DialEvent.RETRY)
    bench.take(DialEvent.CONNECTED)
    bench.dialer.settled()
    assert bench.pause_us(DialEvent.LOST, after_us=10_000_000) <= FIRST_US


def test_a_stopped_dialler_cancels_its_timer():
    bench = Bench()
    bench.take(DialEvent.FAILED)
    bench.take(DialEvent.STOP)
    assert bench.effects == [CancelTimer(("dial", "peer"))]
    assert not bench.take(DialEvent.RETRY)
    assert bench.dialer.state is DialState.IDLE
