"""An overlay routes every key to the node that a look at all ids says, whatever became of nodes and ways."""

import math
from itertools import pairwise

import pytest

from node.core import machine as m
from node.core.peers.peer_pool import ReceivedFrom
from node.protocols.pastry.ids import distance, shared_digits
from node.protocols.pastry.last_leaf_set import LastLeafSet
from node.protocols.pastry.messages import JoinLeaves, JoinRows, LeafAnswer, Relay
from node.protocols.pastry.parameters import PastryParameters
from node.protocols.reachability.nodes import NodeHandle, id_of
from node.protocols.reachability.reachability import WAY_MAX
from node.sim.storage import SimulatedDisk
from tests.node.protocols.pastry.overlays import Node, Overlay, root_of, wrong_leaf_sets

HALF = PastryParameters().leaf_set // 2
REPAIR_US = 8_000_000
"""Heartbeat timeout, three probes, twice over: the neighbours of the neighbours look for themselves."""


def assert_settled(overlay, nodes=None, count=300):
    """Leaf sets are the ring's, and every key is delivered once, where it belongs."""
    nodes = nodes or overlay.nodes
    assert wrong_leaf_sets(nodes, HALF) == 0
    keys, delivered = overlay.route(count, nodes)
    assert sorted(number for number, _, _ in delivered) == list(range(count))
    assert all(where == root_of(key, nodes) for _, key, where in delivered)
    return keys


@pytest.mark.parametrize("count", [1, 2, 3, 9, 16, 17, 18, 33, 100])
def test_a_ring_of_any_size_routes_to_the_closest_node(count):
    assert_settled(Overlay(count))


@pytest.mark.parametrize("seed", range(2))
def test_nodes_that_all_join_at_once_agree(seed):
    assert_settled(Overlay(40, seed, gap_us=0))


@pytest.mark.parametrize(("b", "leaf_set"), [(1, 4), (2, 8), (8, 32)])
def test_any_digits_and_leaf_sets_will_do(b, leaf_set):
    overlay = Overlay(40, parameters=PastryParameters(b=b, leaf_set=leaf_set))
    assert wrong_leaf_sets(overlay.nodes, leaf_set // 2) == 0
    _, delivered = overlay.route(100)
    assert len(delivered) == 100
    assert all(where == root_of(key, overlay.nodes) for _, key, where in delivered)


@pytest.mark.slow
def test_routes_are_as_long_as_the_paper_says():
    overlay = Overlay(200, parameters=PastryParameters(heartbeat_us=0))
    before = overlay.network.sent
    overlay.route(1_000)
    assert (overlay.network.sent - before) / 1_000 <= math.ceil(math.log(200, 16))


def test_the_same_seed_gives_the_same_messages():
    first, second = Overlay(30, 5), Overlay(30, 5)
    assert first.network.sent == second.network.sent
    assert first.route(50) == second.route(50)


@pytest.mark.slow
def test_when_a_quarter_of_all_nodes_is_gone_the_rest_agrees():
    overlay = Overlay(48, 0)
    for address in overlay.rng.sample(sorted(overlay.network.nodes), 12):
        overlay.network.kill(address)
    overlay.run(REPAIR_US)
    assert_settled(overlay)


@pytest.mark.slow
def test_relays_are_not_asked_for_a_dead_process_whose_host_answers():
    overlay = Overlay(48, 2)
    overlay.run(REPAIR_US)
    relayed = []

    def watch(source, target, messages):
        relayed.extend(message for message in messages if isinstance(message, Relay))

    overlay.network.watch = watch
    for address in range(12):
        overlay.network.kill(address)
    overlay.run(2 * REPAIR_US)
    assert_settled(overlay)
    assert relayed == []


@pytest.mark.slow
def test_nodes_that_come_and_go_leave_a_ring_that_agrees():
    overlay = Overlay(30, 3)
    for address in range(30, 60):
        overlay.network.kill(overlay.rng.choice(sorted(overlay.network.nodes)))
        overlay.join(address)
        overlay.run(500_000)
    overlay.run(REPAIR_US)
    assert_settled(overlay)


def region(address):
    """Return the region of an address, one of four."""
    return address % 4


def test_two_disconnected_regions_agree_through_relays():
    overlay = Overlay(40, 1)
    overlay.network.reaches = lambda a, b: {region(a), region(b)} != {2, 3}
    overlay.run(REPAIR_US)
    assert_settled(overlay)
    assert any(node.pastry.reach.relays_of for node in overlay.nodes)
    overlay.network.reaches = lambda a, b: True
    overlay.run(2 * PastryParameters().direct_again_us)
    assert_settled(overlay)
    assert not any(node.pastry.reach.relays_of for node in overlay.nodes)


@pytest.mark.parametrize("groups", [5, 6])
@pytest.mark.slow
def test_regions_agree_through_three_or_four_relays(groups):
    overlay = Overlay(40, 5)
    overlay.network.reaches = lambda a, b: abs(a % groups - b % groups) <= 1  # in a row
    overlay.run(12 * REPAIR_US)
    assert wrong_leaf_sets(overlay.nodes, HALF) == 0
    ways = [len(way) for node in overlay.nodes for way in node.pastry.reach.relays_of.values()]
    assert groups - 2 <= max(ways) <= WAY_MAX


def test_no_node_delivers_wrongly_while_a_cut_is_being_detected():
    overlay = Overlay(40, 7)
    overlay.network.reaches = lambda a, b: {region(a), region(b)} != {2, 3}
    for _ in range(6):
        _, delivered = overlay.route(100)
        assert all(where == root_of(key, overlay.nodes) for _, key, where in delivered)


def test_routes_avoid_a_direction_that_is_cut():
    """Allow duplicates after lost acknowledgements; nothing is lost or delivered elsewhere."""
    overlay = Overlay(40, 1)
    overlay.network.reaches = lambda a, b: (region(a), region(b)) != (2, 3)
    overlay.run(REPAIR_US)
    assert wrong_leaf_sets(overlay.nodes, HALF) == 0
    _, delivered = overlay.route(300)
    assert {number for number, _, _ in delivered} == set(range(300))
    assert all(where == root_of(key, overlay.nodes) for _, key, where in delivered)


def test_routed_messages_arrive_despite_an_undetected_cut_or_crash():
    overlay = Overlay(40, 2)
    overlay.network.reaches = lambda a, b: {region(a), region(b)} != {2, 3}
    for address in overlay.rng.sample(sorted(overlay.network.nodes), 4):
        overlay.network.kill(address)
    _, delivered = overlay.route(200)
    overlay.run(REPAIR_US)
    came = {number for number, _, _ in delivered} | {message.number for message, _, _ in overlay.delivered}
    assert came == set(range(200))


@pytest.mark.slow
def test_a_ring_that_was_divided_grows_together():
    overlay = Overlay(40, 2)
    overlay.network.reaches = lambda a, b: (region(a) < 2) == (region(b) < 2)
    overlay.run(2 * REPAIR_US)
    halves = [
        [node for node in overlay.nodes if (region(node.pastry.own.address) < 2) == side]
        for side in (True, False)
    ]
    for half in halves:
        assert wrong_leaf_sets(half, HALF) == 0
    overlay.network.reaches = lambda a, b: True
    overlay.run(3 * REPAIR_US)
    assert_settled(overlay)


@pytest.mark.parametrize("remember_us", [PastryParameters().remember_us, 0])
def test_a_returning_node_with_a_dead_contact_asks_its_last_leaf_set(remember_us):
    overlay = Overlay(30, 4, parameters=PastryParameters(remember_us=remember_us))
    overlay.run(2 * PastryParameters().remember_us)
    for address in (0, 7):
        overlay.network.kill(address)
    overlay.run(22_000_000)  # no node probes it at present
    node = Node(7, [0], overlay.parameters, overlay.delivered)
    overlay.network.start(7, node)
    overlay.run(4_000_000)
    assert node.pastry.is_active == bool(remember_us)
    if remember_us:
        assert_settled(overlay)


def test_some_of_a_last_leaf_set_may_be_gone_as_well():
    overlay = Overlay(30, 4)
    overlay.run(2 * PastryParameters().remember_us)
    leaf_set = next(node for node in overlay.nodes if node.pastry.own.address == 7).pastry.leaf_set
    overlay.network.kill(7)
    gone = [node.address for node in leaf_set.members[::2]]
    for address in gone:
        overlay.network.kill(address)
    overlay.run(REPAIR_US)
    overlay.network.start(7, Node(7, gone[:1], overlay.parameters, overlay.delivered))
    overlay.run(REPAIR_US)
    assert_settled(overlay)


def test_when_all_come_back_at_once_the_first_is_alone_for_a_while():
    overlay = Overlay(20, 6)
    overlay.run(2 * PastryParameters().remember_us)
    for address in range(20):
        overlay.network.kill(address)
    for address in range(20):
        contacts = [overlay.rng.randrange(address)] if address else []
        overlay.network.start(address, Node(address, contacts, overlay.parameters, overlay.delivered))
    overlay.run(3 * REPAIR_US)
    assert_settled(overlay)


def test_a_leaf_set_is_written_when_it_changes_and_the_one_before_is_dropped():
    own, other, third = (NodeHandle(number, number) for number in (5, 6, 7))
    memory = LastLeafSet(own, 1_000)
    assert list(memory.write((), 0)) == []
    assert [type(each) for each in memory.write((other,), 0)] == [m.Append]
    assert list(memory.write((other,), 2_000)) == []
    assert [type(each) for each in memory.write((other, third), 2_000)] == [m.Append, m.Rewrite]
    assert list(memory.write((third,), 2_500)) == [], "not so soon"
    disk = SimulatedDisk()
    for effect in memory.write((third,), 3_000):
        disk.execute(effect) if isinstance(effect, m.Append) else None
    again = LastLeafSet(own, 1_000)
    stored = [m.StoredSegment(number, each) for number, each in disk.segments.items()]
    assert again.restored(stored) == (third,)
    assert list(again.write((third,), 9_000)) == []
    (append, rewrite) = again.write((other,), 9_000)
    assert append.segment > stored[-1].number
    assert tuple(rewrite.segments) == (stored[-1].number,)


def heard_by(node):
    """Return the list of messages that a node receives from now on, as (address, message)."""
    heard, handle = [], node.handle

    def listening(given, now_us):
        if isinstance(given, ReceivedFrom):
            heard.extend((given.address, message) for message in given.messages)
        return handle(given, now_us)

    node.handle = listening
    return heard


def joined(overlay, address, contacts):
    """Return a node that joins, and the messages that it receives until it has joined."""
    node = Node(address, contacts, overlay.parameters, overlay.delivered)
    overlay.where.setdefault(address, (overlay.rng.random(), overlay.rng.random()))
    heard = heard_by(node)
    overlay.network.start(address, node)
    return node, heard


@pytest.mark.slow
def test_a_joining_node_asks_its_leaf_set_instead_of_the_whole_ring():
    overlay = Overlay(150, parameters=PastryParameters(heartbeat_us=0))
    node, heard = joined(overlay, 1_000, [3])
    overlay.run(2_000_000)
    answers = [address for address, message in heard if isinstance(message, LeafAnswer)]
    assert set(answers) == {each.address for each in node.pastry.leaf_set.members}
    assert len(answers) == PastryParameters().leaf_set
    assert_settled(overlay)


@pytest.mark.slow
def test_a_node_that_returns_at_once_gets_its_leaf_set_from_a_neighbour():
    """All that knew it know it still: for its own id they must not take it for the next one themselves."""
    overlay = Overlay(100, 2)
    for address in (5, 50, 95):
        overlay.network.kill(address)
        contact = overlay.rng.choice(sorted(overlay.network.nodes))
        node, heard = joined(overlay, address, [contact])
        overlay.run(600_000)
        first = next(address for address, message in heard if isinstance(message, JoinLeaves))
        assert first in {node.pastry.leaf_set.smaller[0].address, node.pastry.leaf_set.larger[0].address}
        assert node.pastry.is_active
    overlay.run(3_000_000)
    assert_settled(overlay)


@pytest.mark.slow
def test_a_join_does_not_wait_for_the_end_of_all_failures():
    """While its neighbours fail one after the other, some probe is always under way."""
    overlay = Overlay(60, 5)
    ring = sorted((node.pastry.own for node in overlay.nodes), key=lambda each: each.id)
    near = sorted(ring, key=lambda each: distance(each.id, id_of("node 1000")))
    node, _ = joined(overlay, 1_000, [near[40].address])
    for victim in near[2:14:2]:
        overlay.network.kill(victim.address)
        overlay.run(700_000)
    assert node.pastry.is_active
    overlay.run(REPAIR_US)
    assert_settled(overlay)


@pytest.mark.slow
def test_if_candidates_fail_the_next_ones_are_asked():
    overlay = Overlay(60, 8)
    ring = sorted((node.pastry.own for node in overlay.nodes), key=lambda each: each.id)
    near = sorted(ring, key=lambda each: distance(each.id, id_of("node 1000")))
    for victim in near[1:8]:
        overlay.network.kill(victim.address)  # not detected yet
    joined(overlay, 1_000, [near[40].address])
    overlay.run(REPAIR_US)
    assert_settled(overlay)


def test_messages_forwarded_after_a_return_are_not_mistaken_for_earlier_ones():
    overlay = Overlay(40, 9)
    for _ in range(2):
        _, delivered = overlay.route(100, [node for node in overlay.nodes if node.pastry.own.address == 7])
        assert len(delivered) == 100
        overlay.network.kill(7)
        overlay.network.start(7, Node(7, [3], overlay.parameters, overlay.delivered))
        overlay.run(2_000_000)


@pytest.mark.slow
def test_each_node_on_the_way_of_a_join_gives_the_rows_that_those_before_it_do_not_have():
    """Row i from the i-th hop, the neighbourhood set from the first node, the leaf set from the last."""
    overlay = Overlay(200, parameters=PastryParameters(heartbeat_us=0))
    node_id = id_of("node 1000")
    first = max(overlay.nodes, key=lambda each: distance(each.pastry.own.id, node_id)).pastry
    near = {node for _, node in first.nodes.neighbourhood}
    node, heard = joined(overlay, 1_000, [first.own.address])
    overlay.run(2_000_000)
    rows = [message for _, message in heard if isinstance(message, JoinRows)]
    assert rows[0].id == first.own.id
    assert near <= set(rows[0].nodes)
    given = [
        {shared_digits(each.id, message.id, 4) for each in message.nodes if each.id != message.id}
        for message in (JoinRows(rows[0].id, tuple(set(rows[0].nodes) - near)), *rows[1:])
    ]
    assert len(given) > 1
    assert all(max(one) < min(other) for one, other in pairwise(filter(None, given)))
    (leaves,) = [address for address, message in heard if isinstance(message, JoinLeaves)]
    assert leaves in {node.pastry.leaf_set.smaller[0].address, node.pastry.leaf_set.larger[0].address}


@pytest.mark.slow
def test_a_join_takes_as_many_messages_as_there_are_entries_to_measure():
    """O(log N): two or three for each node that was told of, and twice as many as the leaf set holds."""
    overlay = Overlay(300, parameters=PastryParameters(heartbeat_us=0))
    before = overlay.network.sent
    for address in range(1_000, 1_020):
        overlay.where[address] = overlay.rng.random(), overlay.rng.random()
        contact = min(sorted(overlay.network.nodes), key=lambda each: overlay.delay_us(each, address))
        joined(overlay, address, [contact])
        overlay.run(1_000_000)
    assert (overlay.network.sent - before) / 20 < 200


def talk(overlay, us):
    """All of regions 2 and 3 send something to each other, all the time."""
    sides = [[n.pastry.own for n in overlay.nodes if region(n.pastry.own.address) == r] for r in (2, 3)]
    pairs = [(a, b) for here, there in (sides, sides[::-1]) for a in here for b in there]
    until_us = overlay.network.clock.now_us + us
    while overlay.network.clock.now_us < until_us:
        for a, b in pairs:
            overlay.network.call(a.address, lambda node, now, b=b: node.send(b, now))
        overlay.run(100_000)


@pytest.mark.slow
def test_all_go_directly_again_though_each_tries_at_a_time_of_its_own():
    overlay = Overlay(40, 5, gap_us=130_000)
    overlay.network.reaches = lambda a, b: {region(a), region(b)} != {2, 3}
    talk(overlay, 8_000_000)
    assert any(node.pastry.reach.relays_of for node in overlay.nodes)
    overlay.network.reaches = lambda a, b: True
    talk(overlay, 2 * PastryParameters().direct_again_us + 1_000_000)
    assert not any(node.pastry.reach.relays_of for node in overlay.nodes)


@pytest.mark.parametrize("contact", [0, 3, 9])
def test_a_node_whose_id_another_one_has_takes_a_new_one(contact):
    """X = Z in the join; whether the one that it joins through has the id, or is only on the way."""
    overlay = Overlay(10)
    taken = overlay.nodes[3].pastry.own
    overlay.where[10] = overlay.rng.random(), overlay.rng.random()
    overlay.network.start(10, Node(10, [contact], overlay.parameters, overlay.delivered, taken.id))
    overlay.run(4_000_000)
    ids = [node.pastry.own.id for node in overlay.nodes]
    assert len(set(ids)) == 11
    assert overlay.nodes[3].pastry.own == taken
    assert_settled(overlay)
