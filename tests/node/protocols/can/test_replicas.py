"""Replicas know their owner's neighbours and take over its zones when it fails."""

import pytest

from node.protocols.can.messages import Join, coordinates_of
from node.protocols.can.overlay import Can
from node.protocols.can.parameters import CanParameters
from tests.node.protocols.can.overlays import Overlay, unowned, wrong
from tests.node.protocols.can.test_overlay import assert_settled

REPAIR_US = CanParameters().repair_us


def with_replicas(count=2, seed=1, dimensions=2):
    """Return an overlay, one of its nodes, and the node's replicas."""
    overlay = Overlay(16, dimensions, seed)
    owner = overlay.rng.choice(overlay.nodes)
    owner.splits = lambda zone: "copy"
    replicas = []
    for address in range(17, 17 + count):
        replicas.append(overlay.join_at(address, owner.can.own.address))
        overlay.run(4_000_000)
    return overlay, owner, replicas


def owners(overlay):
    """Return the nodes with zones of their own."""
    return [node for node in overlay.nodes if node.can.zones]


def knows(node, owner):
    """Return whether a replica knows the same zones as the owner."""
    own = {(owner.can.own.address, zone) for zone in owner.can.zones}
    return set(node.can.claims.table) == set(owner.can.claims.table) and own <= set(node.can.claims.table)


def test_a_replica_has_no_zone_and_its_owners_knowledge():
    overlay, owner, replicas = with_replicas(seed=0)
    assert wrong(owners(overlay)) == (0, 0, [])
    for replica in replicas:
        assert replica.can.is_active
        assert not replica.can.zones
        assert list(replica.can.claims.held) == list(owner.can.zones)
        assert knows(replica, owner)
    addresses = (owner.can.own.address, *(replica.can.own.address for replica in replicas))
    for neighbour in owners(overlay):
        if neighbour is not owner and owner.can.own.address in neighbour.can.claims.others:
            known = neighbour.can.claims.others[owner.can.own.address]
            assert known.addresses == addresses
    points, delivered = overlay.route(100)
    assert sorted(number for number, _ in delivered) == list(range(len(points)))


def test_the_first_replica_takes_over_and_the_others_follow_it():
    overlay, owner, (first, second) = with_replicas(seed=1)
    zones = owner.can.zones
    overlay.kill(owner.can.own.address, then_us=REPAIR_US)
    assert unowned(owners(overlay)) == pytest.approx(0)
    assert first.can.zones == zones
    overlay.run(2_000_000)
    assert second.can.claims.original == first.can.own.address
    assert knows(second, first)
    overlay.kill(second.can.own.address, then_us=REPAIR_US)
    assert first.can.claims.own.replicas == ()
    assert_settled(overlay)


def test_a_replica_learns_of_splits_and_of_neighbours_that_failed():
    overlay, owner, (first, second) = with_replicas()
    owner.splits = None
    (before,) = owner.can.zones
    overlay.join_at(30, owner.can.own.address, then_us=3_000_000)
    assert owner.can.zones != (before,)
    gone = next(iter(owner.can.claims.others))
    overlay.kill(gone, then_us=2 * REPAIR_US)
    for replica in (first, second):
        assert list(replica.can.claims.held) == list(owner.can.zones)
        assert knows(replica, owner)


def test_a_leaving_node_gives_its_zones_to_a_replica():
    overlay, owner, (first, second) = with_replicas()
    (zone,) = owner.can.zones
    address = owner.can.own.address
    overlay.act(address, Can.leave, then_us=3_000_000)
    assert owner.can.has_left
    overlay.kill(address)
    assert first.can.zones == (zone,)
    overlay.run(2 * REPAIR_US)
    assert second.can.zones, "it follows no node any more, so it joined again"
    assert_settled(overlay)


def test_a_node_that_got_a_zone_meanwhile_is_no_replica():
    """Let the node join twice, because the first answer was late: it gets a zone and copies."""
    overlay, owner, _ = with_replicas(count=1)
    joining = overlay.join(30, then_us=4_000_000)
    assert joining.can.zones
    known = joining.can.own.id, joining.can.own.address
    late = Join(*known, joining.can.claims.own.sequence, coordinates_of((0.5, 0.5)))
    owner.can.claims.others.pop(30, None)  # its neighbour has newer information
    overlay.act(owner.can.own.address, lambda can: can.admit(late))
    assert [each.address for each in owner.can.claims.own.replicas] == [17, 30]
    overlay.run(150_000)
    assert [each.address for each in owner.can.claims.own.replicas] == [17]
    assert joining.can.claims.original is None


def test_a_replica_that_gets_a_zone_of_its_own_is_no_replica_any_more():
    """Return to the node a zone that it had granted and that no node accepted."""
    overlay, owner, (replica,) = with_replicas(count=1)
    zone, _ = owner.can.zones[0].split(0, owner.can.zones[0].middle[0])
    overlay.act(replica.can.own.address, lambda can: can.territory.gain({zone: 1}, None))
    assert replica.can.zones == (zone,)
    assert replica.can.claims.original is None
    replica.can.claims.check()


def test_a_join_at_a_replica_is_not_forwarded_by_its_owner():
    overlay, owner, (replica,) = with_replicas(count=1)
    owner.sends_on = lambda join: pytest.fail("the owner sends it on")
    joining = overlay.join_at(30, replica.can.own.address, then_us=4_000_000)
    assert joining.can.claims.original == owner.can.own.address


def test_two_nodes_that_leave_at_once_do_not_exchange_zones_forever():
    overlay = Overlay(16)
    nodes = {node.can.own: node for node in overlay.nodes}
    successor_of = {node: nodes[node.can._takeover.successors()[0]] for node in overlay.nodes}
    one, other = next(
        (node, successor) for node, successor in successor_of.items() if successor_of[successor] is node
    )
    for _ in range(2):  # as where both look after it at the same moments
        for node in (one, other):
            overlay.act(node.can.own.address, Can.leave)
        overlay.run(200_000)
    assert one.can.has_left
    assert other.can.has_left
    left = [node for node in overlay.nodes if node not in {one, other}]
    assert unowned(left) == pytest.approx(0)
