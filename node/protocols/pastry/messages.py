"""Messages between Pastry nodes. The sender's address is the connection's; its id stands in the message.

Pastry's own (section 2 of both Scribe papers) are ROUTE, JOIN_RING, JOIN_ROWS and JOIN_LEAVES. Those of
MSPastry (Castro, Costa, Rowstron: Performance and Dependability of Structured Peer-to-Peer Overlays, DSN
2004) are LEAF_PROBE and its reply, by which leaf sets agree (figure 2). How nodes are reached is
`node.protocols.reachability`'s, as are the messages for that.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from node.core.message_layout import ADDRESS, Field, Layout, Tail, Values
from node.protocols.reachability.messages import Ping, Pong, Relay, Routed, Unheard
from node.protocols.reachability.nodes import NodeHandle


class Phase(Values):
    """How a message gets to the node that is closest to its key."""

    PREFIX = 0, "each node shares more digits with the key, or is closer to it"
    LEAF_SET = 1, "a leaf set covered the key: each node is closer to it"


class Belief(Values):
    """What the sender takes a node of its list for."""

    ALIVE = 0, "a member of its leaf set"
    FAILED = 1, "gave no answer to its probes"


@dataclass(frozen=True, slots=True)
class Believed:
    """A node of a leaf set, or one that was in it."""

    reads: ClassVar = ("{id} {belief}",)

    id: Annotated[int, Field("K", "", "the node's id", columns=("key",))]
    address: Annotated[int, Field("I", ADDRESS, "where it listens")]
    belief: Annotated[int, Field("B", "", "alive or failed", Belief)]


@dataclass(frozen=True, slots=True)
class Route:
    """To the live node whose id is numerically closest to the key."""

    reads: ClassVar = ("{key}", "hops {hops}")

    key: Annotated[int, Field("K", "", "the key")]
    number: Annotated[int, Field("I", "", "of the sender's; 0: no ROUTED is expected")]
    hops: Annotated[int, Field("B", "nodes", "that passed it on")]
    phase: Annotated[int, Field("B", "", "how it was passed on last", Phase)]
    message: Annotated[Any, Tail("message", "for the application of the node where the key leads")]


@dataclass(frozen=True, slots=True)
class JoinRing:
    """Routed to the joining node's own id; each node on the way sends it rows of its routing table."""

    reads: ClassVar = ("{id}",)

    id: Annotated[int, Field("K", "", "the joining node's id", columns=("key",))]
    address: Annotated[int, Field("I", ADDRESS, "where it listens")]
    rows: Annotated[int, Field("B", "rows", "that the joining node was sent so far")]


@dataclass(frozen=True, slots=True)
class JoinRows:
    """Rows of a routing table, from a node on a join's way."""

    reads: ClassVar = ("{id}", "{nodes}")

    id: Annotated[int, Field("K", "", "the sender's id", columns=("key",))]
    nodes: Annotated[tuple[NodeHandle, ...], Tail("rows", "the rows' nodes", NodeHandle)]


@dataclass(frozen=True, slots=True)
class JoinLeaves:
    """The leaf set of the node that is closest to the joining one: the join's end."""

    reads: ClassVar = ("{id}", "{nodes}")

    id: Annotated[int, Field("K", "", "the sender's id", columns=("key",))]
    nodes: Annotated[tuple[NodeHandle, ...], Tail("rows", "its leaf set", NodeHandle)]


@dataclass(frozen=True, slots=True)
class LeafProbe:
    """Are you alive, and who are our neighbours? Answered by LEAF_ANSWER."""

    reads: ClassVar = ("{id}",)

    id: Annotated[int, Field("K", "", "the sender's id", columns=("key",))]
    number: Annotated[int, Field("I", "", "of the probe, and of its answer")]
    nodes: Annotated[tuple[Believed, ...], Tail("rows", "its leaf set, and who failed", Believed)]


@dataclass(frozen=True, slots=True)
class LeafAnswer(LeafProbe):
    """I am, and these are mine."""


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """I live: to the left neighbour on the ring."""

    id: Annotated[int, Field("K", "", "the sender's id", columns=("key",))]


@dataclass(frozen=True, slots=True)
class Goodbye:
    """I go, and answer no more: to all that a node knows."""

    id: Annotated[int, Field("K", "", "the sender's id", columns=("key",))]


PASTRY_MESSAGES = (
    Route, JoinRing, JoinRows, JoinLeaves, LeafProbe, LeafAnswer, Ping, Pong, Heartbeat, Relay, Routed,
    Unheard, Goodbye,
)  # fmt: skip


def pastry_layouts(first: int = 1) -> list[Layout]:
    """Of all messages, numbered from `first` on, for the codec of the system that stands on Pastry."""
    return [Layout(message, first + number) for number, message in enumerate(PASTRY_MESSAGES)]
