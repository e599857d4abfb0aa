"""Scribe and Pastry for applications: the papers' interface (2002, II.C and III), on a node of its own.

    alice = ScribePeer("alice", "127.0.0.1", rng=Random(1))
    news = topic_of("news", "alice")
    alice.create("secret", news, publishers=["secret"])
    alice.join("", news, print)
    alice.multicast("secret", news, b"hello")

It is a machine like any other: `node.tcp.peer` runs it over TCP, `node.sim.flat_network` in virtual time.
Requests from outside an input are executed with its next one; `wake` is called to trigger it.

One process contains all layers: Pastry, Scribe, the application. An application may also have its own
messages for Pastry to route; one codec contains their layouts and Scribe's.
"""

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from ipaddress import IPv4Address
from typing import Any

from node.core import machine as m
from node.core.framing import refuse_longer
from node.core.peers.peer_pool import Address, PeerEffect, PeerInput
from node.core.specification import Member, NodeSpec
from node.protocols.pastry.leaf_set import LeafSet
from node.protocols.reachability.nodes import ID_BITS, NodeHandle, id_of
from node.protocols.scribe.access import grants_of, shown_hash
from node.protocols.scribe.messages import Join, Multicast, Right
from node.protocols.scribe.node import ScribeNode
from node.protocols.scribe.parameters import ScribeParameters
from node.protocols.scribe.topic import Topic

STREAM_BITS = 32


@dataclass(frozen=True, slots=True)
class TopicMessage:
    """A message delivered to a member. publisher: number of the sender; its messages arrive in order of
    seq.
    """

    topic: int
    publisher: int
    seq: int
    content: bytes


@dataclass(slots=True)
class Handlers:
    """Upcalls that an application may set; each may call the peer.

    Pastry's are deliver(message, key), forward(message, key, next node), which returns the message or None to
    drop it, and new_leafs(leaf set). Scribe's are forward_handler(content), which returns the content for the
    children, join_handler(JOIN), and fault_handler(JOIN), which returns the JOIN to send (2002, III.D).
    joined, created and denied report the result of a request.
    """

    deliver: Callable[[Any, int], None] = lambda message, key: None
    forward: Callable[[Any, int, NodeHandle], Any | None] = lambda message, key, following: message
    new_leafs: Callable[[LeafSet], None] = lambda leaf_set: None
    forward_handler: Callable[[bytes], bytes] = lambda content: content
    join_handler: Callable[[Join], None] = lambda join: None
    fault_handler: Callable[[Join], Join] = lambda join: join
    joined: Callable[[int], None] = lambda topic: None
    created: Callable[[int], None] = lambda topic: None
    denied: Callable[[int, Right], None] = lambda topic, right: None


def stream_of(publisher: int, topic: int) -> int:
    """Return the stream of a node's publications to a topic: a hash of both."""
    return id_of(f"{publisher:032x} {topic:032x}") >> (ID_BITS - STREAM_BITS)


class ScribePeer:
    """A node and the requests of an application.

    contacts: addresses of existing nodes; without any this is the first one. parameters: those of an
    experiment, `scribe.parameters`. start: number of earlier starts of a node of this name; without it the
    root is asked for the progress of this peer's messages. Raises ValueError for an unknown parameter.
    """

    def __init__(
        self,
        name: str,
        address: str,
        contacts: Iterable[str] = (),
        *,
        rng: m.Randomness,
        node_id: int | None = None,
        start: int | None = None,
        **parameters: Any,
    ) -> None:
        ScribeParameters.refuse_unknown(parameters)
        members = tuple(Member(each, each, "", "member", 0, each) for each in contacts)
        spec = NodeSpec(name, name, "", "member", 0, 0, "scribe", members, address, parameters)
        self.handlers = Handlers()
        self.wake: Callable[[], None] = lambda: None
        self._node = ScribeNode(spec, rng, node_id)
        self._node.publisher.epoch = start
        self._requests: deque[Callable[[], Any]] = deque()
        self._is_busy = False
        self._now_us = 0
        upcalls = _Upcalls(self.handlers, self._work)
        self._upcalls = upcalls
        self._node.application = self._node.trees.upcalls = upcalls
        self.port = self._node.parameters.port
        self.frame_limit_bytes = self._node.frame_limit_bytes

    @property
    def node(self) -> NodeHandle:
        """Id and address of this node."""
        return self._node.pastry.own

    @property
    def layers(self) -> ScribeNode:
        """The layers below, for inspection."""
        return self._node

    # --- A machine (`node.core.peers.peer_pool.PeerMachine`)

    def handle(self, given: PeerInput, now_us: int) -> Sequence[PeerEffect]:
        """See `node.core.peers.peer_pool.PeerMachine`."""
        self._is_busy, self._now_us = True, now_us
        try:
            return self._node.handle(given, now_us)
        finally:
            self._is_busy = False

    def progress(self) -> m.NodeProgress:
        """See `node.core.peers.peer_pool.PeerMachine`."""
        return self._node.progress()

    def check(self) -> None:
        """See `node.core.machine.Machine`."""
        self._node.check()

    def _ask(self, request: Callable[[], Any]) -> None:
        self._requests.append(request)
        if not self._is_busy:
            self.wake()

    def _work(self) -> None:
        for _ in range(len(self._requests) if self._node.pastry.is_active else 0):
            self._requests.popleft()()

    # --- Pastry (2002, II.C)

    def route(self, message: Any, key: int) -> None:
        """Route a message to the live node whose id is numerically closest to the key."""
        self._ask(partial(self._node.pastry.route, message, key))

    def send(self, message: Any, address: str) -> None:
        """Send a message to the node with this address."""
        self._ask(partial(self._node.pastry.send, message, _number(address)))

    # --- Scribe (2002, III)

    def create(
        self,
        credentials: str,
        topic: int,
        subscribers: Iterable[str] = (),
        publishers: Iterable[str] = (),
        *,
        version: int = 1,
    ) -> None:
        """Create a topic, open to nodes with these credentials, or to all if none are given.

        Its creator may change the grants with a greater version.
        """
        grants = grants_of(subscribers, publishers)
        self._ask(partial(self._node.access.create, topic, shown_hash(credentials), grants, version))

    def join(self, credentials: str, topic: int, handler: Callable[[TopicMessage], None]) -> None:
        """Become a member: the handler is called with each message published from then on."""
        self._upcalls.message_handlers[topic] = handler
        self._ask(partial(self._node.trees.join, topic, shown_hash(credentials)))

    def leave(self, credentials: str, topic: int) -> None:
        """End the membership; the papers require credentials here, too, but they are not checked."""
        self._upcalls.left(topic)
        self._ask(partial(self._node.trees.leave, topic))

    def multicast(self, credentials: str, topic: int, message: bytes) -> None:
        """Publish a message. It is repeated until the root and its replicas have it.

        Raises ValueError if it is too long for a frame.
        """
        refuse_longer(message, self.frame_limit_bytes)
        self._ask(partial(self._publish, topic, shown_hash(credentials), message))

    def _publish(self, topic: int, credentials: int, message: bytes) -> None:
        stream = stream_of(self.node.id, topic)
        if self._node.publisher.has_room(stream):
            self._node.publisher.publish(topic, stream, 1, message, self._now_us, credentials=credentials)
        else:
            self._requests.append(partial(self._publish, topic, credentials, message))


class _Upcalls:
    """Upcalls of the layers below (`node.ScribeApplication`, `layers.Upcalls`), for the application's
    handlers.
    """

    def __init__(self, handlers: Handlers, work: Callable[[], None]) -> None:
        self.message_handlers: dict[int, Callable[[TopicMessage], None]] = {}
        self.work = work
        self._handlers = handlers
        self._joined: set[int] = set()

    def deliver(self, message: Any, key: int) -> None:
        """See `node.ScribeApplication`."""
        self._handlers.deliver(message, key)

    def forward(self, message: Any, key: int, following: NodeHandle) -> Any | None:
        """See `node.ScribeApplication`."""
        return self._handlers.forward(message, key, following)

    def new_leafs(self, leaf_set: LeafSet) -> None:
        """See `node.ScribeApplication`."""
        self._handlers.new_leafs(leaf_set)

    def on_event(self, topic: Topic, batch: Multicast) -> None:
        """See `layers.TreeListener`."""
        handler = self.message_handlers.get(topic.key)
        if handler is not None and topic.key in self._joined:
            handler(TopicMessage(topic.key, batch.stream, batch.first_seq, bytes(batch.payload)))

    def on_joined(self, topic: Topic) -> None:
        """See `layers.TreeListener`: called at each repair, forwarded once."""
        if topic.key in self.message_handlers and topic.key not in self._joined:
            self._joined.add(topic.key)
            self._handlers.joined(topic.key)

    def on_created(self, key: int) -> None:
        """See `access.AccessListener`."""
        self._handlers.created(key)

    def on_denied(self, key: int, right: Right) -> None:
        """See `access.AccessListener`."""
        if right == Right.SUBSCRIBE:
            self.left(key)
        self._handlers.denied(key, right)

    def left(self, key: int) -> None:
        """Remove the handler of a topic that this node is no member of any more."""
        self.message_handlers.pop(key, None)
        self._joined.discard(key)

    def forward_handler(self, topic: Topic, batch: Multicast) -> Multicast:
        """See `layers.Upcalls`."""
        content = self._handlers.forward_handler(batch.payload)
        return batch if content is batch.payload else replace(batch, payload=content)

    def join_handler(self, topic: Topic, join: Join) -> None:
        """See `layers.Upcalls`."""
        self._handlers.join_handler(join)

    def fault_handler(self, topic: Topic, join: Join) -> Join:
        """See `layers.Upcalls`."""
        return self._handlers.fault_handler(join)


def _number(address: str) -> Address:
    return int(IPv4Address(address))
