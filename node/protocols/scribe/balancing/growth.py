"""Growing a tree by load (draft of 2001, 3.4.1): nodes on a join's way become forwarders only when needed.

A join goes on to the first forwarder, or the root. If that is not overloaded it adopts the sender. If it is,
the node before it on the way becomes its child and adopts the sender in its place, by the same rule. So
hops(t, p, q) is how many hops a join from p to t takes to q; an overloaded q adopts only p of one hop, and
then lets another child go that is further away: of the topic whose key shares the fewest digits with q, the
one of fewest hops. If all are one hop away, a child may go that shares so few digits with the key that it has
others to choose from.

Open in the draft, and decided so: a node that was handed a child and is overloaded itself has the child join
anew; that join ends at the node, and shows who is before it. A child that is asked to take another way, and
knows none, says so and is kept. A member without children is a forwarder, too: as "the nodes in the tree are
called forwarders" (3.2).
"""

from dataclasses import replace

from node.core import machine as m
from node.core.peers.peer_pool import Address
from node.protocols.pastry.ids import shared_digits
from node.protocols.scribe.messages import Errand, Grow, Join, Rejoin
from node.protocols.scribe.parameters import Parameters
from node.protocols.scribe.topic import Child, Topic
from node.protocols.scribe.tree import Trees

REFUSED_US = 30_000_000
"""For so long a node does not go back to one that sent it another way: two would send it to and fro."""
Entry = tuple[Topic, Child]


class Growth:
    """Of one node."""

    def __init__(self, parameters: Parameters, trees: Trees, rng: m.Randomness) -> None:
        self._parameters = parameters
        self._trees = trees
        self._rng = rng
        self._refused: dict[int, dict[Address, int]] = {}  # by topic who sent this node another way, and when
        trees.carry |= {Grow: self._grow, Rejoin: self._rejoin}
        trees.opening.add(Grow)  # for who was not in the tree

    @property
    def is_overloaded(self) -> bool:
        """Whether there are more than c entries."""
        return self._trees.entries() > self._parameters.entries_max

    def passes(self, key: int, join: Join) -> Join | None:
        """What a node that is no forwarder passes on: the join, one hop longer. None: it is one."""
        topic = self._trees.topics.get(key)
        if topic is not None and (topic.is_attached or topic.is_joining or topic.children):
            return None
        return replace(join, hops=min(join.hops + 1, 255), via=self._trees.pastry.own.address)

    def hands_on(self, topic: Topic, join: Join) -> bool:
        """Whether another node is to adopt the sender."""
        is_near = join.hops == 1 or join.errand == Errand.SENT or join.address in topic.children
        if is_near or not self.is_overloaded:
            return False
        if join.via == join.address:  # an overloaded node handed it on: who is before this one is not known
            self._trees.pastry.send(Rejoin(topic.key, 0), join.address)
        else:
            self._trees.pastry.send(Grow(topic.key, join), join.via)
        return True

    def relieve(self) -> None:
        """Let one child go, if the node was overloaded before the last one came.

        So a node keeps one entry more than c: it is overloaded, and refuses whom it let go.
        """
        if self._trees.entries() - 1 <= self._parameters.entries_max:
            return
        if far := self._farther():
            self._let_go(*far, is_detour=False)
        elif strangers := self.strangers():
            self._let_go(*strangers[self._rng.randrange(len(strangers))], is_detour=True)

    def _shared(self, one: int, key: int) -> int:
        return shared_digits(one, key, self._parameters.b)

    def _farther(self) -> Entry | None:
        """A child of more than one hop: the draft's two rules."""
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
        """Children that share two digits less with their topic's key than this node, or fewer still.

        kept: also those that know no other way.
        """
        own = self._trees.pastry.own.id
        return [
            (topic, child)
            for topic in self._trees.topics.values()
            for child in topic.children.values()
            if (kept or not child.is_fixed)
            and self._shared(child.node.id, topic.key) < self._shared(own, topic.key) - 1
        ]

    def _let_go(self, topic: Topic, child: Child, *, is_detour: bool) -> None:
        del topic.children[child.node.address]
        self._trees.pastry.send(Rejoin(topic.key, int(is_detour)), child.node.address)

    # --- At the other end

    def _grow(self, topic: Topic, sender: Address, message: Grow) -> None:
        """An overloaded node wants this one between itself and a child."""
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
