"""Transit-stub networks: as many routers as asked for, routes by policy weights, the same from each seed."""

import pytest
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import dijkstra

from topologies.errors import InputError
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
    """Delays of the routes of least weight, and of these of least delay: over all links, by Dijkstra."""
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
def test_on_links_packets_go_the_same_ways(shape):
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


def test_weights_matter():
    """In this one the fastest way leads through a domain where none of its ends is."""
    asked = made(3, **SHAPES[1])
    topology = asked.generate()
    links = [(link.name, *link.between, link.delay_us or 0, link.delay_us or 0) for link in topology.links]
    weights = [link.weight for link in topology.links]
    weighted = [RouteEdge(*link, weight) for link, weight in zip(links, weights, strict=True)]
    assert routes(topology.regions, weighted) != routes(
        topology.regions, [RouteEdge(*link) for link in links]
    )


def test_too_many_routers_are_refused_on_links_and_at_all(tmp_path):
    path = tmp_path / "made.yaml"
    path.write_text("name: made\nkind: transit-stub\n")
    with pytest.raises(InputError, match="makes 5050 routers: on links at most 250 regions are possible"):
        load_topology(str(path))
    path.write_text("name: made\nkind: transit-stub\nstub_domains: 1000\nstub_routers: 50\n")
    with pytest.raises(InputError, match="makes 2500050 routers: at most 200000 are possible"):
        load_topology(str(path))


def test_a_seed_gives_one_network_and_another_one_another():
    assert made(7, **SHAPES[0]).network() == made(7, **SHAPES[0]).network()
    assert made(7, **SHAPES[0]).network() != made(8, **SHAPES[0]).network()
