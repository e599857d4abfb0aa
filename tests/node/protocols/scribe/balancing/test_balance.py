"""Trees are reshaped while events pass through them: bounded, without loops and without loss."""

import pytest

from node.core.peers.peer_pool import ReceivedFrom
from node.protocols.scribe.messages import JoinAt, PathNode, Rejoin, TreePath
from tests.node.protocols.scribe.groups import Groups, assert_whole

pytestmark = pytest.mark.slow

SHRINKING = {"shrink_below": 4, "shrink_after_us": 1_000_000}
MANY_LEVELS = {"b": 1, "leaf_set": 4, "replicas": 2}
MECHANISMS = {
    "remover and collapse": {"entries_max": 4, "collapse": True},
    "by load and shrinking": {"growth": "by-load", "entries_max": 4, **SHRINKING},
}


def grown(us=5_000_000, **given):
    """Return groups with trees of four topics after some time."""
    return Groups(**{"members": 40, "topics": 4} | given, run_us=us)


@pytest.fixture(scope="module")
def base():
    """Return groups with deep trees that are not reshaped; tests only read them."""
    return grown(**MANY_LEVELS)


def trees_of(groups):
    """Return, by topic key and node address, the parent of each member and each node with children."""
    found = {}
    for name, key, topic in groups.topics():
        if topic.is_needed and not topic.is_root:
            found.setdefault(key, {})[groups.addresses[name]] = topic.parent_address
    return found


def depths(groups):
    """Return each node's distance from its topic's root; fail on a loop, or a path that ends elsewhere."""
    found = {}
    for key, parents in trees_of(groups).items():
        [root] = groups.roots()[key]
        for address in parents:
            depth, at = 0, address
            while at in parents:
                at, depth = parents[at], depth + 1
                assert depth <= len(parents), "a loop"
            assert at == groups.addresses[root]
            found[key, address] = depth
    return found


def entries(groups):
    """Return the entries of each node, over all topics."""
    return [node.trees.entries() for node in groups.nodes().values()]


def assert_trees(groups):
    """Check that no event is lost, and that trees have no loops."""
    assert_whole(groups)
    assert depths(groups)


def forwarders(groups):
    """Return topics of nodes that pass events on without being members, roots left out."""
    topics = [topic for *_, topic in groups.topics()]
    return [each for each in topics if each.children and not each.is_member and not each.is_root]


def test_collapse_leaves_no_node_between_a_parent_and_one_child():
    before, after = (grown(topics=12, seed=1, collapse=on) for on in (False, True))
    assert any(len(each.children) == 1 for each in forwarders(before))
    assert not any(len(each.children) == 1 for each in forwarders(after))
    assert sum(entries(after)) < sum(entries(before))
    assert_trees(after)


def test_without_overload_a_tree_has_only_members(base):
    by_load = grown(growth="by-load", entries_max=75, **MANY_LEVELS)
    assert forwarders(base)
    assert not forwarders(by_load)
    assert_trees(by_load)


def test_an_overloaded_node_keeps_only_children_one_hop_away():
    """Draft of 2001, 3.4.1: a root does not have to adopt all nodes; it redirects children that have another
    way.
    """
    groups = grown(8_000_000, members=60, growth="by-load", entries_max=2, **MANY_LEVELS)
    for node in groups.nodes().values():
        if node.trees.entries() > 3:
            topics = node.trees.topics.values()
            assert {child.hops for topic in topics for child in topic.children.values()} == {1}
    strange = [
        child.is_fixed
        for node in groups.nodes().values()
        for _, child in node.trees.balance.growth.strangers(kept=True)
        if node.trees.entries() > 3
    ]
    assert strange
    assert all(strange)
    assert_trees(groups)
    assert max(depths(groups).values()) > 2


def test_few_children_move_to_a_parent_with_room(base):
    """Draft of 2001, 3.4.2."""
    after = grown(**MANY_LEVELS, **SHRINKING)
    few = range(1, SHRINKING["shrink_below"])
    assert any(len(topic.children) in few and not topic.is_root for *_, topic in base.topics())
    assert not any(len(topic.children) in few and not topic.is_root for *_, topic in after.topics())
    assert max(depths(after).values()) < max(depths(base).values())
    assert_trees(after)


def test_entries_stay_within_their_limit_and_a_parent_without_room_takes_no_children(base):
    after = grown(8_000_000, entries_max=4, **SHRINKING)
    assert max(entries(base)) > 4 >= max(entries(after))
    assert_trees(after)


def a_pair(groups):
    """Return a topic's key, a node in the middle of its tree, and a child of that node."""
    for key, parents in sorted(trees_of(groups).items()):
        for address, parent in parents.items():
            if parent in parents and parents[parent] is not None:
                return key, groups.names[parent], groups.names[address]
    raise AssertionError("no tree is that deep")


def give(groups, name, sender, message):
    """Deliver a message to a node as if from another one."""
    groups.network._arrive((groups.addresses[name], ReceivedFrom(sender, (message,))))


def test_a_node_joins_no_node_below_it_and_elsewhere_if_it_is_on_its_own_path():
    """2002, IV.E."""
    groups = grown(3_000_000, **MANY_LEVELS)
    key, upper, lower = a_pair(groups)
    parent = groups.node(upper).trees.topics[key].parent_address
    give(groups, lower, parent, Rejoin(key, 0))  # only its parent may ask it to
    assert groups.node(lower).trees.topics[key].parent_address == groups.addresses[upper]
    give(groups, upper, parent, JoinAt(key, groups.addresses[lower], 1))
    groups.run(1_000_000)
    assert groups.node(upper).trees.topics[key].parent_address == parent
    assert groups.parents_of(upper, key) == [groups.names[parent]]
    node = groups.node(lower)
    path = tuple(map(PathNode, (*node.trees.topics[key].path, node.pastry.own.id)))
    give(groups, lower, groups.addresses[upper], TreePath(key, path))
    assert node.trees.topics[key].parent is None
    assert ("loop", lower) in [(line.event, name) for _, name, line in groups.logs]
    groups.run(2_000_000)
    assert_trees(groups)


@pytest.mark.parametrize("name", MECHANISMS)
def test_no_event_is_lost_while_a_link_and_roots_fail(name):
    groups = Groups(seed=3, **MECHANISMS[name], run_us=2_000_000)
    groups.cut((2, 3), then_us=4_000_000)
    for _, [root] in sorted(groups.roots().items())[:2]:
        if "publisher" not in root:
            groups.kill(root, then_us=1_500_000)
    groups.cut(then_us=6_000_000)
    assert_trees(groups)
    if name.startswith("remover"):
        assert max(entries(groups)) <= 4
