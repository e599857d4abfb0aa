"""Shrinking of a tree (draft of 2001, 3.4.2): a node with few children asks its parent to take them.

It asks only after some time with few children, so that the tree does not shrink where it is about to grow,
and waits as long after a refusal. When the parent agrees, the node asks each child to join there; unless it
is a member, it leaves with its last child. The draft moves the entries at once; here a child leaves its old
parent when the new one has adopted it and sends it what follows, so that no event is missed.
"""

from node.core.peers.peer_pool import Address
from node.protocols.scribe.messages import JoinAt, Shrink, ShrinkAnswer
from node.protocols.scribe.parameters import ScribeParameters
from node.protocols.scribe.topic import Topic
from node.protocols.scribe.tree import TopicTrees


class TreeShrinking:
    """Shrinking at one node."""

    def __init__(self, parameters: ScribeParameters, trees: TopicTrees) -> None:
        self._parameters = parameters
        self._trees = trees
        trees.carry |= {Shrink: self._shrink, ShrinkAnswer: self._answered}

    def look_after(self, topic: Topic) -> None:
        """Ask the parent if there have been few children for `shrink_after_us`."""
        now_us = self._trees.now_us
        if topic.parent is None or not 0 < len(topic.children) < self._parameters.shrink_below:
            topic.few_since_us = None
        elif topic.few_since_us is None:
            topic.few_since_us = now_us
        elif now_us - topic.few_since_us >= self._parameters.shrink_after_us:
            topic.few_since_us = now_us
            children = tuple(child.node for child in topic.children.values())
            self._trees.pastry.send(Shrink(topic.key, int(topic.is_member), children), topic.parent.address)

    def _shrink(self, topic: Topic, sender: Address, message: Shrink) -> None:
        """Process a child's request; accept it unless its children would overload this node."""
        child = topic.children.get(sender)
        if child is None:
            return
        entries = self._trees.entries() + len(message.children) - (0 if message.is_member else 1)
        has_room = not self._parameters.entries_max or entries <= self._parameters.entries_max
        is_on_path = any(each.id in topic.path for each in message.children)
        answer = ShrinkAnswer(topic.key, int(topic.is_attached and has_room and not is_on_path), child.hops)
        self._trees.pastry.send(answer, sender)

    def _answered(self, topic: Topic, sender: Address, message: ShrinkAnswer) -> None:
        if message.is_accepted and sender == topic.parent_address:
            for child in topic.children.values():
                hops = min(child.hops + message.hops, 255)
                self._trees.pastry.send(JoinAt(topic.key, sender, hops), child.node.address)
