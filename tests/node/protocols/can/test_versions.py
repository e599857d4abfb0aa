"""Versions of a node's zones when it gains some."""

import pytest

from node.protocols.can.versions import united_versions
from node.protocols.can.zones import Zone
from tests.node.protocols.can.overlays import Overlay, wrong

WHOLE = Zone((0.0, 0.0), (1.0, 1.0))
BELOW, ABOVE = WHOLE.split(0, 0.5)


def test_returned_parts_of_taken_over_zones_are_held_once():
    assert united_versions({WHOLE: 1}, {BELOW: 0}) == {ABOVE: 1, BELOW: 0}
    assert united_versions({BELOW: 0}, {WHOLE: 1}) == {ABOVE: 1, BELOW: 0}
    assert united_versions({BELOW: 1, ABOVE: 2}, {WHOLE: 1}) == {BELOW: 1, ABOVE: 1}
    assert united_versions({BELOW: 1}, {BELOW: 0}) == {BELOW: 0}


@pytest.mark.parametrize("version", [0, 1, 2])
def test_a_node_granted_part_of_its_own_zone_holds_it_once(version):
    overlay = Overlay(2)
    node = overlay.nodes[0]
    (zone,) = node.can.zones
    part, _ = zone.split(1, 0.5)
    overlay.act(1, lambda can: can.territory.gain({part: version}, None), then_us=2_000_000)
    assert sum(each.volume for each in node.can.zones) == zone.volume
    assert wrong(overlay.nodes) == (0, 0, [])
