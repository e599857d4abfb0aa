"""Many nodes with an overlay that exists from the start: their trees are the union of Pastry's routes."""

from itertools import pairwise
from random import Random

import numpy as np
import pytest

from node.protocols.pastry.direct import way_of
from node.protocols.scribe.messages import topic_key
from node.protocols.scribe.population import Population
from node.sim.proximity import Routers
from topologies.generated.router_arrays import RouterArrays
from topologies.generated.transit_stub import TransitStub

COUNT = 200


@pytest.fixture(scope="module")
def routers():
    return RouterArrays(TransitStub(name="small", kind="transit-stub", stub_domains=1).network())


def population(routers, seed=1, **parameters):
    rng = np.random.default_rng(seed)
    proximity = Routers(routers, rng.integers(0, routers.count, COUNT), 1_000, rng)
    return Population(COUNT, proximity, Random(seed), parameters)


def test_trees_are_the_union_of_routes_with_their_delays(routers):
    nodes = population(routers)
    delay_us = nodes.proximity.delay_between()
    for stream, size in enumerate((COUNT, 60, 11)):
        members = Random(stream).sample(range(COUNT), size)
        nodes.join(stream, members)
        tree = nodes.multicast(stream)
        ways = {
            member: way_of(lambda at: nodes.nodes[at].pastry, member, topic_key(stream)) for member in members
        }
        edges = {(above, below) for way in ways.values() for below, above in pairwise(way)}
        assert sorted(tree.edges) == sorted(edges)
        assert all(way[-1] == tree.root for way in ways.values())
        assert dict(tree.came) == {
            member: sum(delay_us(above, below) for below, above in pairwise(way))
            for member, way in ways.items()
        }
        assert len(tree.came) == size


def test_the_same_seed_gives_the_same_trees_and_only_requested_messages_are_sent(routers):
    def edges(seed):
        nodes = population(routers, seed)
        nodes.settle()
        assert nodes.network.sent == 0
        nodes.join(0, range(0, COUNT, 3))
        sent = nodes.network.sent
        nodes.settle()
        assert nodes.network.sent == sent > 0
        return nodes.multicast(0).edges, sent

    assert edges(1) == edges(1)
    assert edges(1) != edges(2)


@pytest.mark.slow
def test_a_node_joined_by_very_many_at_once_keeps_only_its_bound(routers):
    bound = 8
    nodes = population(routers, entries_max=bound)
    root, key = nodes.root_of(0), topic_key(0)

    def join_at_root(node):
        topic = node.trees.topic(key)
        topic.is_member = True
        node.trees.detach(topic)
        node.trees.join_at(topic, root)

    nodes.join(0, [root])
    for address in range(COUNT):
        if address != root:
            nodes.network.act(address, join_at_root)
    nodes.settle()
    assert max(nodes.children()[1]) <= bound
    assert sum(nodes.children()[1]) >= COUNT - 1
