"""Access control: which nodes may create a topic, subscribe to it and publish, by credentials.

CREATE is routed to the topic's root, which stores it unless another node created the topic before; it is
replicated like all of a root's state (draft of 2001, 3.2 and 3.5; 2002, III.A). The root checks publishers.
Joins end at the first forwarder, so each node of the tree receives the grants from its parent; a node that is
not in the tree yet joins with the credentials of the node that it will adopt.

The papers leave credentials open. Here they are any text; messages show their hash, and a grant contains the
hash of that hash: a node that reads a grant cannot show the credentials. Nodes that forward a message see
what it shows, since the papers have no encryption. A topic that no node created is open to all.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from node.core import machine as m
from node.core.peers.peer_pool import Address, PeerEffect
from node.protocols.reachability.nodes import ID_BITS, id_of
from node.protocols.scribe.layers import TreeListener
from node.protocols.scribe.messages import Create, Created, Denied, Grant, Join, Publish, Right
from node.protocols.scribe.parameters import ScribeParameters
from node.protocols.scribe.topic import Topic
from node.protocols.scribe.tree import TopicTrees

NOTHING = 0
"""Shown by a node without credentials."""
CREATOR_BITS = ID_BITS // 2


def topic_of(name: str, creator: str) -> int:
    """Return a topic's key. A node that knows the topic's name and its creator's name can find the root
    (2002, III.A).
    """
    return id_of(name + creator)


def topic_at(creator_id: int, name: str) -> int:
    """Return a topic's key next to its creator's id, so that the creator is the root while it is alive.

    The papers' alternative. It consists of the first 64 bits of the creator's id and of the name's hash.
    """
    return creator_id >> CREATOR_BITS << CREATOR_BITS | id_of(name) >> CREATOR_BITS


def shown_hash(credentials: str) -> int:
    """Return the hash that messages show for these credentials."""
    return id_of(f"credentials {credentials}") if credentials else NOTHING


def holder_hash(shown_credentials: int) -> int:
    """Return the hash in grants for shown credentials."""
    return id_of(f"{shown_credentials:032x}")


def grants_of(subscribers: Iterable[str], publishers: Iterable[str]) -> tuple[Grant, ...]:
    """Return grants to nodes with these credentials."""
    return (
        *(Grant(Right.SUBSCRIBE, holder_hash(shown_hash(each))) for each in subscribers),
        *(Grant(Right.PUBLISH, holder_hash(shown_hash(each))) for each in publishers),
    )


def allows(grants: Create | None, right: int, credentials: int) -> bool:
    """Return whether the shown credentials have a right; the creator has all rights."""
    if grants is None or credentials == grants.credentials:
        return True
    holders = [grant.holder for grant in grants.grants if grant.right == right]
    return not holders or holder_hash(credentials) in holders


@dataclass(slots=True)
class _Creation:
    message: Create
    sent_us: int


@dataclass(slots=True)
class _Replication:
    """Replication of a root's grants, and the creator to notify when all replicas have them."""

    version: int
    creator: Address | None
    confirmed: set[Address] = field(default_factory=set)
    sent_us: int = -1 << 40


class AccessControl:
    """Access control of one node, for all its topics."""

    def __init__(
        self,
        parameters: ScribeParameters,
        trees: TopicTrees,
        listener: TreeListener,
        emit: Callable[[PeerEffect], None],
    ) -> None:
        self._parameters = parameters
        self._emit = emit
        self._trees = trees
        self._listener = listener
        self._creations: dict[int, _Creation] = {}
        self._replications: dict[int, _Replication] = {}
        trees.carry |= {Create: self._take_grants, Created: self._created, Denied: self._denied}
        trees.opening |= {Create, Denied}
        trees.access = self

    # --- Creator

    def create(self, key: int, credentials: int, grants: tuple[Grant, ...], version: int = 1) -> None:
        """Create a topic, or change the grants of an own one."""
        pastry = self._trees.pastry
        message = Create(key, pastry.own.address, credentials, version, grants)
        self._creations[key] = _Creation(message, self._trees.now_us)
        pastry.route(message, key)

    def tick(self) -> None:
        """Repeat unanswered messages."""
        before_us = self._trees.now_us - self._parameters.retransmit_us
        for creation in self._creations.values():
            if creation.sent_us <= before_us:
                creation.sent_us = self._trees.now_us
                self._trees.pastry.route(creation.message, creation.message.topic)
        for topic in self._trees.topics.values():
            if topic.is_root and topic.grants is not None:
                self._replicate(topic, before_us)

    # --- Root

    def deliver(self, topic: Topic, message: Create) -> None:
        """Process a CREATE at the root: the first one is valid, and later versions by its creator."""
        known = topic.grants
        if known is not None and known.credentials != message.credentials:
            self._log_denied("create_denied", topic, message.address)
            self._answer(topic, Denied(topic.key, Right.CREATE, message.credentials), message.address)
            return
        if known is None or message.version > known.version:
            self._take(topic, message)
        assert topic.grants is not None
        self._replications[topic.key] = _Replication(topic.grants.version, message.address)
        self._replicate(topic, self._trees.now_us)

    def _replicate(self, topic: Topic, before_us: int) -> None:
        assert topic.grants is not None
        replication = self._replications.get(topic.key)
        if replication is None or replication.version != topic.grants.version:
            replication = self._replications[topic.key] = _Replication(topic.grants.version, None)
        nearest = self._trees.pastry.leaf_set.nearest(topic.key, self._parameters.replicas)
        lacking = [node.address for node in nearest if node.address not in replication.confirmed]
        if not lacking and replication.creator is not None:
            self._answer(topic, Created(topic.key, topic.grants.version), replication.creator)
            replication.creator = None
        if replication.sent_us <= before_us:
            replication.sent_us = self._trees.now_us
            for address in lacking:
                self._trees.pastry.send(topic.grants, address)

    def may_publish(self, topic: Topic, message: Publish) -> bool:
        """Return whether the root accepts a publication; if not, notify the publisher."""
        return self._check(topic, Right.PUBLISH, message.credentials, message.address)

    def may_join(self, topic: Topic, join: Join) -> bool:
        """Return whether a node of the tree may adopt the sender; if not, notify it."""
        return self._check(topic, Right.SUBSCRIBE, join.credentials, join.address)

    def may_stay(self, topic: Topic) -> bool:
        """Return whether this node may be a member of the tree; if not, end its membership.

        The node is in the tree as its root or as a forwarder.
        """
        if allows(topic.grants, Right.SUBSCRIBE, topic.credentials):
            return True
        self._log_denied("subscribe_denied", topic, self._trees.pastry.own.address)
        self._trees.leave(topic.key)
        self._listener.on_denied(topic.key, Right.SUBSCRIBE)
        return False

    def _check(self, topic: Topic, right: Right, credentials: int, address: Address) -> bool:
        if allows(topic.grants, right, credentials):
            return True
        self._log_denied(f"{right.name.lower()}_denied", topic, address)
        self._answer(topic, Denied(topic.key, right, credentials), address)
        return False

    def _answer(self, topic: Topic, message: Created | Denied, address: Address) -> None:
        """Send an answer to a node, which may be this one."""
        own = self._trees.pastry.own.address
        if address == own:
            self._trees.carry[type(message)](topic, own, message)
        else:
            self._trees.pastry.send(message, address)

    def _log_denied(self, event: str, topic: Topic, peer: Address) -> None:
        self._emit(m.Log(event, {"topic": f"{topic.key:032x}", "peer": peer}, "warning"))

    # --- All nodes

    def _take_grants(self, topic: Topic, sender: Address, message: Create) -> None:
        """Process grants, from a root for its replica or from a parent."""
        self._take(topic, message)
        self._trees.pastry.send(Created(topic.key, message.version), sender)

    def _take(self, topic: Topic, message: Create) -> None:
        if topic.grants is None or message.version > topic.grants.version:
            topic.grants = message
            for child in topic.children.values():
                self._trees.pastry.send(message, child.node.address)

    def _created(self, topic: Topic, sender: Address, message: Created) -> None:
        replication, creation = self._replications.get(topic.key), self._creations.get(topic.key)
        is_answer = not topic.is_root or sender == self._trees.pastry.own.address
        if is_answer and creation is not None and creation.message.version <= message.version:
            del self._creations[topic.key]
            self._listener.on_created(topic.key)
        elif replication is not None and replication.version == message.version:
            replication.confirmed.add(sender)
            self._replicate(topic, self._trees.now_us - self._parameters.retransmit_us)

    def _denied(self, topic: Topic, sender: Address, message: Denied) -> None:
        """Process a refusal, of this node or of children that it was to adopt."""
        right = Right(message.right)
        if right == Right.CREATE:
            self._creations.pop(topic.key, None)
            self._listener.on_denied(topic.key, right)
        elif right == Right.PUBLISH:
            self._listener.on_denied(topic.key, right)
        else:
            self._remove_denied(topic, message)

    def _remove_denied(self, topic: Topic, message: Denied) -> None:
        for child in [each for each in topic.children.values() if each.credentials == message.credentials]:
            del topic.children[child.node.address]
            self._trees.pastry.send(message, child.node.address)
        if topic.is_member and topic.credentials == message.credentials:
            self._trees.leave(topic.key)
            self._listener.on_denied(topic.key, Right.SUBSCRIBE)
        elif not topic.is_needed:
            self._trees.leave(topic.key)
        elif topic.is_joining:
            self._trees.seek_parent(topic)
