"""After any failures of nodes and links, zones are a partition again and all neighbours are known."""

import pytest

from node.protocols.can.parameters import CanParameters
from tests.node.protocols.can.overlays import Overlay, shared, unowned
from tests.node.protocols.can.test_overlay import assert_settled

REPAIR_US = CanParameters().repair_us
DIRECT_AGAIN_US = CanParameters().direct_again_us


def region(address):
    """Return the region of an address, one of four."""
    return address % 4


def side(address):
    """Return the side of an address, one of two with two regions each."""
    return region(address) < 2


def zones(overlay):
    """Return the zones of each node, by address."""
    return {node.can.own.address: sorted(node.can.zones) for node in overlay.nodes}


@pytest.mark.parametrize(("dimensions", "seed"), [(2, 0), (14, 1)])
def test_a_failed_nodes_zones_have_no_owner_until_the_repair_and_then_one(dimensions, seed):
    overlay = Overlay(24, dimensions, seed)
    gone = overlay.rng.choice(overlay.nodes).can
    volume = sum(zone.volume for zone in gone.zones)
    overlay.kill(gone.own.address)
    assert unowned(overlay.nodes) == pytest.approx(volume)
    for _ in range(REPAIR_US // 250_000):
        overlay.run(250_000)
        assert unowned(overlay.nodes) in (pytest.approx(0), pytest.approx(volume))
        assert shared(overlay.nodes) == 0
    assert unowned(overlay.nodes) == pytest.approx(0)
    overlay.run(2_000_000)
    assert_settled(overlay)


def test_a_lost_corner_of_the_space_is_found_and_taken_over():
    """Kill all nodes that knew the nodes in the middle of the corner."""
    overlay = Overlay(40, 2, 3)
    for node in overlay.nodes:
        if all(zone.high[0] <= 0.5 and zone.high[1] <= 0.75 for zone in node.can.zones):
            overlay.kill(node.can.own.address)
    assert unowned(overlay.nodes) > 0.3
    overlay.run(6 * REPAIR_US)
    assert_settled(overlay)


@pytest.mark.parametrize(("dimensions", "cut"), [(2, [(2, 3), (3, 2)]), (5, [(2, 3)])])
def test_a_cut_link_causes_relays_and_no_takeovers(dimensions, cut):
    overlay = Overlay(24, dimensions)
    before = zones(overlay)
    overlay.network.reaches = lambda a, b: (region(a), region(b)) not in cut
    for _ in range(15):
        overlay.run(1_000_000)
        assert zones(overlay) == before
    points, delivered = overlay.route(100)
    assert {number for number, _ in delivered} == set(range(len(points)))
    overlay.network.reaches = lambda a, b: True
    overlay.run(3 * DIRECT_AGAIN_US)
    assert not any(node.can.reach.relays_of for node in overlay.nodes)
    assert_settled(overlay)
    assert zones(overlay) == before


def test_nodes_that_joined_in_a_partition_give_way_and_join_again():
    overlay = Overlay(12, 2, 1)
    overlay.network.reaches = lambda a, b: side(a) == side(b)
    overlay.run(3 * REPAIR_US)
    for address in range(13, 21):
        there = [each for each in overlay.network.nodes if side(each) == side(address)]
        overlay.join(address).contacts = there[:3]
        overlay.run(300_000)
    overlay.network.reaches = lambda a, b: True
    overlay.run(8 * REPAIR_US)
    assert_settled(overlay)
