"""A stream whose owner lost its state begins a new epoch: no client gets two contents under one number."""

import pytest

from node.core import machine as m
from node.core.deliveries import RecordKind
from node.core.epochs import epoch_of, first_seq_of_epoch
from tests.node.chained import chained
from tests.node.cluster import Cluster, S

QUICK = {"flush_interval_us": 50_000, "advertisement_period_us": 200_000, "restore_wait_us": 400_000}


def cut_off(cluster, region, others):
    """Nothing goes in or out of the region."""
    for other in others:
        cluster.network.cut(region, other)


def rejoin(cluster, region, others):
    """End a `cut_off`."""
    for other in others:
        cluster.network.heal(region, other)


def lose_power(cluster, region, roles=("proxy", "driver", "client", "configuration")):
    """Every process of the region dies at once; which ones they were."""
    nodes = cluster.network.nodes.items()
    names = [name for name, node in nodes if node.spec.region == region and node.spec.role in roles]
    for name in names:
        cluster.network.kill(name)
    return names


def get_power(cluster, names):
    """They start again, and drivers publish."""

    for name in names:
        cluster.network.start(name)
    cluster.run(cluster.network.clock.now_us + 800_000)
    for name in names:
        if "driver" in name:
            cluster.network.give(name, m.Go(cluster.network.clock.now_us))


def check_no_number_has_two_contents(cluster, stream):
    """Among all clients."""
    first_seen = {}
    for client in cluster.delivered():
        for of, first, *what in cluster.records(client, RecordKind.DELIVERED):
            assert of != stream or first_seen.setdefault(first, what) == what, (client, first)


def blackout(cluster, others, region="r0"):
    """Cut the region off, let it lose power, restart it, let it publish more than before, and reconnect
    it.
    """
    cluster.run(3 * S)
    cut_off(cluster, region, others)
    cluster.run(4 * S)
    names = lose_power(cluster, region)
    cluster.run(5 * S)
    get_power(cluster, names)
    cluster.run(12 * S)
    rejoin(cluster, region, others)
    cluster.run(15 * S)
    cluster.drain()


@pytest.mark.parametrize("regions", [2, 3])
def test_a_region_that_lost_power_while_cut_off_begins_an_epoch_that_the_others_take(regions):
    cluster = Cluster(regions=regions, rate_per_s=1000, parameters=QUICK)
    others = [f"r{number}" for number in range(1, regions)]
    blackout(cluster, others)
    check_no_number_has_two_contents(cluster, 0)
    published = cluster.records("r0/driver-0", RecordKind.PUBLISHED)
    assert {epoch_of(first) for _, first, _, _ in published} == {1}
    for name in (f"{region}/client-0" for region in ("r0", *others)):
        got = cluster.records(name, RecordKind.DELIVERED)
        new = [row for row in got if row[0] == 0 and epoch_of(row[1]) == 1]
        assert new == published, f"{name} has the new epoch from its first event on"
    for region in others:
        got = cluster.records(f"{region}/client-0", RecordKind.DELIVERED)
        old = [row for row in got if row[0] == 0 and epoch_of(row[1]) == 0]
        assert old, "the old epoch's events stay delivered"
    lines = [
        (name, line.level, line.fields["epoch"])
        for name, node in cluster.network.nodes.items()
        for _, line in node.logs
        if line.event in {"epoch_began", "epoch_taken"} and line.fields["stream"] == 0
    ]
    assert sorted(lines) == [(f"{region}/proxy-0", "error", 1) for region in ("r0", *others)]
    for name in cluster.delivered():
        marks = [row[:3] for row in cluster.records(name, RecordKind.EPOCH)]
        assert marks == [(0, first_seq_of_epoch(1) - 1, 0)], name


def test_a_number_that_was_acknowledged_to_a_driver_that_died_with_its_region_is_not_used_again():
    """All others speak, and none of them knows of it."""
    cluster = Cluster(regions=2, parameters=QUICK)
    cluster.run(3 * S)
    cut_off(cluster, "r0", ["r1"])
    cluster.run(3 * S + 300_000)
    numbered = cluster.published()[0]
    known = cluster.machine("r1/proxy-0").history.streams[0].cnt
    assert numbered > known
    names = lose_power(cluster, "r0")
    rejoin(cluster, "r0", ["r1"])
    get_power(cluster, names)
    cluster.run(8 * S)
    again = [row[1] for row in cluster.records("r0/driver-0", RecordKind.PUBLISHED) if row[0] == 0]
    assert again
    assert min(again) > numbered
    cluster.drain()
    assert cluster.delivered()["r1/client-0"][0] == cluster.published()[0]


@pytest.mark.slow
def test_a_new_head_that_does_not_hear_clients_uses_no_number_that_they_may_have():
    cluster = Cluster(
        regions=2, proxies=5, drivers=2, configuration=True, rate_per_s=300, go_us=2 * S, parameters=QUICK
    )  # fmt: skip
    cluster.run(3 * S + 12_000)
    names = lose_power(cluster, "r0", roles=("proxy", "configuration"))
    cluster.run(cluster.network.clock.now_us + 300_000)
    for name in names:
        cluster.network.start(name)
    cluster.run(8 * S)
    cluster.drain(3 * S)
    check_no_number_has_two_contents(cluster, 0)
    assert cluster.logged("epoch_began")


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("roles", [("proxy",), ("proxy", "driver", "client")])
def test_only_a_disk_says_that_there_was_no_event_yet(durable, roles):
    cluster = Cluster(
        regions=2, go_us=6 * S, parameters={**QUICK, "durable": durable}, storage="disk"
    )  # fmt: skip
    names = lose_power(cluster, "r0", roles)
    cluster.run(4 * S)
    for name in names:
        cluster.network.start(name)
    cluster.run(6 * S)
    began = {name for _, name, _ in cluster.logged("epoch_began")}
    assert began == (set() if durable else {"r0/proxy-0"})


@pytest.mark.parametrize(
    ("proxies", "r1_first", "later_us"),
    [(1, True, 0), (1, False, 150_000), (3, True, -5_000)],
)
def test_a_region_that_is_behind_takes_the_rest_of_an_epoch_from_a_third_one(proxies, r1_first, later_us):
    """r1 has more of r0's old epoch than r2; r0, which begins another, has nothing of it."""
    make = chained if proxies > 1 else Cluster
    cluster = make(regions=3, rate_per_s=500, parameters=QUICK)
    cluster.run(3 * S)
    cut_off(cluster, "r2", ["r0", "r1"])
    cluster.run(4 * S)
    cluster.network.cut("r0", "r1")
    names = lose_power(cluster, "r0")
    cluster.run(5 * S)
    get_power(cluster, names)
    cluster.run(7 * S)
    if r1_first:
        cluster.network.heal("r0", "r1")
        cluster.run(9 * S)
    for after_us, region in sorted([(0, "r0"), (later_us, "r1")]):
        cluster.run(9 * S + 5_000 + after_us)
        cluster.network.heal(region, "r2")
    if not r1_first:
        cluster.network.heal("r0", "r1")
    cluster.run(13 * S)
    cluster.drain()
    got = {name: cluster.records(name, RecordKind.DELIVERED) for name in ("r1/client-0", "r2/client-0")}
    old, rest = ([row for row in got[name] if row[0] == 0 and epoch_of(row[1]) == 0] for name in got)
    assert old[-1][1] > 700
    assert rest == old, "no event is lost that another node has"
    assert cluster.delivered()["r2/client-0"] == cluster.published()


@pytest.mark.parametrize(("proxies", "after_ms"), [(1, 20), (1, 420), (3, 60), (3, 300)])
def test_a_restoration_that_is_broken_off_by_another_loss_of_power_proves_nothing(proxies, after_ms):
    """The disks that were lost do not come back by being written to for a moment."""
    make = chained if proxies > 1 else Cluster
    cluster = make(regions=2, parameters={**QUICK, "durable": True}, storage="disk")
    cluster.run(3 * S)
    cut_off(cluster, "r0", ["r1"])
    cluster.run(3 * S + 300_000)
    names = lose_power(cluster, "r0")
    cluster.network.disks.lose(*(name for name in names if "proxy" in name))
    for name in names:
        cluster.network.start(name)
    cluster.run(cluster.network.clock.now_us + 1000 * after_ms)
    lose_power(cluster, "r0")
    cluster.run(cluster.network.clock.now_us + 100_000)
    get_power(cluster, names)
    cluster.run(8 * S)
    rejoin(cluster, "r0", ["r1"])
    cluster.run(10 * S)
    cluster.drain()
    check_no_number_has_two_contents(cluster, 0)
    published = cluster.records("r0/driver-0", RecordKind.PUBLISHED)
    assert len({row[1] for row in published}) == len(published), "no number is acknowledged twice"
    assert cluster.delivered()["r1/client-0"] == cluster.published()
