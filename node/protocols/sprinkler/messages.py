"""Sprinkler's messages: each declared once, as a table of fields, and the codec built from them.

HELLO identifies the sender, REFUSED reports an error. ADVERTISEMENT, PATHS, SUBSCRIBE and UNSUBSCRIBE belong
to the proxy-level protocol (3.1), VIEW, NOTIFY, REQUEST and ANSWERED to the region-level protocol (3.2; both
in `stream_messages`), PUBLICATION to STATUS and WHOLE to the replicated proxy (3.3, `chain_messages`). EVENTS
and SPARSE_EVENTS carry events, PUBLISH and PUBLISHED are the client interface (2.1, `batch_messages`). Their
numeric values are in `message_values`. All are imported from here.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from node.core.errors import RemoteProtocolError
from node.core.message_layout import Codec, Field, MessageLayout, TailField
from node.protocols.sprinkler.batch_messages import (
    Events,
    Publish,
    Published,
    SparseEvents,
    event_sizes,
)
from node.protocols.sprinkler.chain.chain_messages import (
    Configuration,
    Follow,
    Joined,
    Publication,
    Replica,
    Status,
    Stored,
    Token,
    Whole,
)
from node.protocols.sprinkler.message_values import (
    FINAL_REFUSALS,
    NAME_LIMIT_BYTES,
    NUMBER_MAX,
    THE_PROXY,
    U32_BYTES,
    DiskState,
    EventKind,
    Predicate,
    Refusal,
    Role,
    Standing,
    check_number,
)
from node.protocols.sprinkler.stream_messages import (
    Advertisement,
    Answered,
    Counter,
    Hop,
    Neighbour,
    Notify,
    Paths,
    Request,
    Subscribe,
    Unsubscribe,
    View,
)

__all__ = [
    "CODEC",
    "FINAL_REFUSALS",
    "NUMBER_MAX",
    "THE_PROXY",
    "U32_BYTES",
    "Advertisement",
    "Answered",
    "Configuration",
    "Counter",
    "DiskState",
    "EventKind",
    "Events",
    "Follow",
    "Hello",
    "Hop",
    "Joined",
    "Neighbour",
    "Notify",
    "Paths",
    "Predicate",
    "Publication",
    "Publish",
    "Published",
    "Refusal",
    "Refused",
    "Replica",
    "Request",
    "Role",
    "SparseEvents",
    "Standing",
    "Status",
    "Stored",
    "Subscribe",
    "Token",
    "Unsubscribe",
    "View",
    "Whole",
    "check_number",
    "event_sizes",
]


@dataclass(frozen=True, slots=True)
class Hello:
    """First message of each side of a connection."""

    reads: ClassVar = ("{name}", "{role}")

    role: Annotated[int, Field("B", "", "the sender's role", Role)]
    incarnation: Annotated[int, Field("Q", "", "differs for each start of the process")]
    name: Annotated[str, TailField("text", "the process, such as r2/proxy-0")]

    def check(self) -> None:
        """Raise RemoteProtocolError for an unknown role or an invalid length of the name."""
        if self.role > Role.CONFIGURATION:
            raise RemoteProtocolError(f"HELLO with unknown role {self.role}")
        if not 0 < len(self.name) <= NAME_LIMIT_BYTES:
            raise RemoteProtocolError(f"HELLO with a name of {len(self.name)} characters")


@dataclass(frozen=True, slots=True)
class Refused:
    """A message of the peer was not accepted."""

    reads: ClassVar = ("{code}", "s{stream}", "request {request?}", "{reason}")

    code: Annotated[int, Field("H", "", "the reason", Refusal)]
    stream: Annotated[int, Field("I", "", "the stream concerned, or 0")]
    request: Annotated[int, Field("Q", "events", "first_request of a refused PUBLISH, or 0")]
    reason: Annotated[str, TailField("text", "for users")]


CODEC = Codec(
    (
        MessageLayout(Hello, 1),
        MessageLayout(Advertisement, 2),
        MessageLayout(Subscribe, 3),
        MessageLayout(Unsubscribe, 4),
        MessageLayout(Events, 5),
        MessageLayout(Publish, 6),
        MessageLayout(Published, 7),
        MessageLayout(Refused, 8),
        MessageLayout(SparseEvents, 9),
        MessageLayout(View, 10),
        MessageLayout(Notify, 11),
        MessageLayout(Request, 12),
        MessageLayout(Answered, 13),
        MessageLayout(Publication, 14),
        MessageLayout(Follow, 15),
        MessageLayout(Stored, 16),
        MessageLayout(Token, 17),
        MessageLayout(Configuration, 18),
        MessageLayout(Joined, 19),
        MessageLayout(Status, 20),
        MessageLayout(Paths, 21),
        MessageLayout(Whole, 22),
    )
)
