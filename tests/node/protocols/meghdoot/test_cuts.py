"""Latency of events while a link is cut: if no answer arrives, a way around the cut is searched."""

import pytest

from node.core.deliveries import RecordKind
from tests.node.protocols.meghdoot.societies import Society, assert_whole

pytestmark = pytest.mark.slow


def took_us(society, since_us, settle_us):
    """Return the sorted latencies of events published since a time, once nothing is lost."""
    assert_whole(society, 150, settle_us)
    published_us = {event: time_us for event, (time_us, _) in society.published().items()}
    came = [each for name in list(society.records) for each in society.recorded(name, RecordKind.DELIVERED)]
    came_us = [(us, published_us[record.stream, record.first_seq]) for us, record in came]
    return sorted(us - sent_us for us, sent_us in came_us if sent_us >= since_us)


def test_a_subscriber_across_a_cut_is_notified_again_by_the_zone():
    """Check each zone: its neighbours have ways around the cut by then, but it needs its own to far
    subscribers.
    """
    society = Society(28, seed=1, rate_per_s=0.1, run_us=1_000_000)
    society.cut((2, 3), then_us=35_000_000)
    took = took_us(society, 0, 10_000_000)
    assert any(each > 500_000 for each in took)  # searched for
    assert took[-1] < society.node("r0/publisher-0").parameters.retransmit_us


def test_messages_in_flight_at_a_cut_do_not_wait_for_their_publisher():
    """Check that zones forward them again before heartbeats are missed; publishers would resend them after 3
    s.
    """
    society = Society(24, attributes=1, seed=3, rate_per_s=5, run_us=2_000_000)
    society.cut((2, 3))
    cut_us = society.now_us
    society.run(4_000_000)
    took = took_us(society, cut_us, 6_000_000)
    assert len(took) > 500
    assert any(each > 500_000 for each in took)
    assert took[-1] < 2_000_000
