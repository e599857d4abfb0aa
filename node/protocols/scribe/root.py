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
        self._tried_us: dict[tuple[int, Address], int] = {}

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

    def passed_on(self, topic: Topic, batch: Multicast) -> None:
        """A batch is in order at the root: its replicas are to have it."""
        key = topic.key
        for address in self._targets(topic):
            has = topic.replicas.setdefault(address, {})
            if has.get(batch.stream, batch.first_seq) == batch.first_seq or batch.stream in has:
                has.setdefault(batch.stream, batch.first_seq)
                self.pastry.send(
                    Replicate(key, batch.stream, batch.first_seq, batch.count, batch.payload), address
                )
        self._answer(topic, batch.stream)

    def replicated(self, topic: Topic, sender: Address, message: Replicated) -> None:
        """A replica has so much."""
        has = topic.replicas.setdefault(sender, {})
        has[message.stream] = message.next
        if topic.is_root:
            self._answer(topic, message.stream)

    def _targets(self, topic: Topic) -> list[Address]:
        nearest = self.pastry.leaf_set.nearest(topic.key, self._parameters.replicas)
        return [node.address for node in nearest]

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
        """Send replicas what they still miss."""
        for topic in self._trees.topics.values():
            if topic.is_root and topic.streams:
                for address in self._targets(topic):
                    self._bring_up(topic, address, now_us)

    def _bring_up(self, topic: Topic, address: Address, now_us: int) -> None:
        has = topic.replicas.setdefault(address, {})
        tried_us = self._tried_us.get((topic.key, address), -1 << 40)
        behind = {stream: has.get(stream, 0) for stream, state in topic.streams.items()}
        behind = {stream: seq for stream, seq in behind.items() if seq < topic.next_of(stream)}
        if not behind or now_us - tried_us < self._parameters.retransmit_us:
            return
        self._tried_us[topic.key, address] = now_us
        for stream, seq in behind.items():
            for batch in topic.streams[stream].since(seq):
                self.pastry.send(
                    Replicate(topic.key, stream, batch.first_seq, batch.count, batch.payload), address
                )

    # --- At a replica

    def replicate(self, topic: Topic, sender: Address, message: Replicate) -> None:
        """The root's batch: kept, and handed on like any other if this node is in the tree as well."""
        if message.stream not in topic.streams and not topic.has_positions:
            topic.state(message.stream).next = message.first_seq
        batch = Multicast(
            message.topic, message.stream, message.first_seq, message.count, bytes(message.payload)
        )
        self._trees.take(topic, batch)
        reached = topic.next_of(message.stream)
        self.pastry.send(Replicated(topic.key, message.stream, reached), sender)
