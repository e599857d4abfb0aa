"""Collapse (2002, IV.F): nodes that are no members of a topic and have one child leave its tree.

The child is told to join the node's parent. It stays where it is until it is adopted there, so that nothing
is late; then it leaves its old parent, which nobody needs any more.
"""

from node.core.peers.peer_pool import Address
from node.protocols.scribe.messages import JoinAt
from node.protocols.scribe.topic import Topic
from node.protocols.scribe.tree import Trees


class Collapse:
    """Of one node. With `is_on` False it only does what others ask."""

    def __init__(self, trees: Trees, *, is_on: bool) -> None:
        self._trees = trees
        self._is_on = is_on
        trees.carry[JoinAt] = self._join_at

    def look_after(self, topic: Topic) -> None:
        """See whether the node stands between its parent and a single child for nothing."""
        if not self._is_on or topic.parent is None or topic.is_member or len(topic.children) != 1:
            return
        [child] = topic.children.values()
        if child.waiting is None:
            self._trees.pastry.send(JoinAt(topic.key, topic.parent.address, 1), child.node.address)

    def _join_at(self, topic: Topic, sender: Address, message: JoinAt) -> None:
        if sender == topic.parent_address and message.address != self._trees.pastry.own.address:
            self._trees.join_at(topic, message.address, message.hops)
