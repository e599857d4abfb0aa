"""Replicated proxies in virtual time (paper 3.3): replicas and services die, stop and come back, one after
the other and at random, and nothing is lost, repeated or reordered."""

import itertools

import pytest

from node.core.deliveries import RecordKind
from node.sim.wires import LinkLine, SimulatedLan, Wires
from tests.node.chained import Chaos, chain, chained, check
from tests.node.cluster import S

HEAD, MIDDLE, TAIL = "r0/proxy-0", "r0/proxy-1", "r0/proxy-2"
SERVICE = "r0/configuration-0"
PLACES = pytest.mark.parametrize(("name", "left"), [(HEAD, "12"), (MIDDLE, "02"), (TAIL, "01")])
SEEDS = range(4)
SLOW = Wires(8_000, {("r0", "r1"): 15_000})  # much is under way along a chain when a replica dies


def longest_pause_s(cluster, client, stream, from_us):
    """Between two deliveries of the stream to the client, from then on."""
    times = [
        time_us
        for time_us, record in cluster.network.nodes[client].records
        if record.kind == RecordKind.DELIVERED and record.stream == stream and time_us >= from_us
    ]
    return max(later - earlier for earlier, later in itertools.pairwise(times)) / S


def test_a_replica_whose_connections_are_reset_loses_and_repeats_nothing():
    cluster = chained()
    cluster.run(2 * S)
    before = set(cluster.network.nodes[HEAD].ends)
    cluster.network.reset(HEAD)
    assert before
    assert not before & set(cluster.network.nodes[HEAD].ends)
    cluster.run(3 * S)
    cluster.network.reset(HEAD, ["r1/proxy-0"])
    cluster.network.reset("r0/nobody")
    cluster.run(5 * S)
    assert HEAD[-1] in chain(cluster)
    check(cluster)


@PLACES
def test_a_killed_replica_is_removed_and_becomes_the_tail_when_it_starts_again(name, left):
    cluster = chained()
    cluster.run(2 * S)
    cluster.network.kill(name)
    cluster.run(4 * S)
    assert chain(cluster) == left
    for client in ("r0/client-0", "r1/client-0"):
        for stream in (0, 1):
            assert longest_pause_s(cluster, client, stream, 2 * S) < 1
    cluster.network.start(name)
    cluster.run(5 * S)
    assert chain(cluster) == left + name[-1]
    assert [line[1] for line in cluster.logged("became_tail", from_us=4 * S)] == [name]
    ((_, _, passed),) = cluster.logged("token_passed")
    assert passed["to"] == name
    check(cluster)


@PLACES
def test_a_stopped_replica_is_removed_and_does_no_harm_when_it_continues(name, left):
    cluster = chained()
    cluster.run(2 * S)
    cluster.network.stop(name)
    cluster.run(4 * S)
    assert chain(cluster) == left
    cluster.network.resume(name)
    cluster.run(5 * S)
    assert chain(cluster) == left + name[-1]
    check(cluster)


def test_a_short_stop_changes_nothing():
    cluster = chained()
    cluster.run(2 * S)
    cluster.network.stop(HEAD)
    cluster.run(2 * S + 100_000)
    cluster.network.resume(HEAD)
    cluster.run(3 * S)
    assert chain(cluster) == "012"
    check(cluster)


def test_two_of_three_die_at_once_and_the_last_one_has_everything():
    killed = (HEAD, MIDDLE)
    cluster = chained()
    cluster.run(2 * S)
    for name in killed:
        cluster.network.kill(name)
    cluster.run(3 * S)
    assert len(chain(cluster)) == 1
    for name in killed:
        cluster.network.start(name)
    cluster.run(5 * S)
    assert len(chain(cluster)) == 3
    check(cluster)


@pytest.mark.parametrize(("dies", "after_us"), [(MIDDLE, 5_000), (TAIL, 14_000), (HEAD, 40_000)])
def test_a_failure_during_a_join_voids_its_token_and_loses_nothing(dies, after_us):
    cluster = chained()
    cluster.run(2 * S)
    cluster.network.kill(MIDDLE)
    cluster.run(3 * S)
    cluster.network.start(MIDDLE)
    cluster.run(3 * S + after_us)
    cluster.network.kill(dies)
    cluster.run(4 * S)
    cluster.network.start(dies)
    cluster.run(6 * S)
    assert len(chain(cluster)) == 3
    check(cluster)


def test_the_chain_goes_on_while_its_service_is_away():
    cluster = chained()
    cluster.run(2 * S)
    cluster.network.kill(SERVICE)
    cluster.run(4 * S)
    assert longest_pause_s(cluster, "r1/client-0", 0, 2 * S) < 0.5
    cluster.network.start(SERVICE)
    cluster.run(5 * S)
    assert chain(cluster) == "012"
    assert [fields["number"] for _, _, fields in cluster.logged("configuration_changed", from_us=4 * S)] == []
    check(cluster)


@pytest.mark.parametrize("storage", ["disk", None])
def test_a_service_that_starts_again_finds_out_who_died_meanwhile(storage):
    """From its disk, or without one from what its replicas remember."""
    cluster = chained(storage=storage)
    cluster.run(2 * S)
    cluster.network.kill(SERVICE)
    cluster.run(3 * S)
    cluster.network.kill(HEAD)
    cluster.run(4 * S)
    cluster.network.start(SERVICE)
    cluster.run(6 * S)
    assert chain(cluster) == "12"
    cluster.network.start(HEAD)
    cluster.run(7 * S)
    assert chain(cluster) == "120"
    if storage is None:  # the head may have continued alone, in a chain that is forgotten
        assert len(cluster.logged("epoch_began")) == 1
        cluster.drain(4 * S)
        cluster.check_deliveries()
    else:
        check(cluster)


def test_the_last_member_is_kept_and_comes_back_with_what_its_peers_have():
    cluster = chained(proxies=1)
    cluster.run(2 * S)
    cluster.network.kill(HEAD)
    cluster.run(4 * S)
    assert chain(cluster) == "0"
    cluster.network.start(HEAD)
    cluster.run(6 * S)
    published = cluster.published()[0]
    ((_, _, anew),) = cluster.logged("chain_began_anew")
    assert anew["replica"] == HEAD
    cluster.drain()
    assert cluster.published()[0] >= published > 2000
    assert all(reached == cluster.published() for reached in cluster.delivered().values())


def test_a_driver_that_repeats_at_the_new_head_is_not_stored_twice():
    """Kill the head with stored events but no acknowledgement: acknowledgements are slower than the kill."""
    cluster = chained(rate_per_s=5000)
    cluster.run(2 * S)
    cluster.network.stop("r0/driver-0")
    cluster.network.kill(HEAD)
    cluster.run(2 * S + 200_000)
    known = cluster.machine(MIDDLE).history.streams[0].cnt
    cluster.network.resume("r0/driver-0")
    cluster.run(3 * S)
    driver = cluster.machine("r0/driver-0")
    assert driver.loads[0].publisher.published > known
    check(cluster)


def test_publications_that_died_with_the_head_are_void_for_the_next_but_one():
    """Check their numbers: the second head uses them again, and the third must not mistake a retry for
    them.
    """
    cluster = chained(rate_per_s=5000)
    cluster.run(2 * S)
    cluster.network.stop(TAIL)  # it takes publications without their events, or nothing at all
    cluster.run(2 * S + 60_000)
    cluster.network.kill(HEAD)
    cluster.network.resume(TAIL)
    cluster.run(2 * S + 300_000)
    cluster.network.kill(MIDDLE)
    cluster.run(4 * S)
    assert chain(cluster) == "2"
    for name in (HEAD, MIDDLE):
        cluster.network.start(name)
    cluster.run(6 * S)
    check(cluster)


def test_a_head_that_dies_while_it_passes_on_what_it_knows_leaves_all_of_it_known():
    """In a new configuration it sends all publications again, over a narrow link."""
    narrow = SimulatedLan(LinkLine(4_000, 20e6), LinkLine(4_000, 20e6))
    wires = Wires(1_000, {("r0", "r1"): 15_000}, lans={"r0": narrow})
    cluster = chained(wires=wires, parameters={"flush_interval_us": 5_000})
    cluster.run(4 * S)
    cluster.network.kill(TAIL)
    cluster.run(4 * S + 80_000)
    cluster.network.kill(HEAD)
    for name in (HEAD, TAIL):
        cluster.network.start(name)
    cluster.run(6 * S)
    check(cluster)


@pytest.mark.parametrize("seed", SEEDS)
def test_whatever_dies_stops_and_comes_back_nothing_is_lost(seed):
    cluster = chained(seed=seed, rate_per_s=1000, wires=SLOW)
    Chaos(cluster, seed).run()
    check(cluster)
