"""Disks in virtual time: synced data survives a kill; of the rest, a random first part does."""

from node.core import machine as m
from node.core.specification import NodeSpec
from node.sim.clock import VirtualClock
from node.sim.process import Node
from node.sim.storage import Disks


def make(seed=0, sync_us=1000):
    clock = VirtualClock()
    given = []
    disks = Disks(clock, lambda node, what: given.append((clock.now_us, what)), seed, sync_us)
    spec = NodeSpec("r0/proxy-0", "h", "r0", "proxy", 0, 0, "sprinkler", (), {})
    return clock, disks, Node(spec, machine=None), given


def stored(disks):
    return {segment.number: list(segment.messages) for segment in disks.stored("r0/proxy-0")}


def test_data_that_arrives_during_a_sync_is_part_of_the_next_one():
    clock, disks, node, given = make()
    for number in range(10):
        clock.at(number * 100, lambda number: disks.take(node, m.Append(1, (number,))), number)
    clock.run_until(10_000)
    assert given == [(1000, m.Synced(1)), (2000, m.Synced(10))]
    assert stored(disks) == {1: list(range(10))}


def test_a_kill_keeps_synced_data_and_a_first_part_of_the_rest():
    seen = set()
    for seed in range(60):
        clock, disks, node, _ = make(seed)
        disks.take(node, m.Append(1, (0,)))
        clock.run_until(1000)
        disks.take(node, m.Append(1, (1, 2)))
        disks.take(node, m.Append(2, (3,)))
        disks.crash("r0/proxy-0")
        clock.run_until(50_000)
        kept = [message for messages in stored(disks).values() for message in messages]
        assert kept == [0, 1, 2, 3][: len(kept)]
        assert kept[:1] == [0]
        seen.add(len(kept))
    assert seen == {1, 2, 3, 4}


def test_an_orderly_end_keeps_all_data_and_a_new_process_counts_from_zero():
    clock, disks, node, given = make()
    disks.take(node, m.Append(1, (0, 1)))
    disks.take(node, m.Rewrite((1,), (1,)))
    assert stored(disks) == {1: [1]}
    disks.take(node, m.Append(2, (2,)))
    clock.run_until(5_000)
    assert given == [(1000, m.Synced(1))]


def test_a_full_disk_is_reported_and_stores_all_data_once_it_has_room():
    clock, disks, node, given = make()
    disks.fill(node)
    disks.take(node, m.Append(1, (0,)))
    clock.run_until(100_000)
    assert [what for _, what in given] == [m.StorageFailed("no space left on device")]
    disks.free(node)
    clock.run_until(200_000)
    assert given[-1] == (101_000, m.Synced(1))
    assert stored(disks) == {1: [0]}
