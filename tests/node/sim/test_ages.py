"""Events are collected by age, independent of the head and of its uptime."""

from dataclasses import replace

import pytest

from node.core import machine as m
from node.core.deliveries import RecordKind
from node.protocols.sprinkler.storage.batches import PLACEHOLDERS
from node.systems import build_machine
from tests.node.chained import chained, play
from tests.node.cluster import S

DAY = 86_400 * S
UPTIMES = {"r0/proxy-0": 3 * DAY, "r0/proxy-1": 3 * DAY, "r0/proxy-2": 3 * DAY}
LIMIT_US = 2 * S


def collecting(uptimes_us):
    """Return two regions of three replicas, whose drivers' events collect those older than two seconds."""

    def build(spec, rng):
        collect = {"predicate": "older_than", "argument": LIMIT_US}
        return build_machine(replace(spec, workload={**spec.workload, "collect": collect}), rng)

    return chained(build=build, uptimes_us=uptimes_us)


def stamps(cluster, name, stream=0):
    """Return the sequence numbers and times of the replica's remaining events."""
    history = cluster.machine(name).history.streams[stream]
    found = history.after(0, 1 << 30)
    return [(batch.first_seq, batch.time_us) for batch in found if batch.kind not in PLACEHOLDERS]


@pytest.mark.parametrize(
    "replaced_us", [9 * DAY, 0], ids=["to a machine up for longer", "to one just booted"]
)
def test_a_failover_collects_neither_young_events_nor_none(replaced_us):
    uptimes_us = {**UPTIMES, "r0/proxy-1": replaced_us, "r0/proxy-2": replaced_us}
    cluster = collecting(uptimes_us)
    cluster.run(5 * S)
    kept = stamps(cluster, "r1/proxy-2")
    cluster.network.kill("r0/proxy-0")
    cluster.run(5 * S + 800_000)
    after = stamps(cluster, "r1/proxy-2")
    young = [seq for seq, _ in kept if seq >= kept[-1][0] - 300]
    assert {seq for seq, _ in after} >= set(young), "events of 0.6 s and less before the failover are there"
    times = [time_us for _, time_us in after]
    assert times == sorted(times)
    cluster.run(10 * S)
    first, last = (stamps(cluster, "r1/proxy-2")[at] for at in (0, -1))
    assert LIMIT_US - S < last[1] - first[1] <= LIMIT_US + S // 2, "two seconds of events"
    assert 700 < last[0] - first[0] < 1300, "at 500 events/s"
    assert last[0] > kept[-1][0] + 1500
    cluster.drain(2 * S)
    for client in ("r0/client-0", "r1/client-0"):
        assert [row for row in cluster.records(client, RecordKind.TOMBSTONE) if row[0] == 0] == []


def test_a_new_epoch_with_an_earlier_clock_collects_the_old_one_only_when_it_is_old_itself():
    cluster = collecting({**UPTIMES, **{f"r0/proxy-{at}": 0 for at in range(3)}, "r0/proxy-0": 9 * DAY})
    play(cluster, "3 kill head, 4 cut r0 r1, 4 black r0, 4 boot r0, 6 heal r0 r1")
    cluster.network.give("r0/driver-0", m.Go(6 * S))
    cluster.run(7 * S)
    assert len(cluster.logged("epoch_began")) == 1
    assert stamps(cluster, "r1/proxy-2")[0][0] < 1 << 40, "the new epoch's clock says nothing of the old one"
    cluster.run(10 * S)
    assert stamps(cluster, "r1/proxy-2")[0][0] > 1 << 40
