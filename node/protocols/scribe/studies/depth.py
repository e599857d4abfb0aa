"""Depth of one topic's tree as it grows (draft of 2001, 4, figure 3): base mechanism, and growth by load.

Nodes are points on a plane. They join in small batches. At certain numbers of subscribers the depth of each
is measured: the number of hops of an event from the root, which is at 0.

The study also counts the nodes that are full, those that are higher in the tree than by the base mechanism,
and those of them that have children. These numbers explain why a bound does not make the tree as flat as its
entries would allow: a join ends at the first node of its route that is in the tree, whatever room there is
above.
"""

from collections.abc import Iterator

import numpy as np

from node.core.study import StudyContext
from node.protocols.pastry.messages import RoutePhase
from node.protocols.scribe.messages import topic_key
from node.protocols.scribe.population import Population
from node.protocols.scribe.studies.parameters import DepthParameters
from node.sim.proximity import Plane
from node.sim.quiet import cyclic_gc_disabled

SIDE_US = 60_000
"""Delay along a side of the plane in microseconds; it scales all delays and does not affect depth."""
STREAM = 0


def execute(parameters: DepthParameters, given: StudyContext) -> None:
    """Measure one topic without a limit and one with it."""
    with cyclic_gc_disabled():
        for part, bound in enumerate((0, parameters.entries_max)):
            _grow(parameters, bound, part, given)


def _grow(parameters: DepthParameters, bound: int, part: int, given: StudyContext) -> None:
    given.report(f"building the overlay, c = {bound}", part / 2)
    rng = np.random.default_rng(given.seed)  # both parts have the same nodes and subscribers
    count = parameters.nodes
    growth = {"growth": "by-load", "entries_max": bound} if bound else {}
    nodes = Population(count, Plane(rng.random((count, 2)), SIDE_US, rng), given.rng, growth)
    order = rng.permutation(count).tolist()
    joined = 0
    for subscribers in _steps(count):
        while joined < subscribers:
            batch = order[joined : min(subscribers, joined + parameters.batch)]
            nodes.join(STREAM, batch)
            joined += len(batch)
            given.report(f"c = {bound}: {joined} of {count} subscribers", (part + joined / count) / 2)
        _measure(nodes, order[:joined], bound, given)
    given.put(**{f"messages_c{bound}": nodes.network.sent})


def _steps(count: int) -> Iterator[int]:
    """Yield 1, 2, 5, 10 and so on, up to `count`."""
    power = 1
    while power < count:
        yield from (step * power for step in (1, 2, 5) if step * power < count)
        power *= 10
    yield count


def _measure(nodes: Population, subscribers: list[int], bound: int, given: StudyContext) -> None:
    depths = depths_of(nodes)
    assert all(each in depths for each in subscribers), f"c = {bound}: a subscriber is in no tree"
    mine = np.array([depths[each] for each in subscribers])
    _, entries = nodes.children()
    lifted, inner = _lifted(nodes, subscribers)
    given.write(
        "depths",
        {
            "c": [bound],
            "subscribers": [len(subscribers)],
            "mean": [float(mine.mean())],
            "most": [int(mine.max())],
            "tree": [len(depths)],
            "entries_most": [max(entries)],
            "inner": [sum(map(bool, entries))],
            "full": [sum(count >= bound for count in entries) if bound else 0],
            "lifted": [lifted],
            "lifted_inner": [inner],
        },
    )


def _lifted(nodes: Population, subscribers: list[int]) -> tuple[int, int]:
    """Count subscribers whose parent is not the next node on their route, and those of them with children."""
    key, lifted, inner = topic_key(STREAM), 0, 0
    for address in subscribers:
        node = nodes.nodes[address]
        topic = node.trees.topics[key]
        following, _ = node.pastry.nodes.following(key, RoutePhase.PREFIX)
        if topic.parent_address not in {None, following.address}:
            lifted += 1
            inner += bool(topic.children)
    return lifted, inner


def depths_of(nodes: Population) -> dict[int, int]:
    """Return the depth of every node of the topic's tree."""
    key, root = topic_key(STREAM), nodes.root_of(STREAM)
    depths, level = {root: 0}, [root]
    while level:
        below = []
        for address in level:
            topic = nodes.nodes[address].trees.topics.get(key)
            for child in topic.children if topic is not None else ():
                if child not in depths:
                    depths[child] = depths[address] + 1
                    below.append(child)
        level = below
    return depths
