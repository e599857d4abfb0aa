"""The F neighbours that are told at once: by the paper drawn in each shuffle time, or kept while they ask."""

from random import Random

import pytest

from node.core import machine as m
from node.protocols.sprinkler.messages import Events, Notify
from node.protocols.sprinkler.publishing.channel import SprinklerChannel
from node.protocols.sprinkler.region.fanout import IGNORED_NOTIFYS, KeptFanout, ShuffledFanout
from tests.node.cluster import COARSE, Cluster, S

CLIENTS = 30


def channels(count):
    return [SprinklerChannel(number, f"client-{number}", 0, 1) for number in range(count)]


def kept(neighbours, fanout=2, *, is_root=False):
    return KeptFanout(fanout, Random(1), lambda: neighbours, is_root=is_root)


def tell(fanout, times=1):
    """Notify all targets this often, and return the targets of the last round."""
    for _ in range(times):
        told = list(fanout.targets)
        for channel in told:
            fanout.offer(channel)
        fanout.renew(0)
    return told


def test_the_paper_draws_new_targets_each_shuffle_time():
    neighbours = channels(10)
    fanout = ShuffledFanout(2, 100, Random(1), lambda: neighbours)
    fanout.start(0)
    drawn = {frozenset(fanout.renew(now_us)) for now_us in range(100, 2_000, 100)}
    assert all(len(each) == 2 for each in drawn)
    assert len(drawn) > 10
    assert not fanout.renew(1_999)


def test_each_neighbour_is_tried_once():
    fanout = kept(channels(6))
    fanout.start(0)
    tried = [channel.name for _ in range(5) for channel in tell(fanout)]
    assert sorted(tried) == [f"client-{number}" for number in range(6)]
    assert not fanout.targets


def test_a_requesting_target_is_kept_until_it_ignores_several_in_a_row():
    fanout = kept(neighbours := channels(1))
    fanout.start(0)
    tell(fanout)
    fanout.asked(neighbours[0])
    for _ in range(5):
        assert tell(fanout, IGNORED_NOTIFYS - 1)
        fanout.asked(neighbours[0])
    assert tell(fanout, IGNORED_NOTIFYS)
    assert not fanout.targets


def test_a_requesting_peer_replaces_a_tried_target_but_no_requesting_one():
    one, two, three, four = neighbours = channels(4)
    fanout = kept(neighbours[:2])
    fanout.start(0)
    for channel in (one, two, three):
        fanout.offer(channel) if channel in fanout.targets else None
        fanout.asked(channel)
    fanout.asked(four)
    assert set(fanout.targets) == {one, two}


def test_the_root_tells_f_even_if_none_of_them_ask():
    fanout = kept(channels(5), is_root=True)
    fanout.start(0)
    assert len(tell(fanout, 20)) == 2


def test_a_neighbour_that_is_gone_leaves_its_place():
    fanout = kept(neighbours := channels(3))
    fanout.start(0)
    lost = fanout.targets[0]
    neighbours.remove(lost)
    assert fanout.lost(lost)
    assert len(fanout.fill()) == 1
    assert not fanout.lost(lost)


# --- Regions that keep their fanout


def region(clients=CLIENTS, **parameters):
    given = {**COARSE, "keep_fanout": True, "flush_interval_us": 200_000, **parameters}
    return Cluster(regions=1, clients=clients, rate_per_s=100, parameters=given)


def sent(cluster, kind, since_us):
    return [line for line in cluster.network.trace if type(line.message) is kind and line.time_us > since_us]


@pytest.mark.parametrize("fanout", [1, 4])
def test_every_client_gets_all_events_in_order_with_few_redundant_notifications(fanout):
    cluster = region(fanout=fanout)
    cluster.run(10 * S)
    batches = len(sent(cluster, Events, 6 * S)) / CLIENTS
    told = len(sent(cluster, Notify, 6 * S)) / CLIENTS
    cluster.drain(5 * S)
    cluster.check_deliveries()
    assert batches > 15
    assert told / batches < 2.5  # with a fanout that is shuffled 4, and of slow streams 3 more


def test_each_batch_reaches_everyone_before_the_next_one():
    cluster = region()
    cluster.run(6 * S)
    for _ in range(20):
        published = cluster.published()[0]
        cluster.run(cluster.network.clock.now_us + 30_000)
        assert all(got[0] >= published for got in cluster.delivered().values())


def test_when_a_third_crashes_the_others_find_other_sources():
    cluster = region()
    cluster.run(5 * S)
    for number in range(10):
        cluster.network.kill(f"r0/client-{number}")
    cluster.run(8 * S)
    published = cluster.published()[0]
    cluster.run(8 * S + 150_000)
    assert all(got[0] >= published for got in cluster.delivered().values() if got)
    cluster.network.tell(m.StopDrivers())
    cluster.drain(5 * S)
    cluster.check_deliveries()
