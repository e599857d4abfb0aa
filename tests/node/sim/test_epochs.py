"""A stream whose owner lost its state begins a new epoch: no client gets two contents under one number."""

import pytest

from node.core.deliveries import RecordKind
from node.core.epochs import epoch_of, first_seq_of_epoch
from tests.node.chained import chained, play
from tests.node.cluster import Cluster

QUICK = {"flush_interval_us": 50_000, "advertisement_period_us": 200_000, "restore_wait_us": 400_000}


def check_no_number_has_two_contents(cluster, stream):
    """Check the records of all clients."""
    first_seen = {}
    for client in cluster.delivered():
        for of, first, *what in cluster.records(client, RecordKind.DELIVERED):
            assert of != stream or first_seen.setdefault(first, what) == what, (client, first)


def made(proxies, **given):
    return (chained if proxies > 1 else Cluster)(proxies=proxies, **given)


@pytest.mark.parametrize("regions", [2, 3])
def test_a_region_that_lost_power_behind_a_cut_begins_an_epoch(regions):
    """Let the region publish more than before, so that numbers could get two contents."""
    cluster = Cluster(regions=regions, rate_per_s=1000, parameters=QUICK)
    others = [f"r{number}" for number in range(1, regions)]
    cuts, heals = (", ".join(f"{way} r0 {other}" for other in others) for way in ("3 cut", "12 heal"))
    play(cluster, f"{cuts}, 4 black r0, 5 power r0, {heals}, 15 run")
    cluster.drain()
    check_no_number_has_two_contents(cluster, 0)
    published = cluster.records("r0/driver-0", RecordKind.PUBLISHED)
    assert {epoch_of(first) for _, first, _, _ in published} == {1}
    for region in ("r0", *others):
        got = [row for row in cluster.records(f"{region}/client-0", RecordKind.DELIVERED) if row[0] == 0]
        new = [row for row in got if epoch_of(row[1]) == 1]
        assert new == published, f"{region}'s client has the new epoch from its first event on"
        assert region == "r0" or new != got, "the old epoch's events stay delivered"
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


def test_a_number_acknowledged_to_a_driver_that_died_with_its_region_is_not_reused():
    """Let all other processes report; none of them knows the number."""
    cluster = Cluster(regions=2, parameters=QUICK)
    play(cluster, "3 cut r0 r1, 3.3 run")
    numbered = cluster.published()[0]
    assert numbered > cluster.machine("r1/proxy-0").history.streams[0].cnt
    play(cluster, "3.3 black r0, 3.3 heal r0 r1, 3.3 power r0, 8 run")
    again = [row[1] for row in cluster.records("r0/driver-0", RecordKind.PUBLISHED) if row[0] == 0]
    assert again
    assert min(again) > numbered
    cluster.drain()
    assert cluster.delivered()["r1/client-0"][0] == cluster.published()[0]


@pytest.mark.slow
def test_a_new_head_without_its_clients_reuses_no_number_that_they_may_have():
    cluster = Cluster(
        regions=2, proxies=5, drivers=2, configuration=True, rate_per_s=300, go_us=2_000_000, parameters=QUICK
    )  # fmt: skip
    play(cluster, "3.012 black r0 proxy configuration, 3.312 boot r0, 8 run")
    cluster.drain(3_000_000)
    check_no_number_has_two_contents(cluster, 0)
    assert cluster.logged("epoch_began")


@pytest.mark.parametrize("durable", [False, True])
@pytest.mark.parametrize("roles", ["proxy", "proxy driver client"])
def test_only_a_disk_proves_that_there_was_no_event(durable, roles):
    cluster = Cluster(regions=2, go_us=6_000_000, parameters={**QUICK, "durable": durable}, storage="disk")
    play(cluster, f"3 black r0 {roles}, 4 boot r0, 6 run")
    began = {name for _, name, _ in cluster.logged("epoch_began")}
    assert began == (set() if durable else {"r0/proxy-0"})


@pytest.mark.parametrize(
    ("proxies", "heals"),
    [
        (1, "7 heal r0 r1, 9.005 heal r0 r2, 9.005 heal r1 r2"),
        (1, "9.005 heal r0 r2, 9.155 heal r1 r2, 9.155 heal r0 r1"),
        (3, "7 heal r0 r1, 9 heal r1 r2, 9.005 heal r0 r2"),
    ],
)
def test_a_region_gets_the_rest_of_an_epoch_from_a_third_region(proxies, heals):
    """r1 has more of r0's old epoch than r2; r0, which begins another epoch, has none of it."""
    cluster = made(proxies, regions=3, rate_per_s=500, parameters=QUICK)
    cuts = "3 cut r2 r0, 3 cut r2 r1, 4 cut r0 r1, 4 black r0, 5 power r0"
    play(cluster, f"{cuts}, {heals}, 13 run")
    cluster.drain()
    got = {name: cluster.records(name, RecordKind.DELIVERED) for name in ("r1/client-0", "r2/client-0")}
    old, rest = ([row for row in got[name] if row[0] == 0 and epoch_of(row[1]) == 0] for name in got)
    assert old[-1][1] > 700
    assert rest == old, "no event is lost that another node has"
    assert cluster.delivered()["r2/client-0"] == cluster.published()


@pytest.mark.parametrize(("proxies", "broken_s"), [(1, 3.32), (1, 3.72), (3, 3.36), (3, 3.6)])
def test_an_interrupted_recovery_does_not_count_as_complete(proxies, broken_s):
    """Write to the replaced disks for a moment, which does not restore the lost data."""
    cluster = made(proxies, regions=2, parameters={**QUICK, "durable": True}, storage="disk")
    play(cluster, "3 cut r0 r1, 3.3 black r0")
    cluster.network.disks.lose(*(name for name in cluster.dark if "proxy" in name))
    again = f"3.3 boot r0, {broken_s} black r0, {broken_s + 0.1:.2f} power r0"
    play(cluster, f"{again}, 8 heal r0 r1, 10 run")
    cluster.drain()
    check_no_number_has_two_contents(cluster, 0)
    published = cluster.records("r0/driver-0", RecordKind.PUBLISHED)
    assert len({row[1] for row in published}) == len(published), "no number is acknowledged twice"
    assert cluster.delivered()["r1/client-0"] == cluster.published()
