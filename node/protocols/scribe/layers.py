"""Upcalls from the trees of a node: to the node, and to an application."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol

from node.protocols.pastry.leaf_set import LeafSet
from node.protocols.reachability.nodes import NodeHandle
from node.protocols.scribe.messages import Join, Multicast, Publish, Right
from node.protocols.scribe.topic import Topic


class TreeListener(Protocol):
    """Receiver of the events of the trees, and of the results of access control."""

    def on_event(self, topic: Topic, batch: Multicast) -> None:
        """Process a batch that is in order."""

    def on_joined(self, topic: Topic) -> None:
        """Process that this node, as a member, receives all events from now on."""

    def on_root(self, topic: Topic, message: Publish) -> None:
        """Process a publication to a topic whose root is this node."""

    def on_created(self, key: int) -> None:
        """Process that the root and its replicas have the topic that this node created."""

    def on_denied(self, key: int, right: Right) -> None:
        """Process that this node lacks a right."""


@dataclass(slots=True)
class Handlers:
    """Upcalls that an application may set; each may call the peer.

    Pastry's are deliver(message, key), forward(message, key, next node), which returns the message or None to
    drop it, and new_leafs(leaf set). Scribe's are forward_handler(content), which returns the content for the
    children, join_handler(JOIN), and fault_handler(JOIN), which returns the JOIN to send (2002, III.D).
    joined, created and denied report the result of a request; event, what a member receives.
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
    event: Callable[[Multicast], None] = lambda batch: None
