"""How long events take while a link is cut: a way round it is looked for where an answer does not come."""

import pytest

from node.core.deliveries import RecordKind
from tests.node.protocols.meghdoot.societies import Society


def latencies_us(society, since_us):
    """Return the sorted latencies of events published since a time."""
    published = society.published()
    return sorted(
        time_us - published[record.stream, record.first_seq][0]
        for records in society.records.values()
        for time_us, record in records
        if record.kind == RecordKind.DELIVERED and published[record.stream, record.first_seq][0] >= since_us
    )


@pytest.mark.slow
def test_a_subscriber_across_a_cut_is_notified_again_by_the_zone():
    """Neighbours have ways round the cut by then; each zone needs its own to far subscribers."""
    society = Society(28, seed=1, rate_per_s=0.1)
    society.run(1_000_000)
    society.cut((2, 3))
    society.run(45_000_000)
    society.finish(10_000_000)
    took_us = latencies_us(society, 0)
    assert len(took_us) > 200
    assert any(each > 500_000 for each in took_us)  # searched for
    assert took_us[-1] < society.node("r0/publisher-0").parameters.retransmit_us
    assert society.judged()[:3] == (0, 0, 0)
    assert society.silent()


@pytest.mark.slow
def test_messages_in_flight_at_a_cut_do_not_wait_for_their_publisher():
    """Zones pass it on once more, before heartbeats are missed; publishers would send it again after 3 s."""
    society = Society(28, attributes=1, seed=3, rate_per_s=5)
    society.run(3_000_000)
    society.cut((2, 3))
    cut_us = society.now_us
    society.run(5_000_000)
    society.finish(10_000_000)
    took_us = latencies_us(society, cut_us)
    assert len(took_us) > 1_000
    assert any(each > 500_000 for each in took_us)
    assert took_us[-1] < 2_000_000
    assert society.judged()[:3] == (0, 0, 0)
    assert society.silent()
