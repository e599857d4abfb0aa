"""More events than the processors can handle: publishers wait, no peer is declared failed, no event is
lost.
"""

from collections import Counter
from functools import partial

import pytest

from node.protocols.can.messages import Route
from node.protocols.meghdoot.publishing.window import LATE_US, CongestionWindow
from tests.node.busy_network import BusyNetwork
from tests.node.protocols.meghdoot.societies import Society, assert_whole

NETWORK = partial(BusyNetwork, message_us=400)
MESSAGES_MAX = 80
"""An event, on average: some 55 where nothing is sent twice, with those of subscriptions and heartbeats."""


@pytest.mark.slow
def test_excess_events_wait_at_publishers_and_are_processed_after_the_load():
    """Publish 200 events a second on two processors, which can handle some 40."""
    society = Society(16, each=8, rate_per_s=50, network=NETWORK, run_us=7_000_000)
    offered, published = 4 * 50 * 7, len(society.published())
    assert_whole(society, 2_000, settle_us=5_000_000)
    assert 150 < published < offered / 2
    assert society.network.sent < MESSAGES_MAX * published
    assert not society.events() & {"relay", "failed", "takeover"}


@pytest.mark.slow
def test_simultaneous_subscriptions_wait_until_zones_have_capacity():
    """Make 480 subscriptions, for which two processors take some 5 s; only a few are sent twice."""
    said = Counter()

    def watch(source, target, messages):
        routed = [each.message for each in messages if isinstance(each, Route) and not each.hops > 1]
        said.update(type(each).__name__ for each in routed)

    society = Society(16, each=30, rate_per_s=1, network=NETWORK)
    society.network.watch = watch
    society.run(10_000_000)
    own = [each for node in society.nodes().values() for each in node.broker.subscriber.own.values()]
    assert (len(own), sum(each.is_confirmed for each in own)) == (480, 480)
    assert said["Store"] < 1.5 * 480


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
    window = CongestionWindow(64, 4, 3)
    window.answered(0, 0, 1)
    assert window.size == 3, "the limit of the experiment"
