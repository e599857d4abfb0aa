"""Growth of a tree by load (draft of 2001, 3.4.1): nodes become forwarders only if needed.

A join is routed to the first forwarder, or to the root. If that is not overloaded, it adopts the sender. If
it is, the previous node on the way becomes its child and adopts the sender instead, by the same rule. So
hops(t, p, q) is the number of hops of a join from p to t up to q. An overloaded q adopts only a p one hop
away, and then lets go of another child that is further away: in the topic whose key shares the fewest digits
with q, the one with the fewest hops. If all are one hop away, it may let go of a child that shares so few
digits with the key that other nodes can adopt it.

The draft leaves some cases open. If a node that was handed a child is overloaded itself, it makes the child
join again; that join ends at the node and shows the previous node on its way. A child that is asked to take
another way and knows none reports this and is kept. A member without children is a forwarder, too: "the nodes
in the tree are called forwarders" (3.2).
"""

from dataclasses import replace

from node.core import machine as m
from node.core.peers.peer_pool import Address
from node.protocols.pastry.ids import shared_digits
from node.protocols.scribe.messages import Grow, Join, JoinRouting, Rejoin
from node.protocols.scribe.parameters import ScribeParameters
from node.protocols.scribe.topic import Topic, TreeChild
from node.protocols.scribe.tree import TopicTrees

REFUSED_US = 30_000_000
"""Time for which a node avoids another one that redirected it, so that the two do not redirect it in turn."""
Entry = tuple[Topic, TreeChild]


class Growth:
    """Growth by load at one node."""

    def __init__(self, parameters: ScribeParameters, trees: TopicTrees, rng: m.Randomness) -> None:
        self._parameters = parameters
        self._trees = trees
        self._rng = rng
        # by topic, the nodes that redirected this one, and when
        self._refused: dict[int, dict[Address, int]] = {}
        trees.carry |= {Grow: self._grow, Rejoin: self._rejoin}
        trees.opening.add(Grow)  # may concern a topic that is not known here yet

    @property
    def is_overloaded(self) -> bool:
        """Whether the children tables have more than c entries."""
        return self._trees.entries() > self._parameters.entries_max

    def passes(self, key: int, join: Join) -> Join | None:
        """Return the join to forward, one hop longer; None if this node is a forwarder."""
        topic = self._trees.topics.get(key)
        if topic is not None and (topic.is_attached or topic.is_joining or topic.children):
            return None
        return replace(join, hops=min(join.hops + 1, 255), via=self._trees.pastry.own.address)

    def hands_on(self, topic: Topic, join: Join) -> bool:
        """Return whether another node is asked to adopt the sender instead."""
        is_near = join.hops == 1 or join.errand == JoinRouting.SENT or join.address in topic.children
        if is_near or not self.is_overloaded:
            return False
        # an overloaded node sent it here: the previous node on the way is unknown
        if join.via == join.address:
            self._trees.pastry.send(Rejoin(topic.key, 0), join.address)
        else:
            self._trees.pastry.send(Grow(topic.key, join), join.via)
        return True

    def relieve(self) -> None:
        """Let go of one child if the node was overloaded before it adopted the last one.

        So a node keeps one entry more than c: it remains overloaded and refuses a child that it let go.
        """
        if self._trees.entries() - 1 <= self._parameters.entries_max:
            return
        if far := self._distant_child():
            self._let_go(*far, is_detour=False)
        elif strangers := self.strangers():
            self._let_go(*strangers[self._rng.randrange(len(strangers))], is_detour=True)

    def _shared(self, one: int, key: int) -> int:
        return shared_digits(one, key, self._parameters.b)

    def _distant_child(self) -> Entry | None:
        """Return a child of more than one hop, by the draft's two rules."""
        topics = [
            topic
            for topic in self._trees.topics.values()
            if any(child.hops > 1 for child in topic.children.values())
        ]
        if not topics:
            return None
        own = self._trees.pastry.own.id
        fewest = min(self._shared(own, topic.key) for topic in topics)
        topics = [topic for topic in topics if self._shared(own, topic.key) == fewest]
        topic = topics[self._rng.randrange(len(topics))]
        hops = min(child.hops for child in topic.children.values() if child.hops > 1)
        children = [child for child in topic.children.values() if child.hops == hops]
        return topic, children[self._rng.randrange(len(children))]

    def strangers(self, *, kept: bool = False) -> list[Entry]:
        """Return children that share at least two digits less with their topic's key than this node.

        kept: include children that know no other way.
        """
        own = self._trees.pastry.own.id
        return [
            (topic, child)
            for topic in self._trees.topics.values()
            for child in topic.children.values()
            if (kept or not child.is_fixed)
            and self._shared(child.node.id, topic.key) < self._shared(own, topic.key) - 1
        ]

    def _let_go(self, topic: Topic, child: TreeChild, *, is_detour: bool) -> None:
        del topic.children[child.node.address]
        self._trees.pastry.send(Rejoin(topic.key, int(is_detour)), child.node.address)

    # --- The other nodes

    def _grow(self, topic: Topic, sender: Address, message: Grow) -> None:
        """Become the child of an overloaded node, and adopt the sender of the join."""
        join = message.message
        if not isinstance(join, Join):
            return
        if not topic.is_on_its_way:
            self._trees.detach(topic)
            self._trees.join_at(topic, sender)
        self._trees.adopt(topic, replace(join, hops=max(join.hops - 1, 1), via=join.address))

    def _rejoin(self, topic: Topic, sender: Address, message: Rejoin) -> None:
        if sender != topic.parent_address and not topic.is_joining:
            return
        if not message.is_detour:
            self._trees.seek_parent(topic, None)
            return
        now_us = self._trees.now_us
        refused = self._refused.setdefault(topic.key, {})
        refused[sender] = now_us
        for address in [address for address, at_us in refused.items() if at_us < now_us - REFUSED_US]:
            del refused[address]
        self._trees.seek_parent(topic, tuple(refused))
