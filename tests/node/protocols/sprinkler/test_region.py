"""A region of clients in virtual time (paper 3.2): every client gets every event in order, through any
faults.
"""

import pytest

from node.core import machine as m
from node.protocols.sprinkler.messages import Events, Notify, Request
from node.protocols.sprinkler.region.client import Client
from node.protocols.sprinkler.region.dissemination import SHUFFLE
from node.sim.wires import LinkLine, SimulatedLan, Wires
from node.systems import build_machine
from tests.node.chained import play
from tests.node.cluster import COARSE, Cluster, S

CLIENTS = 30
PROXY = "r0/proxy-0"


def region(clients=CLIENTS, regions=1, rate_per_s=2000, build=build_machine, replicas=1, **parameters):
    given = {**COARSE, **parameters}
    if replicas > 1:
        more = {"proxies": replicas, "configuration": True}
        return Cluster(build=build, regions=regions, clients=clients, parameters=given, **more)
    return Cluster(build=build, regions=regions, clients=clients, rate_per_s=rate_per_s, parameters=given)


def names(numbers):
    return [f"r0/client-{number}" for number in numbers]


def clients(cluster):
    return [node.machine for node in cluster.network.nodes.values() if node.spec.role == "client"]


def sent(cluster, kind, source=None):
    return [
        line for line in cluster.network.trace if type(line.message) is kind and source in {None, line.source}
    ]


def drained(cluster):
    cluster.drain(5 * S)
    cluster.check_deliveries()


def test_most_events_are_received_from_peers():
    cluster = region()
    cluster.run(4 * S)
    drained(cluster)
    by_proxy = len(sent(cluster, Events, PROXY))
    assert by_proxy < len(sent(cluster, Events)) / 4
    assert not any(each.requests.timeouts or each.requests.duplicates for each in clients(cluster))


@pytest.mark.parametrize("flush_interval_us", [100_000, 200_000])
def test_a_hundred_clients_over_loaded_ports_stay_close_behind_the_proxy(flush_interval_us):
    rate_per_s = 240_000  # of 10 bytes: with F = 4, the proxy's port carries 77 of its 100 Mbit/s
    port = LinkLine(1_000, 100_000_000)
    wires = Wires(1_000, {}, lans={"r0": SimulatedLan(port, port)})
    parameters = {"flush_interval_us": flush_interval_us, "shuffle_time_us": 30_000, "window_bytes": 16 << 20}
    cluster = Cluster(wires=wires, regions=1, clients=100, rate_per_s=rate_per_s, parameters=parameters)
    cluster.run(4 * S)
    published = cluster.published()[0]
    behind_s = [(published - each.progress().delivered[0]) / rate_per_s for each in clients(cluster)]
    assert published > 0.9 * 3 * rate_per_s
    assert max(behind_s) < 0.5
    drained(cluster)


@pytest.mark.slow
def test_a_node_notifies_f_neighbours_at_once_and_others_after_a_shuffle():
    cluster = region(fanout=3, shuffle_time_us=200_000)
    cluster.run(4 * S)
    told = {}
    for line in sent(cluster, Notify):
        if line.time_us > 2 * S:
            told.setdefault(line.source, {}).setdefault(line.time_us, set()).add(line.target)
    assert len(told) == CLIENTS + 1
    for at_once in told.values():
        assert max(map(len, at_once.values())) == 3
        assert len(set().union(*at_once.values())) > 10


def test_the_last_event_of_a_burst_reaches_all_clients_without_another_one():
    cluster = region(fanout=1)
    cluster.run(4 * S)
    cluster.network.broadcast(m.StopDrivers())
    cluster.run(5 * S)
    assert set(cluster.published()) == {0}
    assert all(got == cluster.published() for got in cluster.delivered().values())


def test_a_slow_stream_beside_a_fast_one_reaches_all_clients_at_once():
    cluster = Cluster(regions=2, clients=CLIENTS, rate_per_s={"r0": 200, "r1": 2}, parameters=COARSE)
    published = 0
    while cluster.network.clock.now_us < 7 * S:
        cluster.run(cluster.network.clock.now_us + S // 4)
        before, published = published, cluster.published().get(1, 0)  # as of a quarter of a second ago
        behind = [name for name, got in cluster.delivered().items() if got.get(1, 0) < before]
        assert not behind, f"event {before} has not reached all"
    assert published > 10


@pytest.mark.slow
def test_a_slow_stream_costs_one_notification_of_each_pair_of_neighbours():
    cluster = region(rate_per_s=5, flush_interval_us=200_000, fanout=4)
    cluster.run(2 * S)
    begun, before = cluster.published()[0], len(sent(cluster, Notify))
    cluster.run(10 * S)
    events = cluster.published()[0] - begun
    told = len(sent(cluster, Notify)) - before
    drained(cluster)
    assert events > 30
    assert told / events < CLIENTS * (CLIENTS + 1) / 2


def test_a_peer_known_to_be_up_to_date_is_not_notified():
    cluster = region(clients=3, fanout=4)
    cluster.run(4 * S)
    reached = {}
    for line in sent(cluster, Notify):
        for counter in line.message.counters:
            said = reached.setdefault((line.target, line.source), {})
            cnt, at_us = said.get(counter.stream, (0, 0))
            assert cnt < counter.cnt or at_us + 5_000 > line.time_us  # or it is on its way
            back = reached.setdefault((line.source, line.target), {})
            back[counter.stream] = (counter.cnt, line.time_us)
    drained(cluster)


@pytest.mark.slow
def test_clients_that_join_during_a_run_get_all_events_from_the_first_on():
    cluster = region()
    late = " ".join(names(range(10)))
    play(cluster, f"0.5 kill {late}, 5 start {late}, 8 run")
    drained(cluster)


@pytest.mark.slow
def test_when_a_third_crashes_the_others_miss_no_event_and_forget_them():
    cluster = region()
    play(cluster, f"3 kill {' '.join(names(range(10)))}, 12 run")
    parts = [client.dissemination for client in clients(cluster)]
    known = {part.member(each).name for part in parts for each in part.view.members}
    assert not known & set(names(range(10)))
    drained(cluster)


@pytest.mark.slow
def test_a_client_that_catches_up_requests_from_the_proxy_and_stores_little():
    cluster = region(clients=12, rate_per_s=5000, recv_limit_bytes=50_000)
    play(cluster, "0.5 kill r0/client-3, 30 start r0/client-3")
    most = 0
    while cluster.delivered()["r0/client-3"][0] < 100_000:
        cluster.run(cluster.network.clock.now_us + 1_000)
        most = max(most, cluster.machine("r0/client-3").requests.streams[0].early_bytes)
    assert most <= 50_000
    asked = sent(cluster, Request, "r0/client-3")
    old = [line for line in asked if line.message.next < 100_000]
    assert len([line for line in old if line.target == PROXY]) >= 0.5 * len(old)  # one try of a peer for each
    drained(cluster)


def test_a_stopped_peer_delays_no_others_beyond_the_timeout():
    cluster = region(clients=5, request_timeout_us=400_000)
    play(cluster, "3 stop r0/client-0, 4 run")
    behind = [
        cluster.published()[0] - got[0] for name, got in cluster.delivered().items() if name != "r0/client-0"
    ]
    assert max(behind) <= 2000 * 0.75


def test_a_client_far_behind_continues_with_the_next_tail():
    cluster = region(clients=6, replicas=2, recv_limit_bytes=20_000)
    play(cluster, "3 kill r0/client-3, 20 start r0/client-3, 20.02 kill r0/proxy-1")
    assert cluster.delivered()["r0/client-3"][0] < 20_000
    cluster.run(24 * S)
    drained(cluster)


class Application(Client):
    """A client whose application takes events on request."""

    def __init__(self, spec, rng):
        super().__init__(spec, rng, keeps_events=True)


@pytest.mark.slow
def test_an_application_that_reads_nothing_is_sent_no_more_until_it_reads():
    def build(spec, rng):
        return Application(spec, rng) if spec.name == "r0/client-0" else build_machine(spec, rng)

    cluster = region(
        clients=4, rate_per_s=4000, build=build, flush_interval_us=5_000, recv_limit_bytes=20_000
    )
    cluster.run(8 * S)
    lazy = cluster.machine("r0/client-0")
    assert cluster.delivered()["r0/client-0"][0] < cluster.published()[0] / 2
    taken = []
    while cluster.network.clock.now_us < 12 * S:
        while (events := lazy.get_events()) is not None:
            taken += [event.seq for event in events]
        cluster.network.give("r0/client-0", m.Nudge())
        cluster.run(cluster.network.clock.now_us + 10_000)
    assert taken == list(range(1, len(taken) + 1))
    assert len(taken) > cluster.published()[0] - 1000


class Counting(Client):
    """A client that counts the timeouts of its shuffle timer."""

    woken = 0

    def timer_fired(self, timer):
        self.woken += timer == SHUFFLE
        super().timer_fired(timer)


def counting(spec, rng):
    return Counting(spec, rng) if spec.role == "client" else build_machine(spec, rng)


def test_no_client_checks_for_missed_neighbours_during_continuous_traffic():
    cluster = region(build=counting, shuffle_time_us=30_000)
    cluster.run(2 * S)
    before = [client.woken for client in clients(cluster)]
    cluster.run(6 * S)
    shuffle_times = 4 * S / 30_000
    for client, woken in zip(clients(cluster), before, strict=True):
        assert client.woken - woken < shuffle_times / 5
    cluster.drain(5 * S)
    assert all(client.woken for client in clients(cluster))  # once it is quiet they do
