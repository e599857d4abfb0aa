"""More events than the processors can handle: publishers wait, no peer is declared failed, no event is
lost.
"""

from collections import Counter
from functools import partial

import pytest

from node.core import machine as m
from node.protocols.can.messages import Route
from node.protocols.meghdoot.publishing.window import LATE_US, CongestionWindow
from tests.node.busy_network import BusyNetwork
from tests.node.protocols.meghdoot.societies import Society

MESSAGE_US = 400
MESSAGES_MAX = 80
"""An event, on average: some 55 where nothing is sent twice, with those of subscriptions and heartbeats."""


@pytest.mark.slow
def test_excess_events_wait_at_publishers_and_are_processed_after_the_load():
    """Two processors can do some 40 of the 200 events a second."""
    society = Society(20, each=8, rate_per_s=50, network=partial(BusyNetwork, message_us=MESSAGE_US))
    society.run(10_000_000)
    offered, published = 4 * 50 * 10, len(society.published())
    society.tell(m.StopDrivers())
    society.run(6_000_000)
    assert society.silent()
    lost, stray, repeated, delivered = society.judged()
    assert (lost, stray, repeated) == (0, 0, 0)
    assert delivered > 4_000
    assert 250 < published < offered / 2
    assert society.network.sent < MESSAGES_MAX * published
    assert not {log.event for _, _, log in society.logs} & {"relay", "failed", "takeover"}


@pytest.mark.slow
def test_subscriptions_at_once_wait_for_each_other_until_zones_have_kept_up():
    """800 of them, for which two processors take some 8 s: few are said twice."""
    said = Counter()

    def watch(source, target, messages):
        routed = [each.message for each in messages if isinstance(each, Route) and not each.hops > 1]
        said.update(type(each).__name__ for each in routed)

    society = Society(20, each=40, rate_per_s=1, network=partial(BusyNetwork, message_us=MESSAGE_US))
    society.network.watch = watch
    society.run(15_000_000)
    kept = sum(len(node.broker.subscriber.own) for node in society.nodes().values())
    confirmed = sum(
        own.is_confirmed for node in society.nodes().values() for own in node.broker.subscriber.own.values()
    )
    assert (kept, confirmed) == (800, 800)
    assert said["Store"] < 1.5 * 800


def test_the_window_grows_without_late_peers_and_shrinks_once_per_window_in_flight():
    window = CongestionWindow(64, 4, 1_000)
    assert window.size == 64
    for at_us in range(10):
        window.answered(at_us, 0, 100)
    assert window.size == 64 + 10
    window.answered(10, LATE_US + 1, 200)
    shrunk = window.size
    assert 4 < shrunk < 64
    window.answered(11, LATE_US + 1, 201)
    assert window.size == shrunk
    window.answered(12, 0, 202)
    assert shrunk < window.size < shrunk + 1
    for at_us in range(1_000, 2_000):
        window.unanswered(at_us, at_us)
    assert window.size == 4


def test_the_window_stays_within_what_the_experiment_sets():
    window = CongestionWindow(64, 4, 3)
    window.answered(0, 0, 1)
    assert window.size == 3
