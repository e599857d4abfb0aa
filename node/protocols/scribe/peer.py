"""Scribe and Pastry for applications: the papers' interface (2002, II.C and III), on a node of its own.

    alice = ScribePeer("alice", "127.0.0.1", rng=Random(1))
    news = topic_of("news", "alice")
    alice.create("secret", news, publishers=["secret"])
    alice.join("", news, print)
    alice.multicast("secret", news, b"hello")

One process contains all layers: Pastry, Scribe, the application. An application may also have its own
messages for Pastry to route; one codec contains their layouts and Scribe's.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from ipaddress import IPv4Address
from typing import Any

from node.core import machine as m
from node.core.framing import refuse_longer
from node.protocols.overlay.node import unplanned_spec
from node.protocols.overlay.peer import OverlayPeer
from node.protocols.reachability.nodes import ID_BITS, id_of
from node.protocols.scribe.access import grants_of, shown_hash
from node.protocols.scribe.messages import Multicast
from node.protocols.scribe.node import ScribeNode
from node.protocols.scribe.parameters import ScribeParameters

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


def stream_of(publisher: int, topic: int) -> int:
    """Return the stream of a node's publications to a topic: a hash of both."""
    return id_of(f"{publisher:032x} {topic:032x}") >> (ID_BITS - STREAM_BITS)


class ScribePeer(OverlayPeer[ScribeNode]):
    """A node and the requests of an application. handlers: upcalls that it may set.

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
        spec = unplanned_spec("scribe", "member", name, address, contacts=contacts, parameters=parameters)
        node = ScribeNode(spec, rng, node_id)
        node.publisher.epoch = start
        node.handlers.event = self._on_event
        self.handlers = node.handlers
        self._message_handlers: dict[int, Callable[[TopicMessage], None]] = {}
        super().__init__(node, node.parameters.port)

    # --- Pastry (2002, II.C)

    def route(self, message: Any, key: int) -> None:
        """Route a message to the live node whose id is numerically closest to the key."""
        self._ask(partial(self._node.pastry.route, message, key))

    def send(self, message: Any, address: str) -> None:
        """Send a message to the node with this address."""
        self._ask(partial(self._node.pastry.send, message, int(IPv4Address(address))))

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
        self._message_handlers[topic] = handler
        self._ask(partial(self._node.trees.join, topic, shown_hash(credentials)))

    def leave(self, credentials: str, topic: int) -> None:
        """End the membership; the papers require credentials here, too, but they are not checked."""
        self._message_handlers.pop(topic, None)
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
            now_us = self._node.pastry.reach.now_us
            self._node.publisher.publish(topic, stream, 1, message, now_us, credentials=credentials)
        else:
            self._requests.append(partial(self._publish, topic, credentials, message))

    def _on_event(self, batch: Multicast) -> None:
        handler = self._message_handlers.get(batch.topic)
        if handler is not None:
            handler(TopicMessage(batch.topic, batch.stream, batch.first_seq, bytes(batch.payload)))
