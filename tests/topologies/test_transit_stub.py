"""Transit-stub networks: the requested number of routers, routes by policy weights, one network per seed."""

from collections import Counter
from random import Random

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from topologies.errors import InputError
from topologies.generated.router_arrays import RouterArrays
from topologies.generated.transit_stub import TransitStub
from topologies.loader import load_topology
from topologies.routes import RouteEdge, routes

WEIGHT_US = 10**9  # more than any route takes
ASKED = {"name": "made", "kind": "transit-stub"}
SHAPES = [
    {"transit_domains": 4, "transit_routers": 3, "stub_domains": 1, "stub_routers": 3},
    {"transit_domains": 5, "transit_routers": 4, "stub_domains": 2, "stub_routers": 1, "density": "80%"},
    {"transit_domains": 1, "transit_routers": 6, "stub_domains": 3, "stub_routers": 4},
    {"transit_domains": 6, "transit_routers": 1, "stub_domains": 0, "density": "60%"},
]


def made(seed=1, **more):
    return TransitStub.model_validate({**ASKED, "seed": seed, **more})


def least(network):
    """Return the delays of the routes with the least weight, then the least delay, by Dijkstra over all
    links.
    """
    count = len(network.names)
    costs = [link.weight * WEIGHT_US + link.delay_us for link in network.links]
    ends = ([link.a for link in network.links], [link.b for link in network.links])
    found = dijkstra(csr_matrix((costs, ends), shape=(count, count)), directed=False)
    return {(a, b): int(found[a, b]) % WEIGHT_US for a in range(count) for b in range(count)}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", [1, 2])
def test_delays_are_those_of_the_least_weight(shape, seed):
    network = made(seed, **shape).network()
    expected = least(network)
    count = len(network.names)
    assert {(a, b): network.delay_us(a, b) for a in range(count) for b in range(count)} == expected


@pytest.mark.parametrize("shape", SHAPES)
def test_packets_on_a_topology_take_the_networks_routes(shape):
    asked = made(3, **shape)
    network, topology = asked.network(), asked.generate()
    edges = [
        RouteEdge(link.name, *link.between, link.delay_us or 0, link.delay_us or 0, link.weight)
        for link in topology.links
    ]
    number = {name: at for at, name in enumerate(network.names)}
    delays = {link.between: link.delay_us for link in topology.links}
    delays |= {(b, a): delay_us for (a, b), delay_us in delays.items()}
    for (source, target), hops in routes(topology.regions, edges).items():
        assert sum(delays[hop] for hop in hops) == network.delay_us(number[source], number[target])


def test_policy_weights_override_shorter_delays():
    """In this network the fastest path crosses a third domain."""
    asked = made(3, **SHAPES[1])
    topology = asked.generate()
    links = [(link.name, *link.between, link.delay_us or 0, link.delay_us or 0) for link in topology.links]
    weights = [link.weight for link in topology.links]
    weighted = [RouteEdge(*link, weight) for link, weight in zip(links, weights, strict=True)]
    assert routes(topology.regions, weighted) != routes(
        topology.regions, [RouteEdge(*link) for link in links]
    )


def test_too_many_routers_are_refused_in_topologies_and_in_networks(tmp_path):
    path = tmp_path / "made.yaml"
    path.write_text("name: made\nkind: transit-stub\n")
    with pytest.raises(InputError, match="makes 5050 routers: on links at most 250 regions are possible"):
        load_topology(str(path))
    path.write_text("name: made\nkind: transit-stub\nstub_domains: 1000\nstub_routers: 50\n")
    with pytest.raises(InputError, match="makes 2500050 routers: at most 200000 are possible"):
        load_topology(str(path))


def test_the_network_depends_on_the_seed():
    assert made(7, **SHAPES[0]).network() == made(7, **SHAPES[0]).network()
    assert made(7, **SHAPES[0]).network() != made(8, **SHAPES[0]).network()


SMALL = {**ASKED, "transit_domains": 3, "transit_routers": 2, "stub_domains": 2, "stub_routers": 4}


@pytest.fixture(scope="module", params=[False, True], ids=["even", "varied"])
def network(request):
    return TransitStub.model_validate({**SMALL, "varied": request.param}).network()


@pytest.fixture
def pairs(network):
    rng, count = Random(1), len(network.names)
    return [(rng.randrange(count), rng.randrange(count)) for _ in range(300)]


def ends(network, direction):
    link = network.links[direction // 2]
    return (link.b, link.a) if direction % 2 else (link.a, link.b)


def test_a_route_is_contiguous_and_its_delay_is_the_sum_of_its_links(network, pairs):
    for a, b in pairs:
        at = a
        for direction in network.route(a, b):
            begin, end = ends(network, direction)
            assert begin == at
            at = end
        assert at == b
        crossed = (network.links[direction // 2].delay_us for direction in network.route(a, b))
        assert network.delay_us(a, b) == sum(crossed)


def test_a_route_leaves_a_domain_only_if_necessary(network, pairs):
    for a, b in pairs:
        visited = {end for direction in network.route(a, b) for end in ends(network, direction)}
        stubs = {network.stubs[router] for router in visited}
        if network.stubs[a] == network.stubs[b] != -1:
            assert stubs <= {network.stubs[a]}
        assert stubs <= {network.stubs[a], network.stubs[b], -1}


def test_arrays_have_the_same_delays(network):
    count = len(network.names)
    expected = [[network.delay_us(a, b) for b in range(count)] for a in range(count)]
    arrays, every = RouterArrays(network), np.arange(count)
    assert arrays.delays_us(every[:, None], every).tolist() == expected
    between = arrays.delay_between()
    assert [[between(a, b) for b in range(count)] for a in range(count)] == expected


@pytest.mark.parametrize("some", [1, 3, 20])
def test_the_nearest_candidate_has_the_least_delay(network, some):
    arrays, every = RouterArrays(network), np.arange(len(network.names))
    candidates = np.sort(np.random.default_rng(some).choice(every, some, replace=False))
    delays_us = arrays.delays_us(every[:, None], candidates)
    found = arrays.nearest(every, candidates)
    assert delays_us[every, found].tolist() == delays_us.min(axis=1).tolist()


def test_varied_domains_have_the_same_total_of_routers():
    even, varied = (made(2, transit_domains=5, varied=each).network() for each in (False, True))
    assert len(varied.names) == len(even.names) == 2_525
    sizes = [Counter(each.stubs[25:]).values() for each in (even, varied)]
    assert set(sizes[0]) == {10}
    assert 2 < np.std(list(sizes[1])) < 3  # three steps up and three down on average
    assert len(set(Counter(varied.gateways).values())) > 5


def test_unicasts_load_the_links_of_their_routes(network, pairs):
    loads = Counter(direction for a, b in pairs for direction in network.route(a, b))
    found = RouterArrays(network).unicast_loads(*np.array(pairs).T)
    assert {at: load for at, load in enumerate(found.tolist()) if load} == loads


def test_a_multicast_loads_each_link_of_its_tree_once(network, pairs):
    groups = np.array([number % 5 for number in range(len(pairs))])
    sources = [0, 3, 9, 12, 25]
    loads = Counter()
    for group, source in enumerate(sources):
        targets = [b for (_, b), of in zip(pairs, groups, strict=True) if of == group]
        loads.update({direction for target in targets for direction in network.route(source, target)})
    found = RouterArrays(network).multicast_loads(sources, groups, np.array(pairs)[:, 1])
    assert {at: load for at, load in enumerate(found.tolist()) if load} == loads


def test_the_papers_network_has_its_routers_and_the_mean_delay_of_its_links():
    network = TransitStub.model_validate(ASKED).network()
    assert len(network.names) == 5_050
    assert network.mean_link_delay_us == pytest.approx(40_700, rel=1e-3)
