"""Scribe's messages. CREATE, JOIN, LEAVE and MULTICAST are the papers' own (2002, III.A).

The others make it reliable: what a parent tells its children, what a publisher and its root tell each other,
and what is replayed and replicated (draft of 2001, 3.5; 2002, III.D).
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from node.core.message_layout import ADDRESS, SEQ, Codec, Field, Layout, Tail, Values
from node.protocols.pastry.messages import pastry_layouts
from node.protocols.reachability.nodes import NodeHandle, id_of

Topic = Annotated[int, Field("K", "", "the topic's key", columns=("key",))]
Id = Annotated[int, Field("K", "", "the node's id", columns=())]
Credentials = Annotated[int, Field("K", "", "what the sender shows to be let in; 0: nothing", columns=())]
Address = Annotated[int, Field("I", ADDRESS, "where the node listens")]
Stream = Annotated[int, Field("I", "", "whose events: a publisher in a topic")]
FirstSeq = Annotated[int, Field("Q", SEQ, "number of the first one, from 1 on")]
Count = Annotated[int, Field("I", "events", "how many")]
Payload = Annotated[bytes, Tail("bytes", "the events, one after the other")]


def topic_key(topic: int) -> int:
    """The key of a topic of the plan."""
    return id_of(f"topic {topic}")


@dataclass(frozen=True, slots=True)
class Position:
    """How far a node has come in a stream."""

    reads: ClassVar = ("s{stream} before {next}",)
    column: ClassVar = "advertised"

    stream: Stream
    next: Annotated[int, Field("Q", SEQ, "the first event that it does not have", columns=("cnt",))]


Positions = Annotated[tuple[Position, ...], Tail("rows", "how far the node has come", Position)]


@dataclass(frozen=True, slots=True)
class PathNode:
    """A node between the root and a child."""

    reads: ClassVar = ("{id}",)

    id: Annotated[int, Field("K", "", "the node's id", columns=("key",))]


class Errand(Values):
    """How a join comes to whoever gets it."""

    ROUTED = 0, "on its way to the topic's key"
    SENT = 1, "by another node's word to this one"
    NO_DETOUR = 2, "routed, and its sender knows no other way"


@dataclass(frozen=True, slots=True)
class Join:
    """Routed to the topic; the first node of its tree on the way adopts the sender."""

    reads: ClassVar = ("{topic}", "hops {hops}", "{errand?}", "{positions}")

    topic: Topic
    id: Id
    address: Address
    errand: Annotated[int, Field("B", "", "how it came", Errand)]
    hops: Annotated[int, Field("B", "nodes", "from the sender to whoever gets it")]
    via: Annotated[int, Field("I", ADDRESS, "where the last node before listens")]
    is_new: Annotated[int, Field("B", "", "1: from now on; 0: from these positions on")]
    credentials: Credentials
    positions: Positions


@dataclass(frozen=True, slots=True)
class Adopted:
    """I am your parent; you are sent everything from these positions on."""

    reads: ClassVar = ("{topic}", "{positions}")

    topic: Topic
    id: Id
    positions: Positions


@dataclass(frozen=True, slots=True)
class Refused:
    """You are between the root and me, or I am not in the tree: join elsewhere (2002, IV.E)."""

    reads: ClassVar = ("{topic}",)

    topic: Topic


@dataclass(frozen=True, slots=True)
class TreePath:
    """Who is between the root and you, the root first."""

    reads: ClassVar = ("{topic}", "{nodes}")

    topic: Topic
    nodes: Annotated[tuple[PathNode, ...], Tail("rows", "from the root on", PathNode)]


@dataclass(frozen=True, slots=True)
class Leave:
    """I am not your child any more, or never was."""

    reads: ClassVar = ("{topic}",)

    topic: Topic


@dataclass(frozen=True, slots=True)
class Multicast:
    """Events, from parent to child; or from whoever has them, to a node that missed them."""

    reads: ClassVar = ("{topic}", "s{stream}", "[{first_seq}..{first_seq+count}]")

    topic: Topic
    stream: Stream
    first_seq: FirstSeq
    after: Annotated[int, Field("Q", SEQ, "the event before: of an earlier epoch, if this begins one")]
    count: Count
    payload: Payload


@dataclass(frozen=True, slots=True)
class TreeHeartbeat:
    """I live, and have come so far: from a parent, when it had no events for a while."""

    reads: ClassVar = ("{topic}", "{positions}")

    topic: Topic
    positions: Positions


@dataclass(frozen=True, slots=True)
class Refresh(TreeHeartbeat):
    """I am still your child, and have come so far."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """Send a node what it misses, from these positions on; of other streams everything."""

    reads: ClassVar = ("{topic}", "{positions}")

    topic: Topic
    id: Id
    address: Address
    is_last_told: Annotated[int, Field("B", "", "1: say when that was all")]
    positions: Positions


@dataclass(frozen=True, slots=True)
class FetchBefore:
    """Send a new root what is before the first event that it keeps, the newest first."""

    reads: ClassVar = ("{topic}", "{positions}")

    topic: Topic
    positions: Annotated[tuple[Position, ...], Tail("rows", "what the node has already", Position)]


@dataclass(frozen=True, slots=True)
class Fetched:
    """You were sent all that I have."""

    reads: ClassVar = ("{topic}",)

    topic: Topic


@dataclass(frozen=True, slots=True)
class Gone:
    """Of a stream nobody has what comes before this event."""

    reads: ClassVar = ("{topic}", "s{stream}", "before {next}")

    topic: Topic
    stream: Stream
    next: Annotated[int, Field("Q", SEQ, "the first event that is left")]


@dataclass(frozen=True, slots=True)
class Publish:
    """Events, from a publisher to the topic's root."""

    reads: ClassVar = ("{topic}", "s{stream}", "[{first_seq}..{first_seq+count}]")

    topic: Topic
    id: Id
    address: Address
    credentials: Credentials
    stream: Stream
    first_seq: FirstSeq
    count: Count
    payload: Payload


@dataclass(frozen=True, slots=True)
class Published:
    """The root and its replicas have the events before this one."""

    reads: ClassVar = ("{topic}", "s{stream}", "before {next}")

    topic: Topic
    id: Id
    stream: Stream
    next: Annotated[int, Field("Q", SEQ, "the first event that they do not have")]


@dataclass(frozen=True, slots=True)
class Replicate(Multicast):
    """Events, from a root to the nodes nearest to it; none: it asks how far such a one is."""


@dataclass(frozen=True, slots=True)
class Replicated:
    """I have the events before this one."""

    reads: ClassVar = ("{topic}", "s{stream}", "before {next}")

    topic: Topic
    stream: Stream
    next: Annotated[int, Field("Q", SEQ, "the first event that it does not have")]


@dataclass(frozen=True, slots=True)
class Sibling:
    """Another child of the sender's."""

    reads: ClassVar = ("{id}",)

    id: Annotated[int, Field("K", "", "the child's id", columns=("key",))]
    address: Annotated[int, Field("I", ADDRESS, "where it listens")]
    delay_us: Annotated[int, Field("I", "us", "from it to the sender, one way")]


@dataclass(frozen=True, slots=True)
class Offload:
    """I have too many children, and you are none any more: join one of these (2002, IV.E)."""

    reads: ClassVar = ("{topic}", "{siblings}")

    topic: Topic
    siblings: Annotated[tuple[Sibling, ...], Tail("rows", "the children table", Sibling)]


@dataclass(frozen=True, slots=True)
class JoinAt:
    """I am not needed between you and this node: join there (2002, IV.F; draft of 2001, 3.4.2)."""

    reads: ClassVar = ("{topic}",)

    topic: Topic
    address: Address
    hops: Annotated[int, Field("B", "nodes", "from the receiver to there, on the way to the topic's key")]


@dataclass(frozen=True, slots=True)
class Grow:
    """I have too many children: be my child, and take this one (draft of 2001, 3.4.1)."""

    reads: ClassVar = ("{topic}",)

    topic: Topic
    message: Annotated[Any, Tail("message", "the join that came by way of the receiver")]


@dataclass(frozen=True, slots=True)
class Rejoin:
    """I have too many children, and you are none any more: join anew (draft of 2001, 3.4.1)."""

    reads: ClassVar = ("{topic}",)

    topic: Topic
    is_detour: Annotated[int, Field("B", "", "1: by way of another node than the sender")]


@dataclass(frozen=True, slots=True)
class Shrink:
    """I have few children: could you take them (draft of 2001, 3.4.2)? Answered by SHRINK_ANSWER."""

    reads: ClassVar = ("{topic}", "{children}")

    topic: Topic
    is_member: Annotated[int, Field("B", "", "1: the sender remains your child")]
    children: Annotated[tuple[NodeHandle, ...], Tail("rows", "the children table", NodeHandle)]


@dataclass(frozen=True, slots=True)
class ShrinkAnswer:
    """Whether I take them."""

    reads: ClassVar = ("{topic}", "accepted {is_accepted?}")

    topic: Topic
    is_accepted: Annotated[int, Field("B", "", "1: let them join here")]
    hops: Annotated[int, Field("B", "nodes", "from the receiver to here, on the way to the topic's key")]


class Right(Values):
    """What somebody may do with a topic."""

    CREATE = 0, "say who may do what"
    SUBSCRIBE = 1, "be a member"
    PUBLISH = 2, "publish"


@dataclass(frozen=True, slots=True)
class Grant:
    """Who may do something with a topic."""

    right: Annotated[int, Field("B", "", "what", Right)]
    holder: Annotated[int, Field("K", "", "SHA-1 of the credentials", columns=())]


@dataclass(frozen=True, slots=True)
class Create:
    """A topic and who may do what: routed to its root, sent to its replicas and down the tree (2002, III.A).

    What is granted to nobody in particular all may do.
    """

    reads: ClassVar = ("{topic}", "version {version}")

    topic: Topic
    address: Address
    credentials: Credentials
    version: Annotated[int, Field("I", "", "of the grants; a later one stands")]
    grants: Annotated[tuple[Grant, ...], Tail("rows", "who may do what", Grant)]


@dataclass(frozen=True, slots=True)
class Created:
    """I have these grants; from a root: its replicas have them, too."""

    reads: ClassVar = ("{topic}", "version {version}")

    topic: Topic
    version: Annotated[int, Field("I", "", "of the grants")]


@dataclass(frozen=True, slots=True)
class Denied:
    """Who shows these credentials may not do that."""

    reads: ClassVar = ("{topic}", "{right}")

    topic: Topic
    right: Annotated[int, Field("B", "", "what", Right)]
    credentials: Credentials


SCRIBE_MESSAGES = (
    Join, Adopted, Refused, TreePath, Leave, Multicast, TreeHeartbeat, Refresh, Fetch, FetchBefore, Gone,
    Publish, Published, Replicate, Replicated, Offload, JoinAt, Grow, Rejoin, Shrink, ShrinkAnswer, Create,
    Created, Denied, Fetched,
)  # fmt: skip
FIRST_TYPE = 32  # after Pastry's

OWN_TYPE = 128  # from here on: messages of applications


def codec(*own: type) -> Codec:
    """Of Pastry's and Scribe's messages, and of those that an application has beside them."""
    return Codec(
        [
            *pastry_layouts(),
            *(Layout(message, FIRST_TYPE + number) for number, message in enumerate(SCRIBE_MESSAGES)),
            *(Layout(message, OWN_TYPE + number) for number, message in enumerate(own)),
        ]
    )


CODEC = codec()
