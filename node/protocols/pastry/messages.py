"""Messages between Pastry nodes. The sender's address is the connection's; its id is in the message.

Pastry's own messages (section 2 of both Scribe papers) are ROUTE, JOIN_RING, JOIN_ROWS and JOIN_LEAVES;
AUTHORIZED_JOIN and ROW_REQUEST are sent only if parameters request them.
MSPastry's (Castro, Costa, Rowstron: Performance and Dependability of Structured Peer-to-Peer Overlays, DSN
2004) are LEAF_PROBE and its answer, by which leaf sets agree (figure 2). Messages about reachability are in
`node.protocols.reachability`.
"""

from dataclasses import dataclass
from typing import Annotated, Any, ClassVar

from node.core.message_layout import ADDRESS, Field, NamedValues, TailField
from node.protocols.reachability.messages import Ping, Pong, Relay, Routed, Unheard
from node.protocols.reachability.nodes import NodeHandle


class RoutePhase(NamedValues):
    """How a message is routed to the node that is closest to its key."""

    PREFIX = 0, "each node shares more digits with the key, or is closer to it"
    LEAF_SET = 1, "a leaf set covered the key: each node is closer to it"


class NodeBelief(NamedValues):
    """State of a node in the sender's view."""

    ALIVE = 0, "a member of its leaf set"
    FAILED = 1, "did not answer the sender's probes"


@dataclass(frozen=True, slots=True)
class Believed:
    """A current or former member of a leaf set."""

    reads: ClassVar = ("{id} {belief}",)

    id: Annotated[int, Field("K", "", "the node's id", columns=("key",))]
    address: Annotated[int, Field("I", ADDRESS, "listen address of the node")]
    belief: Annotated[int, Field("B", "", "alive or failed", NodeBelief)]


@dataclass(frozen=True, slots=True)
class Route:
    """A message for the live node whose id is numerically closest to the key."""

    reads: ClassVar = ("{key}", "hops {hops}")

    key: Annotated[int, Field("K", "", "the key")]
    number: Annotated[int, Field("I", "", "sender's number for ROUTED; 0: no ROUTED is expected")]
    hops: Annotated[int, Field("B", "nodes", "that forwarded it")]
    phase: Annotated[int, Field("B", "", "of the last hop", RoutePhase)]
    message: Annotated[Any, TailField("message", "for the application of the closest node")]


@dataclass(frozen=True, slots=True)
class JoinRing:
    """A join, routed to the joining node's own id; nodes on the way send it rows of their routing tables."""

    reads: ClassVar = ("{id}",)

    id: Annotated[int, Field("K", "", "the joining node's id", columns=("key",))]
    address: Annotated[int, Field("I", ADDRESS, "listen address of the node")]
    rows: Annotated[int, Field("B", "rows", "sent to the joining node so far")]


@dataclass(frozen=True, slots=True)
class AuthorizedJoin(JoinRing):
    """A join with credentials, for a ring that requires them (`pastryInit`, 2002, II.C)."""

    credentials: Annotated[int, Field("K", "", "SHA-1 of the credentials", columns=())]


@dataclass(frozen=True, slots=True)
class RowRequest:
    """A request for a row of the routing table, to replace a failed node. Answered by JOIN_ROWS."""

    row: Annotated[int, Field("B", "", "number of the row: of digits that sender and receiver share")]


@dataclass(frozen=True, slots=True)
class JoinRows:
    """Rows of a routing table, from a node on the way of a join or as the answer to ROW_REQUEST."""

    reads: ClassVar = ("{id}", "{nodes}")

    id: Annotated[int, Field("K", "", "the sender's id", columns=("key",))]
    nodes: Annotated[tuple[NodeHandle, ...], TailField("rows", "nodes of the rows", NodeHandle)]


@dataclass(frozen=True, slots=True)
class JoinLeaves:
    """The leaf set of the node that is closest to the joining one; it ends the join."""

    reads: ClassVar = ("{id}", "{nodes}")

    id: Annotated[int, Field("K", "", "the sender's id", columns=("key",))]
    nodes: Annotated[tuple[NodeHandle, ...], TailField("rows", "the sender's leaf set", NodeHandle)]


@dataclass(frozen=True, slots=True)
class LeafProbe:
    """A probe with the sender's leaf set. Answered by LEAF_ANSWER."""

    reads: ClassVar = ("{id}",)

    id: Annotated[int, Field("K", "", "the sender's id", columns=("key",))]
    number: Annotated[int, Field("I", "", "of the probe, repeated in its answer")]
    nodes: Annotated[
        tuple[Believed, ...], TailField("rows", "the sender's leaf set, and failed nodes", Believed)
    ]


@dataclass(frozen=True, slots=True)
class LeafAnswer(LeafProbe):
    """The answer to LEAF_PROBE, with the sender's leaf set."""


@dataclass(frozen=True, slots=True)
class SenderMessage:
    """Any message that has only the sender's id."""

    id: Annotated[int, Field("K", "", "the sender's id", columns=("key",))]


@dataclass(frozen=True, slots=True)
class Heartbeat(SenderMessage):
    """A sign of life to the left neighbour on the ring."""


@dataclass(frozen=True, slots=True)
class Goodbye(SenderMessage):
    """The sender stops and will not answer; sent to all nodes that it knows."""


PASTRY_MESSAGES = (
    Route, JoinRing, JoinRows, JoinLeaves, LeafProbe, LeafAnswer, Ping, Pong, Heartbeat, Relay, Routed,
    Unheard, Goodbye, AuthorizedJoin, RowRequest,
)  # fmt: skip
