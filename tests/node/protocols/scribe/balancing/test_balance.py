"""Trees are reshaped while events go through them: bounded, without loops, and nothing is lost by it."""

import pytest

from node.protocols.scribe.messages import JoinAt, PathNode, TreePath
from tests.node.protocols.scribe.groups import Groups

pytestmark = pytest.mark.slow

REMOVER = {"entries_max": 4}
COLLAPSE = {"collapse": True}
BY_LOAD = {"growth": "by-load", "entries_max": 4}
SHRINKING = {"shrink_below": 4, "shrink_after_us": 1_000_000}
MANY_LEVELS = {"b": 1, "leaf_set": 4, "replicas": 2}
MECHANISMS = {
    "remover": REMOVER,
    "collapse": COLLAPSE,
    "remover and collapse": REMOVER | COLLAPSE,
    "by load": BY_LOAD,
    "shrinking": SHRINKING,
    "by load and shrinking": BY_LOAD | SHRINKING,
}
TOGETHER = ("remover and collapse", "by load and shrinking")
SINGLE = tuple(name for name in MECHANISMS if name not in TOGETHER)


def trees_of(groups):
    """By topic's key and node's address the parent's, of all nodes that hold children or are members."""
    found = {}
    for flat in groups.network.nodes.values():
        for key, topic in flat.machine.trees.topics.items():
            if topic.is_needed and not topic.is_root:
                found.setdefault(key, {})[flat.address] = topic.parent_address
    return found


def depths(groups):
    """How far each node is from its topic's root; a loop, or a way that ends elsewhere, fails."""
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
    return [flat.machine.trees.entries() for flat in groups.network.nodes.values()]


def assert_nothing_lost(groups):
    groups.finish()
    lost, repeated, disordered, delivered = groups.judged()
    assert (lost, repeated, disordered) == (0, 0, 0)
    assert delivered >= 1_000
    assert all(len(roots) == 1 for roots in groups.roots().values())


@pytest.mark.parametrize("name", SINGLE)
def test_trees_have_no_loops_and_nothing_is_lost(name):
    groups = Groups(members=32, **MECHANISMS[name])
    groups.run(5_000_000)
    assert_nothing_lost(groups)
    assert depths(groups)


def test_the_bottleneck_remover_keeps_entries_within_their_limit():
    before, after = (Groups(members=40, topics=4, entries_max=limit) for limit in (0, 6))
    for groups in (before, after):
        groups.run(5_000_000)
    assert max(entries(before)) > 6
    assert max(entries(after)) <= 6
    assert_nothing_lost(after)


def test_collapse_leaves_no_node_between_a_parent_and_one_child():
    before, after = (Groups(members=40, topics=12, seed=1, collapse=on) for on in (False, True))
    for groups in (before, after):
        groups.run(5_000_000)

    def needless(groups):
        return sum(
            len(topic.children) == 1 and not topic.is_member and not topic.is_root
            for flat in groups.network.nodes.values()
            for topic in flat.machine.trees.topics.values()
        )

    assert needless(before) > 0
    assert needless(after) == 0
    assert sum(entries(after)) < sum(entries(before))
    assert_nothing_lost(after)


def outsiders(groups):
    """How many nodes pass a topic's events on without being members, roots left out."""
    return sum(
        bool(topic.children) and not topic.is_member and not topic.is_root
        for flat in groups.network.nodes.values()
        for topic in flat.machine.trees.topics.values()
    )


def test_without_overload_a_tree_has_only_members():
    base, by_load = (
        Groups(members=40, topics=4, **more, **MANY_LEVELS)
        for more in ({}, {"growth": "by-load", "entries_max": 75})
    )
    for groups in (base, by_load):
        groups.run(5_000_000)
    assert outsiders(base) > 0
    assert outsiders(by_load) == 0
    assert_nothing_lost(by_load)
    assert depths(by_load)


@pytest.mark.parametrize("most", [2, 6])
def test_a_tree_that_grows_by_load_keeps_only_children_of_one_hop_where_there_are_many(most):
    groups = Groups(members=60, topics=4, growth="by-load", entries_max=most, **MANY_LEVELS)
    groups.run(8_000_000)
    for flat in groups.network.nodes.values():
        trees = flat.machine.trees
        if trees.entries() > most + 1:
            hops = {child.hops for topic in trees.topics.values() for child in topic.children.values()}
            assert hops == {1}
    assert_nothing_lost(groups)
    assert max(depths(groups).values()) > 2


def test_overloaded_nodes_send_children_by_another_way_that_have_one():
    """Draft of 2001, 3.4.1: a root is not everybody's representative."""
    groups = Groups(members=60, topics=8, growth="by-load", entries_max=2, **MANY_LEVELS)
    groups.run(8_000_000)
    strange = [
        child.is_fixed
        for flat in groups.network.nodes.values()
        for topic, child in flat.machine.trees.balance.growth.strangers(kept=True)
        if flat.machine.trees.entries() > 3
    ]
    assert strange
    assert all(strange)


def test_few_children_go_to_the_parent_if_that_has_room():
    """Draft of 2001, 3.4.2."""
    before, after = (Groups(members=40, topics=4, **MANY_LEVELS, **more) for more in ({}, SHRINKING))
    for groups in (before, after):
        groups.run(8_000_000)
    few = SHRINKING["shrink_below"]
    assert any(
        0 < len(topic.children) < few and not topic.is_root
        for flat in before.network.nodes.values()
        for topic in flat.machine.trees.topics.values()
    )
    assert not any(
        0 < len(topic.children) < few and not topic.is_root
        for flat in after.network.nodes.values()
        for topic in flat.machine.trees.topics.values()
    )
    assert max(depths(after).values()) < max(depths(before).values())
    assert_nothing_lost(after)


def test_a_parent_without_room_refuses_to_take_children():
    groups = Groups(members=40, topics=4, entries_max=4, **SHRINKING)
    groups.run(8_000_000)
    assert max(entries(groups)) <= 4
    assert_nothing_lost(groups)


def a_pair(groups):
    """Return a parent and its child in the middle of a tree, with the topic's key."""
    for key, parents in sorted(trees_of(groups).items()):
        for address, parent in parents.items():
            if parent in parents and parents[parent] is not None:
                return key, groups.names[parent], groups.names[address]
    raise AssertionError("no tree is that deep")


def give(groups, name, sender, message):
    """Let a message come to a node as if from another one."""
    groups.network._arrive((sender, groups.addresses[name], (message,)))


def test_a_join_from_a_node_on_the_path_is_refused():
    """2002, IV.E."""
    groups = Groups(members=40, topics=4, **MANY_LEVELS)
    groups.run(3_000_000)
    key, upper, lower = a_pair(groups)
    parent = groups.node(upper).trees.topics[key].parent_address
    give(groups, upper, parent, JoinAt(key, groups.addresses[lower], 1))
    groups.run(1_000_000)
    assert groups.node(upper).trees.topics[key].parent_address == parent
    assert groups.parents_of(upper, key) == [groups.names[parent]]
    assert depths(groups)
    assert_nothing_lost(groups)


def test_a_node_that_is_on_its_own_path_joins_elsewhere():
    """2002, IV.E."""
    groups = Groups(members=40, topics=4, **MANY_LEVELS)
    groups.run(3_000_000)
    key, upper, lower = a_pair(groups)
    node = groups.node(lower)
    path = tuple(map(PathNode, (*node.trees.topics[key].path, node.pastry.own.id)))
    give(groups, lower, groups.addresses[upper], TreePath(key, path))
    assert node.trees.topics[key].parent is None
    assert ("loop", lower) in [(line.event, name) for _, name, line in groups.logs]
    groups.run(2_000_000)
    assert depths(groups)
    assert_nothing_lost(groups)


@pytest.mark.parametrize("name", TOGETHER)
def test_nothing_is_lost_while_a_link_and_roots_fail(name):
    groups = Groups(seed=3, **MECHANISMS[name])
    groups.run(2_000_000)
    groups.cut((2, 3))
    groups.run(4_000_000)
    for _, [root] in sorted(groups.roots().items())[:2]:
        if "publisher" not in root:
            groups.kill(root)
            groups.run(1_500_000)
    groups.cut()
    groups.run(6_000_000)
    assert_nothing_lost(groups)
    assert depths(groups)
    if name.startswith("remover"):
        assert max(entries(groups)) <= REMOVER["entries_max"]
