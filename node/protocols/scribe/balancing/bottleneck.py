"""The bottleneck remover (2002, IV.E): a node that has too many children hands some on to their siblings.

A node is overloaded if it has more than so many entries in all its children tables together. It takes the
topic with the largest table, and there the child that is farthest away; this one gets the table with the
delays, measures its siblings, and joins the one over which the way to its old parent is shortest.

Open in the paper, and decided so: delays are measured when they are first needed; a table with one entry is
left as it is, since its child would have no sibling to go to; a child that finds no sibling, or is refused,
joins by any other route.

Loops are `tree`'s to find: each child knows the path from the root, and a join from a node on it is refused.
"""

from functools import partial

from node.core.peers.peer_pool import Address
from node.protocols.reachability.nodes import NodeHandle
from node.protocols.scribe.balancing.survey import Findings, Surveys
from node.protocols.scribe.messages import Offload, Sibling
from node.protocols.scribe.topic import Child, Topic
from node.protocols.scribe.tree import Trees


class BottleneckRemover:
    """Of one node. `entries_max`: more entries than that are too many."""

    def __init__(self, entries_max: int, trees: Trees, surveys: Surveys) -> None:
        self._entries_max = entries_max
        self._trees = trees
        self._surveys = surveys
        self._is_measuring = False
        trees.carry[Offload] = self._offloaded

    def relieve(self) -> None:
        """See whether there are too many children, and let some go, or begin to measure them first."""
        while not self._is_measuring and self._trees.entries() > self._entries_max:
            topic = max(self._trees.topics.values(), key=lambda each: (len(each.children), each.key))
            unknown = [child.node for child in topic.children.values() if child.delay_us is None]
            if len(topic.children) < 2:
                return
            if unknown:
                self._is_measuring = True
                self._surveys.begin(unknown, partial(self._measured, topic))
            else:
                self._let_farthest_go(topic)

    def _measured(self, topic: Topic, found: Findings) -> None:
        self._is_measuring = False
        for address, delay_us in found.items():
            if address in topic.children:
                topic.children[address].delay_us = delay_us
        is_too_much = self._trees.entries() > self._entries_max and len(topic.children) > 1
        if is_too_much and self._let_farthest_go(topic):  # with none, all are asked again at the next look
            self.relieve()

    def _let_farthest_go(self, topic: Topic) -> bool:
        """Whether a child could be let go: one whose delay is known."""
        measured = [(child.delay_us, child.node.address) for child in topic.children.values()]
        farthest = max(((far, address) for far, address in measured if far is not None), default=None)
        if farthest is not None:
            self._let_go(topic, topic.children[farthest[1]])
        return farthest is not None

    def _let_go(self, topic: Topic, child: Child) -> None:
        del topic.children[child.node.address]
        siblings = [
            Sibling(other.node.id, other.node.address, other.delay_us)
            for other in topic.children.values()
            if other.delay_us is not None
        ]
        siblings.sort(key=lambda each: (each.delay_us, each.address))
        staying = tuple(siblings[: self._entries_max])  # of very many at once, all others go as well
        self._trees.pastry.send(Offload(topic.key, staying), child.node.address)

    # --- At the child

    def _offloaded(self, topic: Topic, sender: Address, message: Offload) -> None:
        if sender != topic.parent_address and not topic.is_joining:
            return
        self._trees.detach(topic)
        siblings = [NodeHandle(each.id, each.address) for each in message.siblings]
        self._surveys.begin(siblings, partial(self._choose, topic, message))

    def _choose(self, topic: Topic, message: Offload, found: Findings) -> None:
        if not topic.is_joining or not topic.is_needed:
            return
        onward_us = {each.address: each.delay_us for each in message.siblings}
        best = min(((far + onward_us[address], address) for address, far in found.items()), default=None)
        if best is None:
            topic.is_astray = True
            self._trees.seek_parent(topic)
        else:
            self._trees.join_at(topic, best[1])
