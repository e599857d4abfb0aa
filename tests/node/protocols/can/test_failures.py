"""After any failures of nodes and links, zones are a partition again and all neighbours are known."""

import pytest

from node.protocols.can.parameters import CanParameters
from tests.node.protocols.can.overlays import Overlay, shared, unowned, wrong
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
    overlay.network.kill(gone.own.address)
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
            overlay.network.kill(node.can.own.address)
    assert unowned(overlay.nodes) > 0.3
    overlay.run(6 * REPAIR_US)
    assert_settled(overlay)


def test_an_overlay_agrees_after_joins_and_leaves():
    overlay = Overlay(24, 4, 3)
    for address in range(25, 49):
        overlay.kill_some(1)
        overlay.join(address)
        overlay.run(500_000)
    overlay.run(3 * REPAIR_US)
    assert_settled(overlay)


@pytest.mark.parametrize("away_us", [0, 3_000_000, 20_000_000])
def test_a_restarted_node_is_a_new_node(away_us):
    overlay = Overlay(16, 3, 5)
    overlay.network.kill(7)
    overlay.run(away_us)
    overlay.join(7)
    overlay.run(2 * REPAIR_US)
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


@pytest.mark.parametrize("seed", range(2))
def test_both_sides_of_a_partition_continue_and_zones_return_afterwards(seed):
    overlay = Overlay(16, 2 + 3 * seed, seed)
    before = zones(overlay)
    overlay.network.reaches = lambda a, b: side(a) == side(b)
    overlay.run(4 * REPAIR_US)
    for each in (True, False):
        assert wrong([node for node in overlay.nodes if side(node.can.own.address) == each]) == (0, 0, [])
    overlay.network.reaches = lambda a, b: True
    overlay.run(6 * REPAIR_US)
    assert zones(overlay) == before
    assert_settled(overlay)


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


def test_a_paused_node_gets_its_zones_back():
    overlay = Overlay(16, 2, 2)
    before = zones(overlay)
    overlay.network.reaches = lambda a, b: 7 not in {a, b}
    overlay.run(2 * REPAIR_US)
    assert shared(overlay.nodes) > 0, "who stands still knows nothing of it"
    overlay.network.reaches = lambda a, b: True
    overlay.run(4 * REPAIR_US)
    assert zones(overlay)[7] == before[7]
    assert_settled(overlay)
