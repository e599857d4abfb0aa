"""An overlay that is built at once follows the rules, and resembles one that is built by joins."""

from itertools import pairwise
from random import Random
from statistics import fmean

import numpy as np
import pytest

from node.protocols.pastry.direct import DirectOverlay, way_of
from node.protocols.pastry.ids import digit, shared_digits
from node.protocols.pastry.overlay import Pastry
from node.protocols.pastry.parameters import PastryParameters
from node.sim.proximity import Plane, Routers
from tests.node.protocols.pastry.overlays import Overlay, root_of, wrong_leaf_sets
from topologies.generated.router_arrays import RouterArrays
from topologies.generated.transit_stub import TransitStub

COUNT = 200
QUIET = PastryParameters(heartbeat_us=0)


class Near(Overlay):
    """An overlay whose nodes join through the nearest existing node, as the papers assume."""

    def node(self, address, contacts):
        there = sorted(self.network.nodes, key=lambda other: self.delay_us(other, address))
        return super().node(address, there[:1])


@pytest.fixture(scope="module")
def joined():
    """Return nodes that joined one after the other."""
    return Near(COUNT, 1, parameters=QUIET)


class Settled:
    """The same nodes, built at once, in the interface of `Overlay`."""

    def __init__(self, own, overlay):
        self.pastry = Pastry(own, QUIET, Random(1), lambda effect: None, self)
        overlay.settle(self.pastry)

    def receive(self, sender, message):
        raise AssertionError("no message expected")


@pytest.fixture(scope="module")
def settled(joined):
    return made_at_once(joined, Plane)


def made_at_once(joined, kind):
    handles = [node.pastry.own for node in joined.nodes]
    ordered = sorted(handles, key=lambda each: each.id)
    rng = np.random.default_rng(1)
    if kind is Plane:
        proximity = Plane(np.array([joined.where[each.address] for each in ordered]), 60_000, rng)
    else:
        small = TransitStub(name="small", kind="transit-stub", stub_domains=1, varied=True)
        routers = RouterArrays(small.network())
        proximity = Routers(routers, rng.integers(0, routers.count, len(ordered)), 1_000, rng)
    overlay = DirectOverlay(handles, proximity, QUIET.b, QUIET.leaf_set)
    return [Settled(each, overlay) for each in ordered], proximity


@pytest.mark.parametrize("kind", [Plane, Routers])
@pytest.mark.slow
def test_each_entry_is_the_nearest_suitable_node_and_none_is_missing(joined, kind):
    nodes, proximity = made_at_once(joined, kind)
    for place, node in enumerate(nodes):
        own = node.pastry.own.id
        delays = proximity.delays_us(np.full(COUNT, place), np.arange(COUNT))
        fitting = {}
        for other, delay in zip(nodes, delays, strict=True):
            if other is not node:
                row = shared_digits(own, other.pastry.own.id, QUIET.b)
                fitting.setdefault((row, digit(other.pastry.own.id, row, QUIET.b)), []).append(2 * delay)
        rows = node.pastry.nodes.table.rows
        found = {(row, column): rtt for row, slots in rows.items() for column, (_, rtt) in slots.items()}
        assert found == {slot: min(rtts) for slot, rtts in fitting.items()}
        for row, slots in rows.items():
            assert all(
                node.pastry.nodes.table.slot(each.id) == (row, column) for column, (each, _) in slots.items()
            )


def test_leaf_sets_are_the_neighbours_on_the_ring(settled):
    assert wrong_leaf_sets(settled[0], QUIET.leaf_set // 2) == 0


def ways(nodes, proximity):
    """Route from random nodes to random keys; return hops, and the distance relative to the direct one."""
    rng, pastry_at = Random(3), {node.pastry.own.address: node.pastry for node in nodes}
    ordered = sorted(pastry_at.values(), key=lambda each: each.own.id)
    places = {pastry.own.address: place for place, pastry in enumerate(ordered)}

    def delay_us(a, b):
        return int(proximity.delays_us(np.array([places[a]]), np.array([places[b]]))[0])

    hops, ratios = [], []
    for _ in range(1_000):
        key = rng.getrandbits(128)
        way = way_of(pastry_at.__getitem__, rng.choice(nodes).pastry.own.address, key)
        assert way[-1] == root_of(key, nodes).address
        hops.append(len(way) - 1)
        if hops[-1]:
            ratios.append(sum(delay_us(a, b) for a, b in pairwise(way)) / delay_us(way[0], way[-1]))
    return fmean(hops), fmean(ratios)


def test_joins_lead_to_the_same_hops_entries_and_delays(joined, settled):
    nodes, proximity = settled
    (hops, ratio), (joined_hops, joined_ratio) = ways(nodes, proximity), ways(joined.nodes, proximity)
    entries, joined_entries = (
        fmean(len(node.pastry.nodes.table) for node in some) for some in (nodes, joined.nodes)
    )
    assert joined_hops == pytest.approx(hops, rel=0.05)
    assert joined_ratio == pytest.approx(ratio, rel=0.08)
    assert joined_entries == pytest.approx(entries, rel=0.02)
