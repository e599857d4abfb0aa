"""Interfaces between the trees of a node and its other layers."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Protocol

from node.core import machine as m
from node.core.peers.peer_pool import Address
from node.protocols.pastry.leaf_set import LeafSet
from node.protocols.reachability.nodes import NodeHandle
from node.protocols.scribe.messages import Join, Multicast, Position, Publish, Right
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


class Balance(Protocol):
    """Choice of the children that a node keeps (`node.protocols.scribe.balancing.balance`)."""

    def passes(self, key: int, join: Join) -> Join | None:
        """Return the join to forward without becoming a forwarder; None if the node must become one."""

    def hands_on(self, topic: Topic, join: Join) -> bool:
        """Return whether another node was asked to adopt the sender of a join."""

    def adopted(self) -> None:
        """Check whether children must leave, after an adoption and periodically."""

    def look_after(self, topic: Topic) -> None:
        """Check a topic periodically."""

    def timer(self, timer: m.Timer) -> bool:
        """Process a timer; return whether it belongs to the balance."""


class SuccessionPolicy(Protocol):
    """Decision whether this node is a root (`node.protocols.scribe.succession`)."""

    def become_root(self, topic: Topic) -> None:
        """Become the root of a topic, and fetch missing events from other nodes."""

    def has_sought(self, topic: Topic) -> bool:
        """Return whether a root may report events as gone; otherwise it asks other nodes for them."""

    def has_all_told(self, topic: Topic) -> bool:
        """Return whether all nodes that may have more events than the root have reported, or had time to."""

    def may_be_divided(self, topic: Topic) -> bool:
        """Return whether the root or a replica was lately unreachable by any way.

        More events may then exist on the other side of a cut.
        """

    def look_after(self, topic: Topic) -> None:
        """Check a topic periodically."""


class AccessPolicy(Protocol):
    """Decision which nodes may be in a tree (`node.protocols.scribe.access`)."""

    def may_join(self, topic: Topic, join: Join) -> bool:
        """Return whether the sender of a join may be in the tree; if not, notify it."""

    def may_stay(self, topic: Topic) -> bool:
        """Return whether this node may be a member of the tree; if not, end its membership."""


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


class EventTransfer(Protocol):
    """Storage and transfer of published events (`node.protocols.scribe.replay`)."""

    def take(self, topic: Topic, batch: Multicast) -> bool:
        """Process a batch from any node; return whether an earlier batch is missing."""

    def fetch_from(self, topic: Topic, *addresses: Address) -> None:
        """Request missing events, unless they were requested recently."""

    def ask(self, topic: Topic, address: Address, *, is_last_told: bool = False) -> None:
        """Request all events from the current positions on; optionally, a notification at the end."""

    def ask_before(self, topic: Topic, address: Address) -> None:
        """Request the events before all that are stored here."""

    def replay(self, topic: Topic, to: NodeHandle, positions: Iterable[Position]) -> tuple[Position, ...]:
        """Send the stored events from the positions on; request older ones from the parent.

        Return the positions whose events are not stored here any more.
        """
