"""Routes of transit-stub networks, and what they put on links: as arrays, and one by one."""

from collections import Counter
from random import Random

import numpy as np
import pytest

from topologies.generated.router_arrays import RouterArrays
from topologies.generated.transit_stub import TransitStub

ASKED = {"name": "made", "kind": "transit-stub"}
SMALL = {**ASKED, "transit_domains": 3, "transit_routers": 2, "stub_domains": 2, "stub_routers": 4}


@pytest.fixture(scope="module")
def network():
    return TransitStub.model_validate(SMALL).network()


@pytest.fixture
def pairs(network):
    rng, count = Random(1), len(network.names)
    return [(rng.randrange(count), rng.randrange(count)) for _ in range(300)]


def ends(network, direction):
    link = network.links[direction // 2]
    return (link.b, link.a) if direction % 2 else (link.a, link.b)


def test_a_route_leads_from_link_to_link_and_takes_as_long_as_these(network, pairs):
    for a, b in pairs:
        at = a
        for direction in network.route(a, b):
            begin, end = ends(network, direction)
            assert begin == at
            at = end
        assert at == b
        crossed = (network.links[direction // 2].delay_us for direction in network.route(a, b))
        assert network.delay_us(a, b) == sum(crossed)


def test_a_route_leaves_a_domain_only_where_it_has_to(network, pairs):
    for a, b in pairs:
        visited = {end for direction in network.route(a, b) for end in ends(network, direction)}
        stubs = {network.stubs[router] for router in visited}
        if network.stubs[a] == network.stubs[b] != -1:
            assert stubs <= {network.stubs[a]}
        assert stubs <= {network.stubs[a], network.stubs[b], -1}


def test_arrays_have_the_same_delays(network):
    count = len(network.names)
    expected = [[network.delay_us(a, b) for b in range(count)] for a in range(count)]
    assert RouterArrays(network).delays_us.tolist() == expected


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
