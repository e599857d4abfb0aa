"""An overlay divides the space and routes every point to its zone's owner, checked against all zones."""

import pytest

from node.protocols.can.overlay import Can
from node.protocols.can.parameters import CanParameters
from tests.node.protocols.can.overlays import Overlay, table_of, wrong


def assert_settled(overlay, nodes=None, count=200):
    """Zones are a partition, neighbours are exact, and each point is delivered once, where it belongs."""
    nodes = nodes or overlay.nodes
    assert wrong(nodes) == (0, 0, [])
    points, delivered = overlay.route(count, nodes)
    assert sorted(number for number, _ in delivered) == list(range(count))
    table = table_of(nodes)
    for number, where in delivered:
        (row,) = table.containing(points[number]).nonzero()[0]
        assert table.owners[row] == where


@pytest.mark.parametrize(("count", "dimensions"), [(1, 2), (2, 1), (3, 6), (9, 14), (40, 1), (30, 6)])
def test_nodes_that_join_one_after_the_other_divide_the_space(count, dimensions):
    assert_settled(Overlay(count, dimensions))


def test_without_failures_only_joins_send_messages():
    overlay = Overlay(30, 3, 1, parameters=CanParameters(heartbeat_us=0))
    sent = overlay.network.sent
    overlay.run(60_000_000)
    assert overlay.network.sent == sent
    assert_settled(overlay)


@pytest.mark.parametrize("seed", range(2))
def test_a_leaving_node_hands_over_its_zones_without_losing_routed_messages(seed):
    overlay = Overlay(24, 2 + 4 * seed, seed)
    leaving = overlay.rng.sample(overlay.nodes, 6)
    for number in range(60):
        if number % 10 == 0:
            overlay.act(leaving[number // 10].can.own.address, Can.leave)
        overlay.send(overlay.rng.choice(overlay.nodes), number, overlay.any_point())
        overlay.run(30_000)
    overlay.run(3_000_000)
    for node in leaving:
        assert node.can.has_left
        overlay.kill(node.can.own.address)
    assert sorted(number for number, _ in overlay.delivered) == list(range(60))
    assert_settled(overlay)


def test_a_zone_granted_to_a_dead_node_is_granted_to_another():
    overlay = Overlay(12, 2, 3)
    leaving = overlay.rng.choice(overlay.nodes).can
    overlay.kill(leaving._takeover.successors()[0].address)
    overlay.act(leaving.own.address, Can.leave, then_us=20_000_000)
    assert leaving.has_left
    overlay.kill(leaving.own.address, then_us=20_000_000)
    assert_settled(overlay)


def test_the_last_node_may_leave():
    overlay = Overlay(1)
    overlay.act(1, Can.leave)
    assert overlay.nodes[0].can.has_left


def test_a_node_may_request_part_of_another_nodes_zone():
    overlay = Overlay(9, 2, 1)
    asked = overlay.rng.choice(overlay.nodes).can
    (before,) = asked.zones
    node = overlay.join_at(10, asked.own.address, then_us=3_000_000)
    assert before.covers(node.can.zones[0])
    assert_settled(overlay)


def test_the_application_chooses_where_a_zone_is_split():
    overlay = Overlay(1, 3)
    overlay.nodes[0].splits = lambda zone: (2, 0.9)
    overlay.join(2, then_us=1_000_000)
    volumes = sorted(node.can.zones[0].volume for node in overlay.nodes)
    assert volumes == pytest.approx([0.1, 0.9])
    assert_settled(overlay)
