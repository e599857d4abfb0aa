"""Positions of regions in drawings: near to their neighbours, and not on one another."""

import pytest

from topologies.layout import layout, layout_in_pixels
from topologies.loader import load_topology

APART, SIZE = (490.0, 136.0), (800.0, 460.0)  # as in the plan's picture


@pytest.mark.parametrize("name", ["transit-stub-20", "tree-10", "star-6"])
def test_linked_regions_are_near_to_each_other_and_none_covers_another(name):
    topology = load_topology(name)
    at = {region: number for number, region in enumerate(topology.regions)}
    edges = [(at[link.between[0]], at[link.between[1]]) for link in topology.links]
    places = layout_in_pixels(layout(len(at), edges), apart=APART, size=SIZE)

    def units(a, b):
        return [abs(places[a][axis] - places[b][axis]) / APART[axis] for axis in (0, 1)]

    assert all(max(units(a, b)) > 0.99 for a in range(len(at)) for b in range(a))
    assert sum(max(units(*edge)) for edge in edges) / len(edges) < 2.5
