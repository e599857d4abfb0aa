"""The root of a topic: it accepts publications, replicates them, and only then acknowledges them.

Draft of 2001, 3.5: the k nodes nearest to the root hold its state. The next root is one of them and has all
acknowledged events; publishers repeat the others to it. Publishers assign the sequence numbers, by which the
root recognizes repetitions.
"""

from dataclasses import dataclass, field

from node.core.epochs import epoch_of, first_seq_of_epoch
from node.core.peers.peer_pool import Address
from node.protocols.pastry.overlay import Pastry
from node.protocols.reachability.nodes import NodeHandle
from node.protocols.scribe.messages import Gone, Multicast, Publish, Published, Replicate, Replicated
from node.protocols.scribe.parameters import ScribeParameters
from node.protocols.scribe.replay import Replay
from node.protocols.scribe.succession import RootSuccession
from node.protocols.scribe.topic import Topic
from node.protocols.scribe.tree import TopicTrees


@dataclass(slots=True)
class _ReplicaProgress:
    """Messages sent to a replica, and its confirmations at the last progress, both by stream."""

    progress_us: int
    sent: dict[int, int] = field(default_factory=dict)
    confirmed: dict[int, int] = field(default_factory=dict)


class Roots:
    """Work of a node for the topics whose root or replica it is."""

    def __init__(
        self, parameters: ScribeParameters, trees: TopicTrees, events: Replay, succession: RootSuccession
    ) -> None:
        self.pastry: Pastry
        self._parameters = parameters
        self._trees = trees
        self._events = events
        self._succession = succession
        # by topic and stream: the progress that was acknowledged to publishers
        self._answered: dict[tuple[int, int], int] = {}
        self._sent: dict[tuple[int, Address], _ReplicaProgress] = {}  # by topic and replica
        self._replicated_us = 0
        self._nearest: dict[int, list[NodeHandle]] = {}  # by topic; cleared when the leaf set changes
        self._unconfirmed: dict[tuple[int, int], Address] = {}  # by topic and stream: the root to confirm to
        # by topic and stream: the root asked for older events
        self._asked: dict[tuple[int, int], Address] = {}
        self._lost: set[Address] = set()  # nodes whose connection was lost: the process may have restarted
        trees.carry |= {Replicate: self.replicate, Replicated: self.replicated}
        trees.opening |= {Replicate, Replicated}

    # --- Root

    def publish(self, topic: Topic, message: Publish) -> None:
        """Process a publisher's batch at the root."""
        if not message.count:
            self._send_progress(topic, message)
            return
        publisher = topic.publishers[message.stream] = NodeHandle(message.id, message.address)
        if message.first_seq < topic.next_of(message.stream):
            self.pastry.miss(publisher)  # the publisher may not have received the answer
            self._answer(topic, message.stream, again=True)
            return
        before = topic.next_of(message.stream) - 1
        is_next = message.first_seq == before + 1 or self._parameters.is_best_effort
        if is_next or self._begins_epoch(topic, message.first_seq, before):
            events = message.first_seq, before, message.count, bytes(message.payload)
            self._events.take(topic, Multicast(topic.key, message.stream, *events))
            self._answer(topic, message.stream)
        elif epoch_of(message.first_seq) == epoch_of(before + 1):  # of a pending epoch, no event is stored
            events = message.first_seq, message.first_seq - 1, message.count, bytes(message.payload)
            self._events.take(topic, Multicast(topic.key, message.stream, *events))  # out of order

    def _begins_epoch(self, topic: Topic, first_seq: int, before: int) -> bool:
        """Return whether a batch begins a new epoch and the root has all existing events of earlier ones.

        A new root may not have all events yet; it waits, and the publisher repeats the batch.
        """
        is_first = first_seq == first_seq_of_epoch(epoch_of(first_seq)) and first_seq > before
        return is_first and self._has_all(topic)

    def _send_progress(self, topic: Topic, message: Publish) -> None:
        """Send the progress of a stream to a publisher that does not know it."""
        if self._has_all(topic):
            following = topic.next_of(message.stream)
            answer = Published(topic.key, self.pastry.own.id, message.stream, following)
            self.pastry.send(answer, message.address)

    def replicated(self, topic: Topic, sender: Address, message: Replicated) -> None:
        """Process the confirmation of a replica."""
        has = topic.replicas.setdefault(sender, {})
        has[message.stream] = message.next
        if topic.is_root:
            self._answer(topic, message.stream)

    def check(self) -> None:
        """Assert that the root has all acknowledged events."""
        for (key, stream), acknowledged in self._answered.items():
            topic = self._trees.topics.get(key)
            assert topic is not None, "acknowledged an unknown topic"
            assert acknowledged <= topic.next_of(stream), "acknowledged events that are missing here"

    def lost(self, address: Address) -> None:
        """Note a lost connection, so that the replica's progress is requested again."""
        self._lost.add(address)

    def new_leafs(self) -> None:
        """Forget the nodes nearest to roots, since the leaf set changed."""
        self._nearest.clear()

    def _targets(self, topic: Topic) -> list[NodeHandle]:
        if self._parameters.is_best_effort:
            return []
        if topic.key not in self._nearest:
            nearest = self.pastry.leaf_set.nearest(topic.key, self._parameters.replicas)
            self._nearest[topic.key] = list(nearest)
        return self._nearest[topic.key]

    def _has_all(self, topic: Topic) -> bool:
        """Return whether the root has all events that other nodes have received from an earlier root."""
        return self._succession.has_all_told(topic) and not self._is_behind(topic)

    def _is_behind(self, topic: Topic) -> bool:
        """Return whether a replica has more than this root.

        Another root may have replicated events while this one was unreachable or not running.
        """
        return any(
            has > topic.next_of(stream)
            for node in self._targets(topic)
            for stream, has in topic.replicas.get(node.address, {}).items()
        )

    def _answer(self, topic: Topic, stream: int, *, again: bool = False) -> None:
        """Acknowledge to the publisher the events that all replicas have, if there are more or `again` is
        set.
        """
        publisher = topic.publishers.get(stream)
        if publisher is None or self._parameters.is_best_effort or self._succession.is_just_left:
            return
        state = topic.streams.get(stream)
        first = 1 if state is None else state.first
        have = [topic.replicas.get(node.address, {}).get(stream, 0) for node in self._targets(topic)]
        all_have = min((has for has in have if not 1 <= has < first), default=topic.next_of(stream))
        all_have = min(all_have, topic.next_of(stream))
        if all_have and (again or all_have > self._answered.get((topic.key, stream), 0)):
            self._answered[topic.key, stream] = all_have
            answer = Published(topic.key, self.pastry.own.id, stream, all_have)
            self.pastry.send(answer, publisher.address)

    def tick(self, now_us: int) -> None:
        """Send new and unconfirmed events to replicas, and confirm received ones."""
        if now_us >= self._replicated_us + self._parameters.replicate_us:
            self._replicated_us = now_us
            for topic in self._trees.topics.values():
                if topic.is_root and topic.streams:
                    for node in self._targets(topic):
                        self._send_missing(topic, node, now_us)
                        if node.address in self._lost:
                            self._request_progress(topic, node)
                if topic.is_root:
                    self._succession.look_after_root(topic, is_behind=self._is_behind(topic))
            self._lost.clear()
        for (key, stream), sender in self._unconfirmed.items():
            reached = self._trees.topic(key).next_of(stream)
            self.pastry.send(Replicated(key, stream, reached), sender)
        self._unconfirmed.clear()

    def _send_missing(self, topic: Topic, node: NodeHandle, now_us: int) -> None:
        """Send all events since the last ones sent; without progress, since the last confirmed ones."""
        confirmed = topic.replicas.setdefault(node.address, {})
        known = self._sent.setdefault((topic.key, node.address), _ReplicaProgress(now_us))
        is_behind = any(confirmed.get(stream, 0) < state.next for stream, state in topic.streams.items())
        if not is_behind or confirmed != known.confirmed:
            known.confirmed, known.progress_us = dict(confirmed), now_us
        elif self.pastry.reach.is_coming(node.address):
            known.progress_us = now_us  # over a slow link
        elif now_us - known.progress_us >= self._parameters.retransmit_us:
            self.pastry.miss(node)
            known.sent, known.progress_us = dict(confirmed), now_us
        messages = [
            Replicate(topic.key, stream, batch.first_seq, batch.after, batch.count, batch.payload)
            for stream, state in topic.streams.items()
            for batch in state.since(max(known.sent.get(stream, 0), confirmed.get(stream, 0)))
        ]
        gone = self._gone(topic, known.sent, confirmed)
        if gone or messages:
            self.pastry.reach.send(node.address, *gone, *messages)
        known.sent = {stream: state.next for stream, state in topic.streams.items()}

    def _request_progress(self, topic: Topic, node: NodeHandle) -> None:
        """Request a replica's progress, which it reports after any batch."""
        for stream, state in topic.streams.items():
            nothing = Replicate(topic.key, stream, state.next, state.next - 1, 0, b"")
            self.pastry.reach.send(node.address, nothing)

    def _gone(self, topic: Topic, sent: dict[int, int], confirmed: dict[int, int]) -> list[Gone]:
        """Return notices of events that a returned replica lacks and no node stores."""
        return [
            Gone(topic.key, stream, state.first)
            for stream, state in topic.streams.items()
            if 1 <= max(sent.get(stream, 0), confirmed.get(stream, 0)) < state.first
            and self._succession.has_sought(topic)
        ]

    # --- Replica

    def replicate(self, topic: Topic, sender: Address, message: Replicate) -> None:
        """Store a batch from the root; forward it if this node is in the tree, too.

        A batch without events only requests this node's progress.
        """
        stream = message.stream
        if message.count:
            if stream not in topic.streams and not topic.has_positions:
                topic.state(stream).next = message.after + 1
            events = message.first_seq, message.after, message.count, bytes(message.payload)
            self._events.take(topic, Multicast(topic.key, stream, *events))
        self._unconfirmed[topic.key, stream] = topic.kept_for = sender
        self._request_older(topic, stream, sender)

    def _request_older(self, topic: Topic, stream: int, root: Address) -> None:
        """Request the events before all that are stored here.

        A root sends them only on request if an earlier process generation of this node confirmed them, or if
        this node joined the tree late.
        """
        state = topic.streams.get(stream)
        if state is not None and state.first > 1 and self._asked.get((topic.key, stream)) != root:
            self._asked[topic.key, stream] = root
            self._events.ask_before(topic, root)
