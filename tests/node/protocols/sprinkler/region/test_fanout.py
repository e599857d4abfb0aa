"""The F neighbours that are notified at once: drawn in each shuffle time."""

from random import Random

from node.protocols.sprinkler.publishing.channel import SprinklerChannel
from node.protocols.sprinkler.region.fanout import ShuffledFanout


def test_each_shuffle_time_has_other_targets():
    neighbours = [SprinklerChannel(number, f"client-{number}", 0, 1) for number in range(10)]
    fanout = ShuffledFanout(2, 100, Random(1), lambda: neighbours)
    fanout.start(0)
    drawn = {frozenset(fanout.renew(now_us)) for now_us in range(100, 2_000, 100)}
    assert all(len(each) == 2 for each in drawn)
    assert len(drawn) > 10
    assert not fanout.renew(1_999)
