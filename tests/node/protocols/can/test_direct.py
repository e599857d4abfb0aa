"""An overlay that is made at once is one that joins could have made."""

from random import Random

import pytest

from node.protocols.can.direct import assign_zones, halved_zones
from node.protocols.can.parameters import CanParameters
from tests.node.protocols.can.overlays import Overlay
from tests.node.protocols.can.partitions import partition
from tests.node.protocols.can.test_overlay import assert_settled


def made(zones, parameters=None):
    """Return an overlay with these zones."""
    overlay = Overlay(0, zones[0].dimensions, parameters=parameters)
    nodes = []
    for address in range(1, len(zones) + 1):
        overlay.where[address] = overlay.rng.random(), overlay.rng.random()
        node = overlay.node(address, [])
        overlay.network.add(address, node)
        nodes.append(node.can)
    assign_zones(nodes, zones)
    return overlay


@pytest.mark.parametrize(("count", "dimensions"), [(1, 2), (7, 1), (80, 2), (50, 14)])
def test_an_overlay_that_is_made_at_once_is_settled(count, dimensions):
    assert_settled(made(halved_zones(count, dimensions)))
    assert_settled(made(partition(count, dimensions, Random(count))))


def test_nodes_join_one_that_was_made_at_once():
    overlay = made(halved_zones(50, 4), CanParameters(heartbeat_us=0))
    for address in range(51, 60):
        overlay.join(address)
        overlay.run(300_000)
    overlay.run(3_000_000)
    assert_settled(overlay)


def test_zones_that_are_halved_differ_by_a_half_at_most():
    volumes = [zone.volume for zone in halved_zones(100, 3)]
    assert sum(volumes) == pytest.approx(1)
    assert max(volumes) <= 2 * min(volumes)
