"""Few packets: answers wait for something that goes the same way, no heartbeat where something just went."""

from collections import Counter

import pytest

from node.core import machine as m
from node.protocols.can.messages import Heartbeat, Routed
from tests.node.protocols.meghdoot.societies import Society

RUN_US = 4_000_000


def sends():
    """Return writes, messages by kind, and the society."""
    society = Society(12, each=2, rate_per_s=30)
    society.run(2_000_000)
    writes, kinds = Counter(), Counter()

    def watch(source, target, messages):
        writes["alone"] += all(type(each) is Routed for each in messages)
        kinds.update(map(type, messages))

    society.network.watch = watch
    society.run(RUN_US)
    return writes, kinds, society


@pytest.mark.slow
def test_most_hops_are_acknowledged_with_what_goes_there_anyway():
    writes, kinds, society = sends()
    assert kinds[Routed] > 400
    assert writes["alone"] < 0.6 * kinds[Routed]
    society.finish(6_000_000)
    assert society.judged()[:3] == (0, 0, 0)
    assert society.silent()


def test_no_heartbeat_goes_where_something_just_went():
    _, kinds, society = sends()
    pairs = sum(len(node.can.claims.others) for node in society.nodes().values())
    rounds = RUN_US / society.node("r0/publisher-0").parameters.heartbeat_us
    assert 0.2 * pairs * rounds < kinds[Heartbeat] < 0.7 * pairs * rounds
    assert not any(log.event == "failed" for _, _, log in society.logs)


def test_all_confirmations_leave_with_the_last_event():
    """A machine that stops publishing owes no answer for ever."""
    society = Society(12, rate_per_s=20)
    society.run(3_000_000)
    society.tell(m.StopDrivers())
    society.run(3_000_000)
    assert not any(node.broker.has_answers for node in society.nodes().values())
    assert society.silent()
