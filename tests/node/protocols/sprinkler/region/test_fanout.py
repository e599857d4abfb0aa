"""The F neighbours that are notified at once: drawn in each shuffle time."""

from random import Random

from node.protocols.sprinkler.publishing.channel import SprinklerChannel
from node.protocols.sprinkler.region.fanout import ShuffledFanout


def fanout_of_two(waiting=(), seed=1):
    neighbours = [SprinklerChannel(number, f"client-{number}", 0, 1) for number in range(10)]
    fanout = ShuffledFanout(2, 100, Random(seed), lambda: neighbours, lambda channel: channel in waiting)
    fanout.start(0)
    return fanout


def test_each_shuffle_time_has_other_targets():
    fanout = fanout_of_two()
    drawn = {frozenset(fanout.renew(now_us)) for now_us in range(100, 2_000, 100)}
    assert all(len(each) == 2 for each in drawn)
    assert len(drawn) > 10
    assert not fanout.renew(1_900)


def test_nodes_that_hear_of_an_event_at_once_shuffle_at_different_times():
    first_us = set()
    for seed in range(20):
        fanout = fanout_of_two(seed=seed)
        fanout.renew(10_000)
        first_us.add(next(now_us for now_us in range(10_001, 10_101) if fanout.renew(now_us)))
    assert len(first_us) > 10
    assert max(first_us) - min(first_us) > 50


def test_a_neighbour_that_waits_for_answers_keeps_its_place():
    waiting = []
    fanout = fanout_of_two(waiting)
    waiting.append(slow := fanout.targets[1])
    others = set()
    for now_us in range(100, 2_000, 100):
        (drawn,) = fanout.renew(now_us)
        assert set(fanout.targets) == {slow, drawn}
        others.add(drawn)
    assert len(others) > 5
    waiting.clear()
    assert len(fanout.renew(2_000)) == 2
