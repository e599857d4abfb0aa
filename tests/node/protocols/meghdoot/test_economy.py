"""Few packets: answers wait for other messages to the same peer, which also replace heartbeats."""

from collections import Counter

import pytest

from node.protocols.can.messages import Heartbeat, Routed
from tests.node.protocols.meghdoot.societies import Society, assert_whole

RUN_US = 4_000_000


@pytest.mark.slow
def test_answers_are_sent_with_other_messages_which_replace_heartbeats():
    """Check, too, that a machine that stops publishing has no pending answers."""
    society = Society(12, each=2, rate_per_s=30, run_us=2_000_000)
    writes, kinds = Counter(), Counter()

    def watch(source, target, messages):
        writes["alone"] += all(type(each) is Routed for each in messages)
        kinds.update(map(type, messages))

    society.network.watch = watch
    society.run(RUN_US)
    assert kinds[Routed] > 400
    assert writes["alone"] < 0.6 * kinds[Routed]
    pairs = sum(len(node.can.claims.others) for node in society.nodes().values())
    rounds = RUN_US / society.node("r0/publisher-0").parameters.heartbeat_us
    assert 0.2 * pairs * rounds < kinds[Heartbeat] < 0.7 * pairs * rounds
    assert "failed" not in society.events()
    assert_whole(society, settle_us=3_000_000)
    assert not any(node.broker.answers for node in society.nodes().values())
