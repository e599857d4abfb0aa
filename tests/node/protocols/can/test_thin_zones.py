"""Zones that are too thin to be halved, or as thin as a grid step."""

from math import nextafter

import pytest

from node.protocols.can.zones import Zone
from tests.node.protocols.can.overlays import Overlay
from tests.node.protocols.can.test_overlay import assert_settled

STEP = 1 / (1 << 40)


def joined_by(count, zone):
    """Return one node, and others that joined at it when its zone was this one."""
    overlay = Overlay(1, len(zone.low))
    node = overlay.nodes[0]
    node.can.claims.set_own({zone: 0})
    for address in range(2, 2 + count):
        overlay.join_at(address, 1, then_us=2_000_000)
    return overlay


def test_a_node_that_joins_an_indivisible_zone_gets_copies():
    at = 0.5
    zone = Zone((at, at), (nextafter(at, 1.0), nextafter(at, 1.0)))
    overlay = joined_by(2, zone)
    assert [node.can.zones for node in overlay.nodes] == [(zone,), (), ()]
    assert len(overlay.nodes[0].can.claims.own.replicas) == 2


def test_a_zone_of_one_point_of_the_grid_is_halved_between_points():
    zone = Zone((0.0, 0.0), (STEP, STEP))
    overlay = joined_by(3, zone)
    assert sum(each.volume for node in overlay.nodes for each in node.can.zones) == zone.volume


@pytest.mark.parametrize("dimensions", [2, 14])
def test_cuts_a_step_from_the_edges_of_the_space_divide_it(dimensions):
    overlay = Overlay(1, dimensions)
    for number, at in enumerate((STEP, 1.0 - STEP, 2 * STEP, 1.0 - 2 * STEP)):
        for node in overlay.nodes:
            node.splits = lambda zone, at=at: next(
                ((side, at) for side in range(dimensions) if zone.low[side] < at < zone.high[side]), None
            )
        overlay.join(2 + number, then_us=2_000_000)
    assert_settled(overlay)
