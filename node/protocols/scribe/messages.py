"""Scribe's messages. CREATE, JOIN, LEAVE and MULTICAST are the papers' own (2002, III.A).

The others make it reliable: messages between parent and children, between publisher and root, for replay and
for replication (draft of 2001, 3.5; 2002, III.D).
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from node.core.message_layout import ADDRESS, SEQ, Codec, Field, NamedValues, TailField, numbered
from node.protocols.pastry.messages import PASTRY_MESSAGES
from node.protocols.reachability.nodes import NodeHandle, id_of

Topic = Annotated[int, Field("K", "", "the topic's key", columns=("key",))]
Id = Annotated[int, Field("K", "", "the node's id", columns=())]
Credentials = Annotated[int, Field("K", "", "credentials that the sender shows; 0: none", columns=())]
Address = Annotated[int, Field("I", ADDRESS, "listen address of the node")]
Stream = Annotated[int, Field("I", "", "stream of the events: a publisher in a topic")]
FirstSeq = Annotated[int, Field("Q", SEQ, "sequence number of the first event, from 1 on")]
Count = Annotated[int, Field("I", "events", "number of events")]
Payload = Annotated[bytes, TailField("bytes", "the events, one after the other")]


def topic_key(topic: int) -> int:
    """Return the key of a topic of the plan."""
    return id_of(f"topic {topic}")


@dataclass(frozen=True, slots=True)
class Position:
    """Progress of a node in a stream."""

    reads: ClassVar = ("s{stream} before {next}",)
    column: ClassVar = "advertised"

    stream: Stream
    next: Annotated[int, Field("Q", SEQ, "the first missing event", columns=("cnt",))]


Positions = Annotated[tuple[Position, ...], TailField("rows", "progress of the node", Position)]


@dataclass(frozen=True, slots=True)
class PathNode:
    """A node between the root and a child."""

    reads: ClassVar = ("{id}",)

    id: Annotated[int, Field("K", "", "the node's id", columns=("key",))]


@dataclass(frozen=True, slots=True)
class TopicMessage:
    """Any message of Scribe: it concerns a topic."""

    reads: ClassVar[tuple[str, ...]] = ("{topic}",)

    topic: Topic


class JoinRouting(NamedValues):
    """How a join reaches a node."""

    ROUTED = 0, "routed to the topic's key"
    SENT = 1, "sent to this node as another one requested"
    NO_DETOUR = 2, "routed; the sender knows no other way"


@dataclass(frozen=True, slots=True)
class Join(TopicMessage):
    """A join, routed to the topic; the first node of its tree on the way adopts the sender."""

    reads: ClassVar = ("{topic}", "hops {hops}", "{errand?}", "{positions}")

    id: Id
    address: Address
    errand: Annotated[int, Field("B", "", "how it was sent", JoinRouting)]
    hops: Annotated[int, Field("B", "nodes", "from the sender to the receiver")]
    via: Annotated[int, Field("I", ADDRESS, "listen address of the previous node on the way")]
    is_new: Annotated[int, Field("B", "", "1: send events from now on; 0: from these positions on")]
    credentials: Credentials
    positions: Positions


@dataclass(frozen=True, slots=True)
class Adopted(TopicMessage):
    """The sender is the receiver's parent and sends all events from these positions on."""

    reads: ClassVar = ("{topic}", "{positions}")

    id: Id
    positions: Positions


@dataclass(frozen=True, slots=True)
class Refused(TopicMessage):
    """The receiver is above the sender, or the sender is not in the tree: join elsewhere (2002, IV.E)."""


@dataclass(frozen=True, slots=True)
class TreePath(TopicMessage):
    """The nodes between the root and the receiver, root first."""

    reads: ClassVar = ("{topic}", "{nodes}")

    nodes: Annotated[tuple[PathNode, ...], TailField("rows", "path, root first", PathNode)]


@dataclass(frozen=True, slots=True)
class Leave(TopicMessage):
    """The sender is no child of the receiver."""


@dataclass(frozen=True, slots=True)
class Multicast(TopicMessage):
    """Events from parent to child, or from any node that has them to one that missed them."""

    reads: ClassVar = ("{topic}", "s{stream}", "[{first_seq}..{first_seq+count}]")

    stream: Stream
    first_seq: FirstSeq
    after: Annotated[int, Field("Q", SEQ, "previous event, of an earlier epoch if this batch begins one")]
    count: Count
    payload: Payload


@dataclass(frozen=True, slots=True)
class TreeHeartbeat(TopicMessage):
    """A sign of life of a parent without new events, with its progress."""

    reads: ClassVar = ("{topic}", "{positions}")

    positions: Positions


@dataclass(frozen=True, slots=True)
class Refresh(TreeHeartbeat):
    """A sign of life of a child, with its progress."""


@dataclass(frozen=True, slots=True)
class Fetch(TopicMessage):
    """A request for all events from these positions on, and for all events of other streams."""

    reads: ClassVar = ("{topic}", "{positions}")

    id: Id
    address: Address
    is_last_told: Annotated[int, Field("B", "", "1: confirm the end with FETCHED")]
    positions: Positions


@dataclass(frozen=True, slots=True)
class FetchBefore(TopicMessage):
    """A request for the events before the first ones that a new root stores, newest first."""

    reads: ClassVar = ("{topic}", "{positions}")

    positions: Annotated[tuple[Position, ...], TailField("rows", "first events that the node has", Position)]


@dataclass(frozen=True, slots=True)
class Fetched(TopicMessage):
    """The sender has sent all that it has."""


@dataclass(frozen=True, slots=True)
class Gone(TopicMessage):
    """No node has the events of a stream before this one."""

    reads: ClassVar = ("{topic}", "s{stream}", "before {next}")

    stream: Stream
    next: Annotated[int, Field("Q", SEQ, "the first remaining event")]


@dataclass(frozen=True, slots=True)
class Publish(TopicMessage):
    """Events from a publisher to the root of the topic."""

    reads: ClassVar = ("{topic}", "s{stream}", "[{first_seq}..{first_seq+count}]")

    id: Id
    address: Address
    credentials: Credentials
    stream: Stream
    first_seq: FirstSeq
    count: Count
    payload: Payload


@dataclass(frozen=True, slots=True)
class Published(TopicMessage):
    """The root and its replicas have all events before this one."""

    reads: ClassVar = ("{topic}", "s{stream}", "before {next}")

    id: Id
    stream: Stream
    next: Annotated[int, Field("Q", SEQ, "the first event that they lack")]


@dataclass(frozen=True, slots=True)
class Replicate(Multicast):
    """Events from a root to the nodes nearest to it; without events it requests the receiver's progress."""


@dataclass(frozen=True, slots=True)
class Replicated(TopicMessage):
    """The sender has all events before this one."""

    reads: ClassVar = ("{topic}", "s{stream}", "before {next}")

    stream: Stream
    next: Annotated[int, Field("Q", SEQ, "the first missing event")]


@dataclass(frozen=True, slots=True)
class Sibling:
    """Another child of the sender."""

    reads: ClassVar = ("{id}",)

    id: Annotated[int, Field("K", "", "id of the child", columns=("key",))]
    address: Annotated[int, Field("I", ADDRESS, "listen address of the node")]
    delay_us: Annotated[int, Field("I", "us", "from the child to the sender, one way")]


@dataclass(frozen=True, slots=True)
class Offload(TopicMessage):
    """A request of an overloaded parent to leave it and join a sibling (2002, IV.E)."""

    reads: ClassVar = ("{topic}", "{siblings}")

    siblings: Annotated[tuple[Sibling, ...], TailField("rows", "children table", Sibling)]


@dataclass(frozen=True, slots=True)
class JoinAt(TopicMessage):
    """A request to join at this node, without the sender in between (2002, IV.F; draft of 2001, 3.4.2)."""

    address: Address
    hops: Annotated[int, Field("B", "nodes", "from the receiver to that node, on the way to the topic's key")]


@dataclass(frozen=True, slots=True)
class Grow(TopicMessage):
    """A request of an overloaded node to become its child and adopt this other node (draft of 2001,
    3.4.1).
    """

    message: Annotated[Any, TailField("message", "join that came through the receiver")]


@dataclass(frozen=True, slots=True)
class Rejoin(TopicMessage):
    """A request of an overloaded parent to leave it and join again (draft of 2001, 3.4.1)."""

    is_detour: Annotated[int, Field("B", "", "1: through another node than the sender")]


@dataclass(frozen=True, slots=True)
class Shrink(TopicMessage):
    """A request to take the sender's few children (draft of 2001, 3.4.2). Answered by SHRINK_ANSWER."""

    reads: ClassVar = ("{topic}", "{children}")

    is_member: Annotated[int, Field("B", "", "1: the sender remains a child")]
    children: Annotated[tuple[NodeHandle, ...], TailField("rows", "children table", NodeHandle)]


@dataclass(frozen=True, slots=True)
class ShrinkAnswer(TopicMessage):
    """Whether the sender takes the children."""

    reads: ClassVar = ("{topic}", "accepted {is_accepted?}")

    is_accepted: Annotated[int, Field("B", "", "1: the children may join here")]
    hops: Annotated[
        int, Field("B", "nodes", "from the receiver to the sender, on the way to the topic's key")
    ]


class Right(NamedValues):
    """A right with respect to a topic."""

    CREATE = 0, "create the topic and grant rights"
    SUBSCRIBE = 1, "become a member"
    PUBLISH = 2, "publish"


@dataclass(frozen=True, slots=True)
class Grant:
    """A right with respect to a topic, and its holder."""

    right: Annotated[int, Field("B", "", "the right", Right)]
    holder: Annotated[int, Field("K", "", "SHA-1 of the credentials", columns=())]


@dataclass(frozen=True, slots=True)
class Create(TopicMessage):
    """A topic and its grants: routed to its root, sent to its replicas and down the tree (2002, III.A).

    All nodes have a right that is granted to none.
    """

    reads: ClassVar = ("{topic}", "version {version}")

    address: Address
    credentials: Credentials
    version: Annotated[int, Field("I", "", "of the grants; the latest one is valid")]
    grants: Annotated[tuple[Grant, ...], TailField("rows", "granted rights", Grant)]


@dataclass(frozen=True, slots=True)
class Created(TopicMessage):
    """The sender has these grants; from a root: its replicas have them, too."""

    reads: ClassVar = ("{topic}", "version {version}")

    version: Annotated[int, Field("I", "", "of the grants")]


@dataclass(frozen=True, slots=True)
class Denied(TopicMessage):
    """A refusal: these credentials lack the right."""

    reads: ClassVar = ("{topic}", "{right}")

    right: Annotated[int, Field("B", "", "the right", Right)]
    credentials: Credentials


SCRIBE_MESSAGES = (
    Join, Adopted, Refused, TreePath, Leave, Multicast, TreeHeartbeat, Refresh, Fetch, FetchBefore, Gone,
    Publish, Published, Replicate, Replicated, Offload, JoinAt, Grow, Rejoin, Shrink, ShrinkAnswer, Create,
    Created, Denied, Fetched,
)  # fmt: skip
FIRST_TYPE = 32  # after Pastry's types

OWN_TYPE = 128  # from here on: messages of applications


def codec(*own: type) -> Codec:
    """Return the codec of Pastry's and Scribe's messages, and of the application's own."""
    return Codec(numbered(PASTRY_MESSAGES) + numbered(SCRIBE_MESSAGES, FIRST_TYPE) + numbered(own, OWN_TYPE))


CODEC = codec()
