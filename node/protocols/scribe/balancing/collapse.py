"""Collapse (2002, IV.F): a node that is not a member of a topic and has one child leaves its tree.

The node asks the child to join the node's parent. The child keeps its old parent until the new one adopts it,
so that no event is delayed; then it leaves the old parent, which then leaves the tree.
"""

from node.core.peers.peer_pool import Address
from node.protocols.scribe.messages import JoinAt
from node.protocols.scribe.topic import Topic
from node.protocols.scribe.tree import TopicTrees


class Collapse:
    """Collapse at one node. If `is_on` is False, it only processes the requests of others."""

    def __init__(self, trees: TopicTrees, *, is_on: bool) -> None:
        self._trees = trees
        self._is_on = is_on
        trees.carry[JoinAt] = self._join_at

    def look_after(self, topic: Topic) -> None:
        """Ask a single child to join the parent, if this node is not a member."""
        if not self._is_on or topic.parent is None or topic.is_member or len(topic.children) != 1:
            return
        [child] = topic.children.values()
        if child.waiting is None:
            self._trees.pastry.send(JoinAt(topic.key, topic.parent.address, 1), child.node.address)

    def _join_at(self, topic: Topic, sender: Address, message: JoinAt) -> None:
        if sender == topic.parent_address and message.address != self._trees.pastry.own.address:
            self._trees.join_at(topic, message.address, message.hops)
