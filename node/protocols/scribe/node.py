"""A Scribe node: Pastry, trees, root, publisher and member in one process, as a machine without I/O.

Every node is part of the overlay, whatever its role; the plan determines what it publishes and subscribes to.
"""

from ipaddress import IPv4Address
from typing import Any

from node.core import machine as m
from node.core.deliveries import RecordKind
from node.core.peers.peer_pool import Address, PeerPool, Unreachable
from node.core.specification import NodeSpec
from node.protocols.overlay.node import OverlayNode
from node.protocols.pastry.leaf_set import LeafSet
from node.protocols.pastry.overlay import Pastry
from node.protocols.reachability.nodes import NodeHandle, id_of
from node.protocols.scribe.access import AccessControl
from node.protocols.scribe.balancing.balance import TreeBalance
from node.protocols.scribe.layers import Handlers
from node.protocols.scribe.messages import (
    Create,
    Join,
    Multicast,
    Publish,
    Published,
    Right,
    topic_key,
)
from node.protocols.scribe.parameters import ScribeParameters
from node.protocols.scribe.publisher import ScribePublisher
from node.protocols.scribe.replay import Replay
from node.protocols.scribe.root import Roots
from node.protocols.scribe.succession import RootSuccession
from node.protocols.scribe.topic import Topic
from node.protocols.scribe.tree import TopicTrees


def pooled(spec: NodeSpec, rng: m.Randomness) -> PeerPool:
    """Return a node for a network with connections."""
    node = ScribeNode(spec, rng)
    return PeerPool(node, node.parameters.port)


class ScribeNode(OverlayNode):
    """A Scribe node: one process. handlers: upcalls of the application besides the plan (`scribe.peer`)."""

    def __init__(self, spec: NodeSpec, rng: m.Randomness, node_id: int | None = None) -> None:
        self.parameters = ScribeParameters(**spec.parameters)
        super().__init__(
            spec,
            tick_interval_us=self.parameters.tick_us,
            pause_us=self.parameters.heartbeat_timeout_us,
        )
        self.handlers = Handlers()
        # by topic key and stream: whether the subscription is confirmed
        self._following: dict[int, dict[int, bool]] = {}
        self._unplaced: set[int] = set()  # subscribed streams whose first number is not known yet
        self._publishers = spec.workload.get("publishers", 1)  # per topic
        self.trees = TopicTrees(self.parameters, rng, self._emit, self, self.handlers)
        events = self.trees.events = Replay(self.parameters, self.trees, self._emit, self)
        self._succession = RootSuccession(self.parameters, self.trees, events, self._emit)
        self.trees.succession = self._succession
        self.roots = Roots(self.parameters, self.trees, events, self._succession)
        self.trees.carry[Publish] = self._take_publication
        self.trees.opening.add(Publish)
        self.publisher = ScribePublisher(self.parameters, spec.start)
        own = NodeHandle(id_of(spec.name) if node_id is None else node_id, int(IPv4Address(spec.address)))
        self.overlay = self.pastry = Pastry(own, self.parameters, rng, self._emit, self)
        self.trees.pastry = self.roots.pastry = self.publisher.pastry = self.pastry
        self.access = AccessControl(self.parameters, self.trees, self, self._emit)
        self.trees.balance = TreeBalance(self.parameters, self.trees, rng, self._emit)

    def _start(self, given: m.Started, now_us: int) -> None:
        self.pastry.start(self._contacts(), now_us, given.stored)
        self.trees.start()

    def _leave(self, now_us: int) -> None:
        if not self._schedule.is_stopped:  # otherwise all nodes stop
            self.pastry.leave(self.trees.neighbours())
        self._emit(m.Finished())

    def _unreachable(self, given: Unreachable, now_us: int) -> None:
        self.roots.lost(given.address)
        super()._unreachable(given, now_us)

    def _wake(self, now_us: int) -> None:
        super()._wake(now_us)
        self._succession.resumed()

    def progress(self) -> m.NodeProgress:
        """See `node.core.machine.Machine`."""
        published = {
            each.stream: each.acknowledged
            for each in self.publisher.publications.values()
            if each.acknowledged
        }
        delivered = {
            stream: self.trees.topic(key).next_of(stream) - 1
            for key, streams in self._following.items()
            for stream, is_confirmed in streams.items()
            if is_confirmed
        }
        return m.NodeProgress(published, delivered, self._schedule.is_stopped and self.publisher.is_silent)

    def check(self) -> None:
        """See `node.core.machine.Machine`."""
        self.pastry.check()
        for topic in self.trees.topics.values():
            topic.check(self.pastry.own)
        self.roots.check()
        self.publisher.check()

    # --- Time

    def _work(self, now_us: int) -> None:
        self._follow(now_us)
        self._publish(now_us)
        self.trees.tick()
        self.publisher.tick(now_us)
        self.roots.tick(now_us)
        self.access.tick()

    def _timer(self, timer: m.Timer) -> None:
        self.trees.timer(timer)

    def _follow(self, now_us: int) -> None:
        for due in self._schedule.due_subscriptions(now_us):
            if due.on:
                self.follow(due.number)
            else:
                self._unfollow(due.number)

    def follow(self, stream: int) -> None:
        """Subscribe to a stream: become a member of its topic."""
        key = self._key(stream)
        self._record(RecordKind.SUBSCRIBING, stream)
        self._following.setdefault(key, {})[stream] = False
        self.trees.join(key)

    def _unfollow(self, stream: int) -> None:
        key = self._key(stream)
        following = self._following.get(key, {})
        following.pop(stream, None)
        self._record(RecordKind.UNSUBSCRIBING, stream)
        self._record(RecordKind.UNSUBSCRIBED, stream, self._place(self.trees.topic(key), stream))
        self._unplaced.discard(stream)
        if not following:
            self._following.pop(key, None)
            self.trees.leave(key)

    def _place(self, topic: Topic, stream: int) -> int:
        """Return the first missing event of a stream; 0 if nothing of it is known.

        Then the stream has not begun, or a new root does not know its progress because all nodes that stored
        it are gone; the first event that arrives shows it.
        """
        following = topic.next_of(stream)
        return following if following > 1 else 0

    def _key(self, stream: int) -> int:
        """Return the topic key of a stream of the plan; a stream is a publisher in a topic."""
        return topic_key(stream // self._publishers)

    def _publish(self, now_us: int) -> None:
        streams = self._spec.published_by(self._spec)
        if not streams or self._spec.role != "publisher":
            return
        streams_count, workload = len(streams), self._spec.workload
        due = self._schedule.due_events(now_us) - self._published
        # on all streams at once, unless each would then get less than one event per second
        if streams_count <= workload["rate_per_s"]:
            due -= due % streams_count
        if due <= 0 or not all(map(self.publisher.has_room, streams)):
            return
        size, first = workload["event_size_bytes"], self._published % streams_count
        for place, stream in enumerate(streams):
            count = (due + streams_count - 1 - (place - first) % streams_count) // streams_count
            if not count:
                continue
            known = self.publisher.publications.get(stream)
            last = known.last if known is not None else 0
            events = b"".join(b"%0*d" % (size, stream << 32 | last + n + 1) for n in range(count))
            self.publish(stream, count, events, now_us)
        self._published += due

    def tend(self, key: int) -> None:
        """Check this node's place in a topic's tree, as with every tree heartbeat."""
        topic = self.trees.topics.get(key)
        if topic is not None:
            self.trees.balance.look_after(topic)

    def publish(self, stream: int, count: int, payload: bytes, now_us: int) -> None:
        """Publish events of a stream."""
        batch = self.publisher.publish(self._key(stream), stream, count, payload, now_us)
        self._emit(_batch(RecordKind.PUBLISHED, batch))

    # --- Upcalls of the layers

    def receive(self, sender: Address, message: Any) -> None:
        """See `overlay.PastryApplication`."""
        if isinstance(message, Published):
            for batch in self.publisher.published(sender, message, self.trees.now_us):
                numbers = batch.stream, batch.first_seq, batch.count, batch.count
                self._emit(m.Record(RecordKind.ACKNOWLEDGED, *numbers))
        elif not self.trees.receive(sender, message):
            self.handlers.deliver(message, self.pastry.own.id)

    def _take_publication(self, topic: Topic, sender: Address, message: Publish) -> None:
        if topic.is_root:
            self.on_root(topic, message)
        else:
            self.pastry.route(message, message.topic)

    def deliver(self, message: Any, key: int) -> None:
        """See `overlay.PastryApplication`."""
        if isinstance(message, Create):
            topic = self.trees.topic(key)
            self._succession.become_root(topic)
            self.access.deliver(topic, message)
        elif isinstance(message, (Join, Publish)):
            self.trees.deliver(message, key)
        else:
            self.handlers.deliver(message, key)

    def forward(self, message: Any, key: int, following: NodeHandle) -> Any | None:
        """See `overlay.PastryApplication`."""
        if isinstance(message, (Create, Join, Publish)):
            return self.trees.forward(message, key, following)
        return self.handlers.forward(message, key, following)

    def new_leafs(self, leaf_set: LeafSet) -> None:
        """See `overlay.PastryApplication`."""
        self.roots.new_leafs()
        self._succession.new_leafs(leaf_set)
        self.handlers.new_leafs(leaf_set)

    def failed(self, node: NodeHandle) -> None:
        """See `overlay.PastryApplication`."""
        self.publisher.failed(node)
        self.trees.failed(node)

    def on_root(self, topic: Topic, message: Publish) -> None:
        """See `layers.TreeListener`."""
        if self.access.may_publish(topic, message):
            self.roots.publish(topic, message)

    def on_event(self, topic: Topic, batch: Multicast) -> None:
        """See `layers.TreeListener`."""
        if self._following.get(topic.key, {}).get(batch.stream):
            if batch.stream in self._unplaced:
                self._unplaced.discard(batch.stream)
                self._record(RecordKind.SUBSCRIBED, batch.stream, batch.first_seq)
            self._emit(_batch(RecordKind.DELIVERED, batch))
        if topic.has_joined:
            self.handlers.event(batch)

    def on_joined(self, topic: Topic) -> None:
        """See `layers.TreeListener`."""
        following = self._following.get(topic.key, {})
        for stream in [stream for stream, is_confirmed in following.items() if not is_confirmed]:
            following[stream] = True
            place = self._place(topic, stream)
            self._record(RecordKind.SUBSCRIBED, stream, place)
            if not place:
                self._unplaced.add(stream)
        if not topic.has_joined:
            topic.has_joined = True
            self.handlers.joined(topic.key)

    def on_created(self, key: int) -> None:
        """See `layers.TreeListener`."""
        self.handlers.created(key)

    def on_denied(self, key: int, right: Right) -> None:
        """See `layers.TreeListener`: end a denied subscription, so that no event counts as lost."""
        self._emit(m.Log("denied", {"topic": f"{key:032x}", "right": right.name.lower()}, "warning"))
        if right == Right.PUBLISH:
            self.publisher.denied(key)
        elif right == Right.SUBSCRIBE:
            for stream in self._following.pop(key, {}):
                self._record(RecordKind.UNSUBSCRIBING, stream)
                self._record(RecordKind.UNSUBSCRIBED, stream)
        self.handlers.denied(key, right)

    def _record(self, kind: RecordKind, stream: int, seq: int = 0) -> None:
        self._effects.append(m.Record(kind, stream, seq, 0, 0))


def _batch(kind: RecordKind, batch: Multicast | Publish) -> m.Record:
    return m.Record(kind, batch.stream, batch.first_seq, batch.count, batch.count, batch.payload)
