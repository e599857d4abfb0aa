"""Durable replicas in virtual time: acknowledged events survive a restart of all processes."""

import itertools

import pytest

from node.core import machine as m
from node.protocols.sprinkler.messages import Events
from node.systems import build_machine
from tests.node.chained import chain, chained, play
from tests.node.cluster import COARSE, Cluster, S, specs

ORDERS = list(itertools.permutations(range(3)))
DURABLE = {"durable": True, "segment_limit_bytes": 20_000}


def cluster(**given):
    return Cluster(parameters={**COARSE, **DURABLE}, storage="/disks", **given)


def durable_chain(script="2 run", **given):
    """Return two regions of three durable replicas after these events."""
    c = chained(parameters=DURABLE, **given)
    play(c, script)
    return c


def check(c):
    """Drain, and check that every client has all published events."""
    c.drain()
    assert c.logged("events_lost") == []
    c.check_deliveries()


def test_nothing_is_acknowledged_or_served_before_it_is_synced():
    c = cluster(regions=1)
    c.run(2 * S)
    node = c.network.nodes["r0/proxy-0"]
    c.network.disks.fill(node)
    c.run(2 * S + S // 10)
    at = c.published()[0]
    c.run(3 * S)
    stored = sum(
        message.count
        for messages in c.network.disks.disk_of("r0/proxy-0").segments.values()
        for message in messages
        if isinstance(message, Events)
    )
    assert c.published()[0] == at == c.delivered()["r0/client-0"][0] == stored
    c.network.disks.free(node)
    c.run(5 * S)
    c.drain()
    assert c.published()[0] > at + 1000
    c.check_deliveries()


def test_a_full_disk_refuses_publishers_and_loses_no_event():
    c = cluster(regions=2)
    c.run(2 * S)
    node = c.network.nodes["r0/proxy-0"]
    c.network.disks.fill(node)
    c.run(6 * S)
    refused = [fields for _, name, fields in c.logged("refused_peer") if name == "r0/proxy-0"]
    assert refused
    assert {fields["code"] for fields in refused} == {"history_full"}
    elsewhere = c.published()[1]
    assert elsewhere > 8000  # the other region goes on
    c.network.disks.free(node)
    c.run(8 * S)
    check(c)


def test_a_killed_replica_has_all_acknowledged_events_and_knows_repeated_publications():
    """Lose the acknowledgement with the process: the driver repeats, and no event is stored twice."""
    c = cluster(regions=1)
    for kill_us in (2 * S, 2 * S + 333_333, 3 * S, 3 * S + 777_777):
        c.run(kill_us)
        acknowledged = c.published()[0]
        c.network.kill("r0/proxy-0")
        c.network.start("r0/proxy-0")
        c.run(c.network.clock.now_us + 1)
        assert c.machine("r0/proxy-0").history.streams[0].cnt >= acknowledged > 0
    c.run(6 * S)
    c.drain()
    driver = c.machine("r0/driver-0")
    assert c.machine("r0/proxy-0").history.streams[0].cnt == driver.loads[0].publisher.published
    c.check_deliveries()


def test_durable_replicas_without_storage_are_refused():
    spec = specs(regions=1, parameters={"durable": True})[0]
    with pytest.raises(ValueError, match="r0/proxy-0"):
        build_machine(spec, None)


@pytest.mark.slow
def test_a_region_that_loses_power_restarts_with_all_acknowledged_events():
    c = durable_chain(seed=1)
    acknowledged = c.published()
    play(c, "2 black r0 proxy configuration, 2.25 boot r0, 10.25 run")
    check(c)
    assert c.published()[0] > acknowledged[0] + 500
    for name in c.dark:
        if "proxy" in name:
            streams = c.machine(name).history.streams
            assert {stream: state.committed for stream, state in streams.items()} == c.published(), name


@pytest.mark.parametrize(
    ("away", "roles"), [(0, "proxy"), (1, "proxy configuration"), (2, "proxy configuration")]
)
def test_after_a_power_failure_a_region_continues_without_an_absent_replica(roles, away):
    """Test each replica: no event was committed without the others, whose disks have all events."""
    c = durable_chain()
    acknowledged = c.published()
    play(c, f"2 black r0 {roles}")
    c.dark.remove(f"r0/proxy-{away}")
    play(c, "3 boot r0, 6 run")
    assert chain(c) in {"".join(str(index) for index in order if index != away) for order in ORDERS}
    check(c)
    assert c.published()[0] > acknowledged[0] + 500
    assert c.logged("chain_began_anew") == []


def test_data_that_only_an_absent_replica_may_have_is_awaited_until_it_is_given_up():
    """Let the last of three replicas run alone for a while: the others' disks lack its events."""
    c = durable_chain("2 kill head, 3 kill middle, 4 chain 2")
    alone = c.published()[0]
    play(c, "4 kill tail, 4 start head middle, 8 chain 2")
    assert c.published()[0] < alone + 100
    c.network.broadcast(m.GiveUp("r0/proxy-2"))
    c.run(12 * S)
    assert sorted(chain(c)) == ["0", "1"]
    c.drain()
    assert c.published()[0] > alone + 1000
    assert [fields["replica"] for _, _, fields in c.logged("chain_began_anew")] == ["r0/proxy-1"]
    assert c.logged("follower_ahead") == []


@pytest.mark.parametrize("index", [0, 2])
def test_a_chain_continues_without_a_replica_whose_disk_is_full(index):
    c, others = durable_chain(), "012".replace(str(index), "")
    node = c.network.nodes[f"r0/proxy-{index}"]
    c.network.disks.fill(node)
    play(c, f"4 chain {others}")
    assert c.published()[0] > 1300
    c.network.disks.free(node)
    play(c, f"6 chain {others}{index}")
    check(c)


def test_a_chain_whose_disks_are_all_full_waits_for_the_first_that_has_room():
    c = durable_chain()
    nodes = [c.network.nodes[f"r0/proxy-{index}"] for index in range(3)]
    for node in nodes:
        c.network.disks.fill(node)
    c.run(4 * S)
    at = c.published()[0]
    c.network.disks.free(nodes[1])
    play(c, "8 chain 1")
    assert c.published()[0] > at + 1000
    for node in nodes:
        c.network.disks.free(node)
    play(c, "10 run")
    c.drain()
    assert len(chain(c)) == 3
    c.check_deliveries()


def test_replicas_killed_in_turn_lose_no_event_and_keep_their_state():
    c = durable_chain(seed=1)
    for turn in range(6):
        name = f"r0/proxy-{(1 + turn) % 3}"
        c.network.kill(name)
        c.run(c.network.clock.now_us + 100_000 + 30_000 * turn)
        c.network.start(name)
        c.run(c.network.clock.now_us + 1)
        assert c.machine(name).history.streams[1].cnt > 0
        c.run(c.network.clock.now_us + 900_000)
    check(c)
