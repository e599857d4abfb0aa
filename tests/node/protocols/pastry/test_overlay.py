"""An overlay routes every key to the closest node, after any failures of nodes and links."""

import math
from itertools import pairwise

import pytest

from node.core import machine as m
from node.core.peers.peer_pool import ReceivedFrom
from node.protocols.pastry.ids import distance, shared_digits
from node.protocols.pastry.last_leaf_set import LastLeafSet
from node.protocols.pastry.messages import Heartbeat, JoinLeaves, JoinRows, LeafAnswer, Relay
from node.protocols.pastry.parameters import PastryParameters
from node.protocols.reachability.nodes import NodeHandle, id_of
from node.protocols.reachability.reachability import WAY_MAX
from node.sim.storage import SimulatedDisk
from tests.node.protocols.pastry.overlays import Overlay, root_of, wrong_leaf_sets

PARAMETERS = PastryParameters()
HALF = PARAMETERS.leaf_set // 2
REPAIR_US = 8_000_000
"""Heartbeat timeout, three probes, twice over: the neighbours of the neighbours look for themselves."""
NEW = 1_000
"""Address of the first node that joins later."""


def assert_settled(overlay, nodes=None, count=100, half=HALF):
    """Check that leaf sets are those of the ring, and that every key is delivered once, at its closest
    node.
    """
    nodes = nodes or overlay.nodes
    assert wrong_leaf_sets(nodes, half) == 0
    _, delivered = overlay.route(count, nodes)
    assert sorted(number for number, _, _ in delivered) == list(range(count))
    assert_closest(delivered, nodes)


def assert_closest(delivered, nodes):
    assert all(where == root_of(key, nodes) for _, key, where in delivered)


@pytest.mark.parametrize("count", [1, 2, 3, 16, 17, 18, 33])
def test_a_ring_of_any_size_routes_to_the_closest_node(count):
    assert_settled(Overlay(count))


@pytest.mark.parametrize(("b", "leaf_set"), [(1, 4), (2, 8), (8, 32)])
def test_nodes_with_any_digits_and_leaf_sets_agree_if_all_join_at_once(b, leaf_set):
    overlay = Overlay(40, gap_us=0, parameters=PastryParameters(b=b, leaf_set=leaf_set))
    assert_settled(overlay, half=leaf_set // 2)


@pytest.mark.slow
def test_relays_are_not_used_for_a_dead_process_whose_host_refuses():
    overlay, relayed = Overlay(40, 2), []
    overlay.run(REPAIR_US)

    def watch(source, target, messages):
        relayed.extend(message for message in messages if isinstance(message, Relay))

    overlay.network.watch = watch
    overlay.kill_some(10, then_us=2 * REPAIR_US)
    assert_settled(overlay)
    assert relayed == []


@pytest.mark.slow
def test_a_ring_agrees_after_joins_and_failures():
    overlay = Overlay(24, 3)
    for address in range(24, 44):
        overlay.kill_some(1)
        overlay.join(address, then_us=500_000)
    overlay.run(REPAIR_US)
    assert_settled(overlay)


def region(address):
    """Return the region of an address, one of four."""
    return address % 4


def cut(overlay, *apart, then_us=None):
    """Cut the paths between these pairs of regions from now on, one direction each."""
    overlay.network.reaches = lambda a, b: (region(a), region(b)) not in apart
    overlay.run(then_us)


def relayed(overlay):
    return any(node.pastry.reach.relays_of for node in overlay.nodes)


def test_no_node_misdelivers_during_a_cut_and_relays_are_used_until_it_heals():
    overlay = Overlay(40, 1)
    cut(overlay, (2, 3), (3, 2))
    for _ in range(6):
        assert_closest(overlay.route(100)[1], overlay.nodes)
    assert_settled(overlay)
    assert relayed(overlay)
    cut(overlay, then_us=2 * PARAMETERS.direct_again_us)
    assert_settled(overlay)
    assert not relayed(overlay)


@pytest.mark.slow
@pytest.mark.parametrize(("count", "rounds"), [(40, 12), (36, 24)])  # 36 need searches that do not fade
def test_regions_agree_through_the_maximum_number_of_relays(count, rounds):
    groups = WAY_MAX + 2
    overlay = Overlay(count, 5)
    overlay.network.reaches = lambda a, b: abs(a % groups - b % groups) <= 1  # in a row
    overlay.run(rounds * REPAIR_US)
    assert wrong_leaf_sets(overlay.nodes, HALF) == 0
    ways = [len(way) for node in overlay.nodes for way in node.pastry.reach.relays_of.values()]
    assert max(ways) == WAY_MAX


def test_routes_avoid_a_direction_that_is_cut():
    """Allow duplicates after lost acknowledgements; nothing is lost or delivered elsewhere."""
    overlay = Overlay(40, 1)
    cut(overlay, (2, 3), then_us=REPAIR_US)
    assert wrong_leaf_sets(overlay.nodes, HALF) == 0
    _, delivered = overlay.route(300)
    assert {number for number, _, _ in delivered} == set(range(300))
    assert_closest(delivered, overlay.nodes)


def test_routed_messages_arrive_despite_an_undetected_cut_or_crash():
    overlay = Overlay(40, 2)
    cut(overlay, (2, 3), (3, 2))
    overlay.kill_some(4)
    _, delivered = overlay.route(200)
    overlay.run(REPAIR_US)
    came = {number for number, _, _ in delivered} | {message.number for message, _, _ in overlay.delivered}
    assert came == set(range(200))


@pytest.mark.slow
def test_a_partitioned_ring_reunites():
    overlay = Overlay(36, 2)
    overlay.network.reaches = lambda a, b: (region(a) < 2) == (region(b) < 2)
    overlay.run(2 * REPAIR_US)
    for side in (True, False):
        half = [node for node in overlay.nodes if (region(node.pastry.own.address) < 2) == side]
        assert wrong_leaf_sets(half, HALF) == 0
    cut(overlay, then_us=3 * REPAIR_US)
    assert_settled(overlay)


def restart(overlay, address, contacts, then_us=None):
    """Start a node with these contacts; return it and what it receives, as (address, message)."""
    overlay.where.setdefault(address, (overlay.rng.random(), overlay.rng.random()))
    node, heard = overlay.node(address, contacts), []
    handle = node.handle

    def listening(given, now_us):
        if isinstance(given, ReceivedFrom):
            heard.extend((given.address, message) for message in given.messages)
        return handle(given, now_us)

    node.handle = listening
    overlay.network.start(address, node)
    overlay.run(then_us)
    return node, heard


@pytest.mark.parametrize("remember_us", [PARAMETERS.remember_us, 0])
def test_a_returning_node_with_a_dead_contact_asks_its_last_leaf_set(remember_us):
    overlay = Overlay(30, 4, parameters=PastryParameters(remember_us=remember_us))
    overlay.run(2 * PARAMETERS.remember_us)
    members = overlay.nodes[7].pastry.leaf_set.members
    gone = [7, *(node.address for node in members[::2])]
    for address in gone:
        overlay.kill(address)
    overlay.run(22_000_000)  # no node probes it at present
    node, _ = restart(overlay, 7, gone[1:2], then_us=5_000_000)
    assert node.pastry.is_active == bool(remember_us)
    if remember_us:
        assert_settled(overlay)


def test_when_all_nodes_restart_at_once_the_first_is_alone_for_a_while():
    overlay = Overlay(20, 6)
    overlay.run(2 * PARAMETERS.remember_us)
    overlay.kill_some(20)
    for address in range(20):
        restart(overlay, address, [overlay.rng.randrange(address)] if address else [])
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


@pytest.mark.slow
def test_a_node_that_returns_at_once_gets_its_leaf_set_from_a_neighbour():
    """Check that nodes that still know it do not choose it as the next hop for its own id."""
    overlay = Overlay(60, 2)
    for address in (5, 30, 55):
        overlay.kill(address)
        node, heard = restart(overlay, address, [overlay.rng.choice(sorted(overlay.network.nodes))])
        overlay.run(600_000)
        assert_leaves_from_neighbour(node, heard)
        assert node.pastry.is_active
    overlay.run(3_000_000)
    assert_settled(overlay)


def assert_leaves_from_neighbour(node, heard):
    leaves = next(address for address, message in heard if isinstance(message, JoinLeaves))
    leaf_set = node.pastry.leaf_set
    assert leaves in {leaf_set.smaller[0].address, leaf_set.larger[0].address}


def nearest(overlay):
    """Return all nodes, nearest first to the one that will join."""
    return sorted((node.pastry.own for node in overlay.nodes), key=lambda each: distance(each.id, NEW_ID))


NEW_ID = id_of(f"node {NEW}")


@pytest.mark.slow
def test_a_join_does_not_wait_for_the_end_of_all_failures():
    """Let its neighbours fail one after the other, so that a probe is always pending."""
    overlay = Overlay(60, 5)
    near = nearest(overlay)
    node, _ = restart(overlay, NEW, [near[40].address])
    for victim in near[2:14:2]:
        overlay.kill(victim.address, then_us=700_000)
    assert node.pastry.is_active
    overlay.run(REPAIR_US)
    assert_settled(overlay)


@pytest.mark.slow
def test_if_candidates_fail_the_next_candidates_are_probed():
    overlay = Overlay(40, 8)
    near = nearest(overlay)
    for victim in near[1:8]:
        overlay.kill(victim.address)  # not detected yet
    restart(overlay, NEW, [near[30].address], then_us=REPAIR_US)
    assert_settled(overlay)


def test_messages_forwarded_after_a_return_are_not_mistaken_for_earlier_ones():
    overlay = Overlay(40, 9)
    for _ in range(2):
        _, delivered = overlay.route(100, [node for node in overlay.nodes if node.pastry.own.address == 7])
        assert len(delivered) == 100
        overlay.kill(7)
        restart(overlay, 7, [3], then_us=2_000_000)


# --- Costs of routes and joins


@pytest.fixture(scope="module")
def quiet():
    """Return an overlay without heartbeats, which the tests extend by nodes."""
    return Overlay(150, parameters=PastryParameters(heartbeat_us=0))


@pytest.mark.slow
def test_routes_have_the_papers_length(quiet):
    before = quiet.network.sent
    quiet.route(500)
    assert (quiet.network.sent - before) / 500 <= math.ceil(math.log(len(quiet.nodes), 16))


@pytest.mark.slow
def test_each_node_on_a_joins_route_sends_its_rows_and_only_the_leaf_set_is_probed(quiet):
    """Row i comes from the i-th hop, the neighbourhood set from the first node, the leaf set from the
    last.
    """
    first = max(quiet.nodes, key=lambda each: distance(each.pastry.own.id, NEW_ID)).pastry
    near = {node for _, node in first.nodes.neighbourhood}
    node, heard = restart(quiet, NEW, [first.own.address], then_us=2_000_000)
    rows = [message for _, message in heard if isinstance(message, JoinRows)]
    assert rows[0].id == first.own.id
    assert near <= set(rows[0].nodes)
    given = [
        {shared_digits(each.id, message.id, 4) for each in message.nodes if each.id != message.id}
        for message in (JoinRows(rows[0].id, tuple(set(rows[0].nodes) - near)), *rows[1:])
    ]
    assert len(given) > 1
    assert all(max(one) < min(other) for one, other in pairwise(filter(None, given)))
    assert_leaves_from_neighbour(node, heard)
    answers = [address for address, message in heard if isinstance(message, LeafAnswer)]
    assert set(answers) == {each.address for each in node.pastry.leaf_set.members}
    assert len(answers) == PARAMETERS.leaf_set
    assert_settled(quiet)


@pytest.mark.slow
def test_the_messages_of_a_join_are_bounded_by_the_entries_to_measure(quiet):
    """Check O(log N): two or three messages for each reported node, and twice as many as the leaf set has."""
    before = quiet.network.sent
    for address in range(NEW + 1, NEW + 11):
        quiet.where[address] = quiet.rng.random(), quiet.rng.random()
        contact = min(sorted(quiet.network.nodes), key=lambda each, new=address: quiet.delay_us(each, new))
        restart(quiet, address, [contact], then_us=1_000_000)
    assert (quiet.network.sent - before) / 10 < 200


def talk(overlay, us):
    """Let all nodes of regions 2 and 3 send to each other all the time, so that silent ones are missed."""
    sides = [[n.pastry.own for n in overlay.nodes if region(n.pastry.own.address) == r] for r in (2, 3)]
    pairs = [(a, b) for here, there in (sides, sides[::-1]) for a in here for b in there]

    def send(pastry, to):
        if pastry.reach.is_silent(to.address, 1_500_000):
            pastry.miss(to)
        pastry.send(Heartbeat(pastry.own.id), to.address)

    until_us = overlay.network.clock.now_us + us
    while overlay.network.clock.now_us < until_us:
        for a, b in pairs:
            overlay.act(a.address, lambda pastry, b=b: send(pastry, b))
        overlay.run(200_000)


@pytest.mark.slow
def test_all_pairs_return_to_direct_paths_at_different_times():
    overlay = Overlay(24, 5, gap_us=130_000)
    cut(overlay, (2, 3), (3, 2))
    talk(overlay, 8_000_000)
    assert relayed(overlay)
    cut(overlay)
    talk(overlay, 2 * PARAMETERS.direct_again_us + 1_000_000)
    assert not relayed(overlay)


@pytest.mark.parametrize("contact", [0, 3])
def test_a_node_with_a_duplicate_id_takes_a_new_one(contact):
    """Test X = Z of the join, whether the contact has the id or only a node on the way."""
    overlay = Overlay(10)
    taken = overlay.nodes[3].pastry.own
    overlay.where[10] = overlay.rng.random(), overlay.rng.random()
    overlay.network.start(10, overlay.node(10, [contact], taken.id))
    overlay.run(4_000_000)
    ids = [node.pastry.own.id for node in overlay.nodes]
    assert len(set(ids)) == 11
    assert overlay.nodes[3].pastry.own == taken
    assert_settled(overlay)


def empty_slots(overlay):
    """Return how many slots of all routing tables are empty or dead though a live node would fit."""
    live = {node.pastry.own for node in overlay.nodes}
    found = 0
    for node in overlay.nodes:
        table = node.pastry.nodes.table
        fitting = {table.slot(each.id) for each in live - {node.pastry.own}}
        found += len(fitting - {table.slot(each.id) for each in set(table) & live})
    return found


@pytest.mark.slow
def test_failed_nodes_of_a_table_are_replaced_if_nodes_of_their_rows_are_asked():
    left = []
    for row_repair in (False, True):
        overlay = Overlay(120, 7, parameters=PastryParameters(row_repair=row_repair))
        overlay.kill_some(40)
        overlay.route(600)
        overlay.run(2 * REPAIR_US)
        left.append(empty_slots(overlay))
    assert left[1] < 0.6 * left[0]


def test_a_ring_with_credentials_admits_only_nodes_that_show_them():
    overlay = Overlay(6, parameters=PastryParameters(credentials="of the lab"))
    assert_settled(overlay, half=HALF)
    for address, shown in ((NEW, ""), (NEW + 1, "of others"), (NEW + 2, "of the lab")):
        overlay.parameters = PastryParameters(credentials=shown)
        overlay.join(address)
    overlay.run(2_000_000)
    assert [node.pastry.is_active for node in overlay.nodes] == [*[True] * 6, False, False, True]
    assert all(NEW + 1 not in {each.address for each in node.pastry.nodes} for node in overlay.nodes[:6])
