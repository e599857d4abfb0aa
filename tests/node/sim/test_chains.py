"""Replicated proxies in virtual time (paper 3.3): replicas and services die, stop and restart, one after the
other and at random; no event is lost, repeated or reordered.
"""

import itertools

import pytest

from node.sim.wires import LinkLine, SimulatedLan, Wires
from tests.node.chained import NAMES, Chaos, chain, chained, check, play
from tests.node.cluster import S

HEAD, MIDDLE = NAMES["head"], NAMES["middle"]
SEEDS = range(4)
SLOW = Wires(8_000, {("r0", "r1"): 15_000})  # much is under way along a chain when a replica dies
NARROW = SimulatedLan(LinkLine(4_000, 20e6), LinkLine(4_000, 20e6))


def longest_pause_s(cluster, client, stream, from_us):
    """Return the longest time between two deliveries of the stream to the client from then on."""
    times = [us for us, _ in cluster.deliveries(client, stream) if us >= from_us]
    return max(later - earlier for earlier, later in itertools.pairwise(times)) / S


@pytest.mark.parametrize(
    "script",
    [
        "2 kill middle, 4 chain 02, 4 start middle, 5 chain 021",
        "2 kill tail, 4 chain 01, 4 start tail, 5 chain 012",
        "2 stop head, 4 chain 12, 4 resume head, 5 chain 120",
        "2 stop middle, 4 chain 02, 4 resume middle, 5 chain 021",
        "2 stop tail, 4 chain 01, 4 resume tail, 5 chain 012",
        "2 stop head, 2.1 resume head, 3 chain 012",
        "2 kill head middle, 3 chain 2, 3 start head middle, 5 members 3",
        "2 kill service, 3 kill head, 4 start service, 6 chain 12, 6 start head, 7 chain 120",
    ],
)
def test_a_chain_continues_without_failed_replicas_and_readmits_them(script):
    cluster = chained()
    play(cluster, script)
    check(cluster)


def test_a_killed_head_delays_clients_little_and_rejoins_as_tail():
    cluster = chained()
    play(cluster, "2 kill head, 4 chain 12")
    for client in ("r0/client-0", "r1/client-0"):
        for stream in (0, 1):
            assert longest_pause_s(cluster, client, stream, 2 * S) < 1
    play(cluster, "4 start head, 5 chain 120")
    assert [line[1] for line in cluster.logged("became_tail", from_us=4 * S)] == [HEAD]
    ((_, _, passed),) = cluster.logged("token_passed")
    assert passed["to"] == HEAD
    check(cluster)


@pytest.mark.parametrize(
    "failure",
    ["3.005 kill middle, 4 start middle", "3.014 kill tail, 4 start tail", "3.04 kill head, 4 start head"],
)
def test_a_failure_during_a_join_voids_its_token_and_loses_nothing(failure):
    cluster = chained()
    play(cluster, f"2 kill middle, 3 start middle, {failure}, 6 members 3")
    check(cluster)


def test_reset_connections_of_a_replica_lose_and_repeat_no_event():
    cluster = chained()
    cluster.run(2 * S)
    before = set(cluster.network.nodes[HEAD].ends)
    cluster.network.reset(HEAD)
    assert before
    assert not before & set(cluster.network.nodes[HEAD].ends)
    cluster.run(3 * S)
    cluster.network.reset(HEAD, ["r1/proxy-0"])
    cluster.network.reset("r0/unknown-0")
    cluster.run(5 * S)
    assert HEAD[-1] in chain(cluster)
    check(cluster)


def test_a_chain_continues_while_its_service_is_down():
    cluster = chained()
    play(cluster, "2 kill service, 4 start service, 5 chain 012")
    assert longest_pause_s(cluster, "r1/client-0", 0, 2 * S) < 0.5
    assert cluster.logged("configuration_changed", from_us=4 * S) == []
    check(cluster)


def test_a_service_without_a_disk_learns_failures_from_its_replicas():
    cluster = chained(storage=None)
    play(cluster, "2 kill service, 3 kill head, 4 start service, 6 chain 12, 6 start head, 7 chain 120")
    # the head may have continued alone, in a chain that is forgotten
    assert len(cluster.logged("epoch_began")) == 1
    cluster.drain(4 * S)
    cluster.check_deliveries()


def test_the_last_member_stays_and_recovers_from_its_peers():
    cluster = chained(proxies=1)
    play(cluster, "2 kill head, 4 chain 0, 4 start head, 6 chain 0")
    published = cluster.published()[0]
    ((_, _, anew),) = cluster.logged("chain_began_anew")
    assert anew["replica"] == HEAD
    cluster.drain()
    assert cluster.published()[0] >= published > 2000
    assert all(reached == cluster.published() for reached in cluster.delivered().values())


def test_publications_repeated_at_a_new_head_are_stored_once():
    """Kill the head after it stored events and before they were acknowledged."""
    cluster = chained(rate_per_s=5000)
    play(cluster, "2 stop driver, 2 kill head, 2.2 chain 12")
    known = cluster.machine(MIDDLE).history.streams[0].cnt
    play(cluster, "2.2 resume driver, 3 chain 12")
    assert cluster.machine("r0/driver-0").loads[0].publisher.published > known
    check(cluster)


def test_publications_lost_with_a_head_are_void_at_later_heads():
    """Check the numbers: the second head uses them again, and the third must not mistake a retry for them.
    The stopped tail gets publications without their events, or nothing.
    """
    cluster = chained(rate_per_s=5000)
    play(cluster, "2 stop tail, 2.06 kill head, 2.06 resume tail, 2.3 kill middle, 4 chain 2")
    play(cluster, "4 start head middle, 6 members 3")
    check(cluster)


def test_a_head_that_dies_while_it_forwards_publications_loses_none():
    """Check that the head sends all publications again in a new configuration, over a narrow link."""
    wires = Wires(1_000, {("r0", "r1"): 15_000}, lans={"r0": NARROW})
    cluster = chained(wires=wires, parameters={"flush_interval_us": 5_000})
    play(cluster, "4 kill tail, 4.08 kill head, 4.08 start head tail, 6 members 3")
    check(cluster)


@pytest.mark.parametrize("seed", SEEDS)
def test_no_event_is_lost_through_random_faults(seed):
    cluster = chained(seed=seed, rate_per_s=1000, wires=SLOW)
    Chaos(cluster, seed).run()
    check(cluster)
