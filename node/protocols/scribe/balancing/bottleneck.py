"""The bottleneck remover (2002, IV.E): a node with too many children hands some of them to their siblings.

A node is overloaded if all its children tables together have more than `entries_max` entries. It selects the
topic with the largest table and there the child that is farthest away. The child receives the table with the
delays, measures its siblings, and joins the one through which its old parent is nearest.

The paper leaves some cases open. Delays are measured when first needed; a table with one entry is left alone,
since its child would have no sibling to join; a child that finds no sibling, or is refused, joins by any
other route.

`tree` detects loops: each child knows the path from the root, and a join from a node on it is refused.
"""

from functools import partial

from node.core.peers.peer_pool import Address
from node.protocols.reachability.nodes import NodeHandle
from node.protocols.scribe.balancing.survey import MeasuredDelays, Surveys
from node.protocols.scribe.messages import Offload, Sibling
from node.protocols.scribe.topic import Topic, TreeChild
from node.protocols.scribe.tree import TopicTrees


class BottleneckRemover:
    """The bottleneck remover of one node. `entries_max`: limit of entries."""

    def __init__(self, entries_max: int, trees: TopicTrees, surveys: Surveys) -> None:
        self._entries_max = entries_max
        self._trees = trees
        self._surveys = surveys
        self._is_measuring = False
        trees.carry[Offload] = self._offloaded

    def relieve(self) -> None:
        """Let go of children if there are more than `entries_max` entries. First measure unknown delays."""
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

    def _measured(self, topic: Topic, found: MeasuredDelays) -> None:
        self._is_measuring = False
        for address, delay_us in found.items():
            if address in topic.children:
                topic.children[address].delay_us = delay_us
        is_too_much = self._trees.entries() > self._entries_max and len(topic.children) > 1
        # if no delay is known, all are measured again at the next check
        if is_too_much and self._let_farthest_go(topic):
            self.relieve()

    def _let_farthest_go(self, topic: Topic) -> bool:
        """Let go of the farthest child with a known delay; return whether there is one."""
        measured = [(child.delay_us, child.node.address) for child in topic.children.values()]
        farthest = max(((far, address) for far, address in measured if far is not None), default=None)
        if farthest is not None:
            self._let_go(topic, topic.children[farthest[1]])
        return farthest is not None

    def _let_go(self, topic: Topic, child: TreeChild) -> None:
        del topic.children[child.node.address]
        siblings = [
            Sibling(other.node.id, other.node.address, other.delay_us)
            for other in topic.children.values()
            if other.delay_us is not None
        ]
        siblings.sort(key=lambda each: (each.delay_us, each.address))
        staying = tuple(siblings[: self._entries_max])  # at most this many siblings are offered
        self._trees.pastry.send(Offload(topic.key, staying), child.node.address)

    # --- Child

    def _offloaded(self, topic: Topic, sender: Address, message: Offload) -> None:
        if sender != topic.parent_address and not topic.is_joining:
            return
        self._trees.detach(topic)
        siblings = [NodeHandle(each.id, each.address) for each in message.siblings]
        self._surveys.begin(siblings, partial(self._choose, topic, message))

    def _choose(self, topic: Topic, message: Offload, found: MeasuredDelays) -> None:
        if not topic.is_joining or not topic.is_needed:
            return
        onward_us = {each.address: each.delay_us for each in message.siblings}
        best = min(((far + onward_us[address], address) for address, far in found.items()), default=None)
        if best is None:
            topic.is_astray = True
            self._trees.seek_parent(topic)
        else:
            self._trees.join_at(topic, best[1])
