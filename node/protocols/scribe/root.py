"""The root of a topic: it takes what is published, has it replicated, and only then answers.

Draft of 2001, 3.5: the root's state stands on the k nodes nearest to it, so that whichever of them becomes
the root after it has what was acknowledged; publishers send again to the new root what was not. Sequence
numbers are the publisher's own: what is sent again is known by them, and left out.
"""

from node.core.peer_pool import Address
from node.protocols.pastry.ids import NodeHandle
from node.protocols.pastry.overlay import Pastry
from node.protocols.scribe.messages import Multicast, Publish, Published, Replicate, Replicated
from node.protocols.scribe.parameters import Parameters
from node.protocols.scribe.topic import Topic
from node.protocols.scribe.tree import Trees


class Roots:
    """What a node does for the topics whose root it is, and for those whose state it holds for their root."""

    def __init__(self, parameters: Parameters, trees: Trees) -> None:
        self.pastry: Pastry
        self._parameters = parameters
        self._trees = trees
        self._answered: dict[tuple[int, int], int] = {}  # by topic and stream, what publishers were told
        self._sent: dict[tuple[int, Address], tuple[dict[int, int], int]] = {}  # what, and when it was new
        self._nearest: dict[int, list[Address]] = {}  # by topic, as long as the leaf set is the same
        self._unconfirmed: dict[tuple[int, int], Address] = {}  # by topic and stream, the root to be told

    # --- At the root

    def publish(self, topic: Topic, message: Publish) -> None:
        """A publisher's batch came to the root."""
        topic.publishers[message.stream] = NodeHandle(message.id, message.address)
        if message.first_seq < topic.next_of(message.stream):
            self._answer(topic, message.stream, again=True)
            return
        batch = Multicast(
            message.topic, message.stream, message.first_seq, message.count, bytes(message.payload)
        )
        if message.first_seq == topic.next_of(message.stream):
            self._trees.take(topic, batch)
            self._answer(topic, message.stream)

    def replicated(self, topic: Topic, sender: Address, message: Replicated) -> None:
        """A replica has so much."""
        has = topic.replicas.setdefault(sender, {})
        has[message.stream] = message.next
        if topic.is_root:
            self._answer(topic, message.stream)

    def new_leafs(self) -> None:
        """Others may be nearest to roots now."""
        self._nearest.clear()

    def _targets(self, topic: Topic) -> list[Address]:
        if topic.key not in self._nearest:
            nearest = self.pastry.leaf_set.nearest(topic.key, self._parameters.replicas)
            self._nearest[topic.key] = [node.address for node in nearest]
        return self._nearest[topic.key]

    def _answer(self, topic: Topic, stream: int, *, again: bool = False) -> None:
        """Tell the publisher what all replicas have, if that is news or it asks again."""
        publisher = topic.publishers.get(stream)
        if publisher is None:
            return
        all_have = min(
            (topic.replicas.get(address, {}).get(stream, 0) for address in self._targets(topic)),
            default=topic.next_of(stream),
        )
        all_have = min(all_have, topic.next_of(stream))
        if all_have and (again or all_have > self._answered.get((topic.key, stream), 0)):
            self._answered[topic.key, stream] = all_have
            self.pastry.send(Published(topic.key, stream, all_have), publisher.address)

    def tick(self, now_us: int) -> None:
        """Send replicas what is new, again what they did not confirm, and confirm what came here."""
        for topic in self._trees.topics.values():
            if topic.is_root:
                for address in self._targets(topic) if topic.streams else ():
                    self._bring_up(topic, address, now_us)
        for (key, stream), sender in self._unconfirmed.items():
            reached = self._trees.topic(key).next_of(stream)
            self.pastry.send(Replicated(key, stream, reached), sender)
        self._unconfirmed.clear()

    def _bring_up(self, topic: Topic, address: Address, now_us: int) -> None:
        """Everything since what was sent before; after a while without an answer since what is confirmed."""
        confirmed = topic.replicas.setdefault(address, {})
        sent, tried_us = self._sent.get((topic.key, address), ({}, now_us))
        behind = any(confirmed.get(stream, 0) < state.next for stream, state in topic.streams.items())
        if behind and now_us - tried_us >= self._parameters.retransmit_us:
            sent, tried_us = dict(confirmed), now_us
        elif not behind:
            tried_us = now_us
        messages = [
            Replicate(topic.key, stream, batch.first_seq, batch.count, batch.payload)
            for stream, state in topic.streams.items()
            for batch in state.since(max(sent.get(stream, 0), confirmed.get(stream, 0)))
        ]
        if messages:
            self.pastry.reach.send(address, *messages)
        position = {stream: state.next for stream, state in topic.streams.items()}
        self._sent[topic.key, address] = position, tried_us

    # --- At a replica

    def replicate(self, topic: Topic, sender: Address, message: Replicate) -> None:
        """The root's batch: kept, and handed on like any other if this node is in the tree as well."""
        if message.stream not in topic.streams and not topic.has_positions:
            topic.state(message.stream).next = message.first_seq
        batch = Multicast(
            message.topic, message.stream, message.first_seq, message.count, bytes(message.payload)
        )
        self._trees.take(topic, batch)
        self._unconfirmed[topic.key, message.stream] = sender
