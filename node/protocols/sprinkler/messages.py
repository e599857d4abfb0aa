"""Sprinkler's messages: each declared once, as a table of fields, and the codec built from them.

HELLO identifies the sender, REFUSED reports an error. EVENTS and SPARSE_EVENTS carry events; PUBLISH and
PUBLISHED are the client interface (2.1). ADVERTISEMENT, PATHS, SUBSCRIBE and UNSUBSCRIBE belong to the
proxy-level protocol (3.1), VIEW, NOTIFY, REQUEST and ANSWERED to the region-level protocol (3.2), PUBLICATION
to STATUS and WHOLE to the replicated proxy (3.3).

Many events of one stream travel in one message (paper 4: "batching is extensively used"): EVENTS with
consecutive sequence numbers, SPARSE_EVENTS with collected events between them. The upper bits of a sequence
number are the epoch of its stream (`node.core.epochs`); EVENTS of kind EPOCH mark the beginning of one.
"""

import struct
from dataclasses import dataclass
from typing import Annotated, ClassVar

from node.core.content.value import value
from node.core.epochs import EPOCH_MAX, first_seq_of_epoch
from node.core.errors import RemoteProtocolError
from node.core.message_layout import (
    SEQ,
    Codec,
    Field,
    NamedValues,
    NumberList,
    TailField,
    numbered,
)

# --- Values

NAME_LIMIT_BYTES = 255
THE_PROXY = 0xFFFF_FFFF  # in a row of VIEW
U32_BYTES = 4
NUMBER_MAX = 1 << 50  # of requests and configurations: three years at 10 million a second


class Role(NamedValues):
    """The sender's role, in HELLO."""

    PROXY = 0
    DRIVER = 1
    CLIENT = 2
    CONFIGURATION = 3, "the configuration service of a region (3.3)"


class EventKind(NamedValues):
    """The type of an event (paper 2.1). A tombstone represents `count` collected events and has no bytes."""

    DATA = 0
    GC = 1
    TOMBSTONE = 2
    EPOCH = 3, "no event: the stream continues with the first event of the epoch in the argument"


class Predicate(NamedValues):
    """Which earlier events a garbage collection event collects (paper 3.4, 7)."""

    NONE = 0
    BEFORE = 1, "sequence numbers less than the argument"
    LAST = 2, "sequence numbers less than the event's own minus the argument: only the last N stay"
    OLDER_THAN = 3, "published more than the argument, in microseconds, before the event itself"
    SAME_KEY = 4, "events with the same key: the first bytes of an event; the argument is their number"


class Standing(NamedValues):
    """A replica's role in a configuration."""

    MEMBER = 0
    JOINING = 1, "beyond the tail, catching up"


class DiskState(NamedValues):
    """State of a durable replica's disk; a replica without one counts as working."""

    WORKS = 0
    FULL = 1, "the disk accepts nothing, so the replica acknowledges nothing"


class Refusal(NamedValues):
    """Reason of a refusal."""

    MALFORMED = 1, "the connection is closed afterwards"
    NOT_OWNER = 2
    UNKNOWN_STREAM = 3
    HISTORY_FULL = 4
    UNEXPECTED = 5, "a message that this role does not accept, or before HELLO"
    NOT_HEAD = 6, "of the chain: the configuration service knows the head"
    UNDOES = 7, "a garbage collection event that would undo an earlier one (2.1)"
    STALE = 8, "it belongs to another configuration"


FINAL_REFUSALS = frozenset({Refusal.NOT_OWNER, Refusal.UNKNOWN_STREAM, Refusal.UNDOES})
"""Codes of refused publications that must not be repeated."""


def check_number(name: str, number: int) -> None:
    """Raise RemoteProtocolError for a number of requests or configurations beyond the limit."""
    if number > NUMBER_MAX:
        raise RemoteProtocolError(f"{name} with number {number}")


# --- Fields of several messages

SIZES = NumberList("sizes", "count", "bytes", "of each event", if_zero="event_bytes")
REACHES = NumberList(
    "reaches",
    "count",
    "events",
    "of each event: 1 plus the number of collected events since the previous event",
    column="covered",
)


@value
class Counter:
    """A row of ADVERTISEMENT, NOTIFY, FOLLOW and STORED: cnt of one stream."""

    reads: ClassVar = ("s{stream} {cnt}",)
    column: ClassVar = "advertised"

    stream: Annotated[int, Field("I", "", "the stream")]
    cnt: Annotated[int, Field("Q", SEQ, "sequence number of the last event that the sender has")]


Stream = Annotated[int, Field("I", "", "the stream")]
PlainKind = Annotated[int, Field("B", "", "of its events, no tombstones", EventKind)]
Collects = Annotated[int, Field("B", "", "which events they collect", Predicate)]
FirstSeq = Annotated[int, Field("Q", SEQ, "sequence number of its first event")]
EventCount = Annotated[int, Field("I", "events", "events in the batch")]
EventBytes = Annotated[int, Field("I", "bytes", "size of each event; 0: sizes differ and precede the events")]
Argument = Annotated[int, Field("Q", "", "of the predicate: events, microseconds or bytes")]
StampUs = Annotated[
    int, Field("Q", "us", "when the head accepted it, by the stream's clock; never decreases")
]
Payload = Annotated[
    bytes | memoryview, TailField("bytes", "bytes of the events, concatenated", numbers=(SIZES,))
]
Counters = Annotated[tuple[Counter, ...], TailField("rows", "cnt of each stream", Counter)]
Grown = Annotated[tuple[Counter, ...], TailField("rows", "streams that have grown", Counter)]


# --- Of every connection


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


# --- Batches, and the client interface (2.1)


@value
class Events:
    """A batch: `count` events of one stream with consecutive sequence numbers from first_seq on.

    An event's identity (type, stream, seq, range) follows: range is 1 except for a tombstone, whose seq is
    its last covered event, first_seq + count - 1, and whose range is count (paper 3.1). All events of a batch
    of garbage collection events have the same predicate. A batch of kind EPOCH has no events and covers all
    sequence numbers from first_seq to the beginning of its epoch: a process without these events will never
    receive them.
    """

    reads: ClassVar = ("s{stream}", "[{first_seq}..{first_seq+count}]", "{kind?}")

    kind: Annotated[int, Field("B", "", "of its events", EventKind)]
    predicate: Collects
    stream: Stream
    first_seq: Annotated[int, Field("Q", SEQ, "sequence number of the first event")]
    count: Annotated[
        int,
        Field(
            "I",
            "events",
            "events in the batch; range of a tombstone; 0 for an epoch",
            columns=("count", "covered"),
        ),
    ]
    event_bytes: EventBytes
    argument: Annotated[
        int, Field("Q", "", "of the predicate: events, microseconds or bytes; the epoch that begins")
    ]
    time_us: StampUs
    payload: Payload

    def check(self) -> None:
        """Raise RemoteProtocolError for an inconsistent batch."""
        if self.kind > EventKind.EPOCH:
            raise RemoteProtocolError(f"EVENTS of unknown kind {self.kind}")
        check_predicate("EVENTS", self.kind, self.predicate)
        if self.kind == EventKind.EPOCH:
            self._check_epoch()
            return
        if self.first_seq < 1 or self.count < 1:
            raise RemoteProtocolError(f"EVENTS with first_seq {self.first_seq} and count {self.count}")
        if self.kind == EventKind.TOMBSTONE:
            if len(self.payload):
                raise RemoteProtocolError("EVENTS: a tombstone with a payload")
            return
        check_payload("EVENTS", self.count, self.event_bytes, self.payload)

    def _check_epoch(self) -> None:
        if self.count or len(self.payload):
            raise RemoteProtocolError("EVENTS: the beginning of an epoch with events")
        if self.argument > EPOCH_MAX or not 1 <= self.first_seq < first_seq_of_epoch(self.argument):
            raise RemoteProtocolError(f"EVENTS: epoch {self.argument} cannot follow {self.first_seq - 1}")


@value
class SparseEvents:
    """A batch from which events were collected: each event implies a tombstone for those collected before it.

    The batch covers first_seq to first_seq + the sum of the reaches - 1.
    """

    reads: ClassVar = ("s{stream}", "[{first_seq}..{first_seq+reaches}]", "{kind?}", "{count} left")

    kind: PlainKind
    predicate: Collects
    stream: Stream
    first_seq: Annotated[int, Field("Q", SEQ, "the first covered sequence number")]
    count: EventCount
    event_bytes: Annotated[
        int, Field("I", "bytes", "size of each event; 0: sizes differ and follow the reaches")
    ]
    argument: Argument
    time_us: StampUs
    payload: Annotated[
        bytes | memoryview, TailField("bytes", "bytes of the events, concatenated", numbers=(REACHES, SIZES))
    ]

    def check(self) -> None:
        """Raise RemoteProtocolError for an inconsistent batch."""
        if self.kind > EventKind.GC:
            raise RemoteProtocolError(f"SPARSE_EVENTS of kind {self.kind}")
        check_predicate("SPARSE_EVENTS", self.kind, self.predicate)
        if self.first_seq < 1 or self.count < 1:
            raise RemoteProtocolError(f"SPARSE_EVENTS with first_seq {self.first_seq} and count {self.count}")
        if len(self.payload) < U32_BYTES * self.count:
            raise RemoteProtocolError(
                f"SPARSE_EVENTS with {len(self.payload)} bytes for {self.count} reaches"
            )
        if 0 in event_sizes(self.count, self.payload):
            raise RemoteProtocolError("SPARSE_EVENTS: an event with reach 0")
        rest = memoryview(self.payload)[U32_BYTES * self.count :]
        check_payload("SPARSE_EVENTS", self.count, self.event_bytes, rest)


@value
class Publish:
    """A batch of events to publish, with its publisher's numbers, which identify a repetition."""

    reads: ClassVar = ("s{stream}", "requests [{first_request}..{first_request+count}]", "{kind?}")

    kind: PlainKind
    predicate: Collects
    stream: Stream
    first_request: Annotated[
        int,
        Field("Q", "events", "the publisher's number of the first event, from 1 on", columns=("request",)),
    ]
    count: EventCount
    event_bytes: EventBytes
    argument: Argument
    payload: Payload

    def check(self) -> None:
        """Raise RemoteProtocolError for an inconsistent batch."""
        if self.kind > EventKind.GC:
            raise RemoteProtocolError(f"PUBLISH of kind {self.kind}")
        check_predicate("PUBLISH", self.kind, self.predicate)
        if self.first_request < 1 or self.count < 1:
            raise RemoteProtocolError(
                f"PUBLISH with first_request {self.first_request} and count {self.count}"
            )
        check_number("PUBLISH", self.first_request)
        check_payload("PUBLISH", self.count, self.event_bytes, self.payload)


@value
class Published:
    """The batch with this first_request is published: its events are numbered from first_seq on."""

    reads: ClassVar = ("s{stream}", "[{first_seq}..{first_seq+count}]", "request {first_request}")

    stream: Stream
    first_request: Annotated[int, Field("Q", "events", "of the PUBLISH", columns=("request",))]
    first_seq: FirstSeq
    count: EventCount


def check_predicate(name: str, kind: int, predicate: int) -> None:
    """Raise RemoteProtocolError unless garbage collection events, and only those, have a known predicate."""
    if predicate > Predicate.SAME_KEY or (kind == EventKind.GC) != (predicate != Predicate.NONE):
        raise RemoteProtocolError(f"{name} of kind {kind} with predicate {predicate}")


def check_payload(name: str, count: int, event_bytes: int, payload: bytes | memoryview) -> None:
    """Raise RemoteProtocolError unless the payload is exactly `count` events long."""
    if event_bytes:
        wanted = count * event_bytes
    else:
        if len(payload) < U32_BYTES * count:
            raise RemoteProtocolError(f"{name} with {len(payload)} bytes for the sizes of {count} events")
        wanted = U32_BYTES * count + sum(event_sizes(count, payload))
    if len(payload) != wanted:
        raise RemoteProtocolError(f"{name} with {len(payload)} bytes of payload instead of {wanted}")


def event_sizes(count: int, payload: bytes | memoryview) -> tuple[int, ...]:
    """Return the sizes in bytes that precede a batch of events of mixed size."""
    return struct.unpack_from(f">{count}I", payload)


# --- Between proxies (3.1) and within a region (3.2)


@value
class Advertisement:
    """The sender's progress on each stream, and its heartbeat (paper 3.1).

    A stream that has had several epochs has several rows, one for the end of each former epoch.
    """

    reads: ClassVar = ("{counters}",)

    counters: Counters


@dataclass(frozen=True, slots=True)
class Hop:
    """A row of PATHS: one region of one stream's path."""

    reads: ClassVar = ("s{stream} {region}",)
    column: ClassVar = "hops"

    stream: Stream
    region: Annotated[
        int, Field("I", "", "a region, by its position among the run's regions, sorted by name")
    ]


@dataclass(frozen=True, slots=True)
class Paths:
    """The regions through which the sender's region gets each stream, from itself to the owner.

    Sent only when a connection opens and when a path changes, at most 20 times in an advertisement period.
    A stream without hops has no path. The paper has no such message; docs/subscription-rule.md gives the
    reason for it.
    """

    reads: ClassVar = ("{hops}",)

    hops: Annotated[tuple[Hop, ...], TailField("rows", "by stream, in the order of the path", Hop)]

    def check(self) -> None:
        """Raise RemoteProtocolError for a path that leads through a region twice."""
        if len(dict.fromkeys(self.hops)) != len(self.hops):
            raise RemoteProtocolError("PATHS with a region twice in a path")


@dataclass(frozen=True, slots=True)
class Subscribe:
    """A request for this stream's events after cnt, and for later ones (paper 3.1). cnt is the subscriber's
    own.
    """

    reads: ClassVar = ("s{stream}", "after {cnt}")

    stream: Stream
    cnt: Annotated[int, Field("Q", SEQ, "the subscriber's own cnt")]


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """A request to stop sending this stream (paper 3.1)."""

    reads: ClassVar = ("s{stream}",)

    stream: Stream


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A row of VIEW: a neighbour with its address, because clients may join at any time."""

    reads: ClassVar = ("{member}",)
    column: ClassVar = "members"

    member: Annotated[int, Field("I", "", "index among its region's clients; 4294967295: the region's proxy")]
    address: Annotated[int, Field("I", "", "its IPv4 address; 0 for the proxy, which all nodes know")]


@dataclass(frozen=True, slots=True)
class View:
    """The sender's view of its region: gossip of the membership protocol (3.2)."""

    reads: ClassVar = ("{neighbours}",)

    neighbours: Annotated[
        tuple[Neighbour, ...], TailField("rows", "the sender, then its neighbours", Neighbour)
    ]


@value
class Notify:
    """The sender has these streams up to cnt (3.2)."""

    reads: ClassVar = ("{counters}",)

    counters: Grown


@value
class Request:
    """A request for this stream's events next to cnt (3.2). Answered by EVENTS, SPARSE_EVENTS and one
    ANSWERED.
    """

    reads: ClassVar = ("s{stream}", "[{next}..{cnt}]")

    stream: Stream
    next: Annotated[int, Field("Q", SEQ, "the first requested event")]
    cnt: Annotated[int, Field("Q", SEQ, "the last requested event")]

    def check(self) -> None:
        """Raise RemoteProtocolError for an invalid interval."""
        if not 0 < self.next <= self.cnt:
            raise RemoteProtocolError(f"REQUEST for {self.next} to {self.cnt}")


@value
class Answered:
    """The sender sends no more events for a REQUEST (3.2: EVENTS carries cnt, too)."""

    reads: ClassVar = ("s{stream}", "[{next}..{last}]", "of {cnt}")

    stream: Stream
    next: Annotated[int, Field("Q", SEQ, "next of the REQUEST")]
    last: Annotated[int, Field("Q", SEQ, "the last event of the answer: cnt of the REQUEST, or less")]
    cnt: Annotated[int, Field("Q", SEQ, "the sender's own cnt")]


# --- Of the replicated proxy (3.3)


@value
class Publication:
    """The publisher of the events from first_seq on; passed down the chain, so that a retry is recognised."""

    reads: ClassVar = (
        "s{stream}",
        "[{first_seq}..{first_seq+count}]",
        "request {first_request}",
        "by {name}",
    )

    stream: Stream
    first_seq: FirstSeq
    count: EventCount
    first_request: Annotated[int, Field("Q", "events", "of its PUBLISH", columns=("request",))]
    incarnation: Annotated[int, Field("Q", "", "of its publisher")]
    name: Annotated[str, TailField("text", "its publisher")]


@dataclass(frozen=True, slots=True)
class Follow:
    """The sender follows the receiver in this configuration, has these counters, and requests what follows.

    The predecessor answers with its own FOLLOW. Its later messages along the chain belong to this
    configuration; earlier ones are ignored.
    """

    reads: ClassVar = ("configuration {configuration}", "{counters}")

    configuration: Annotated[int, Field("Q", "", "number of the configuration")]
    counters: Counters


@value
class Stored:
    """All replicas from the sender to the tail have these streams up to cnt."""

    reads: ClassVar = ("{counters}",)

    counters: Grown


@dataclass(frozen=True, slots=True)
class Token:
    """The receiver has everything: it is the tail from now on (3.3)."""

    reads: ClassVar = ("configuration {configuration}",)

    configuration: Annotated[int, Field("Q", "", "in which the sender was the tail")]


@dataclass(frozen=True, slots=True)
class Replica:
    """A row of CONFIGURATION."""

    reads: ClassVar = ("{index}", "{standing?}")
    column: ClassVar = "members"

    index: Annotated[int, Field("I", "", "index among its region's proxies")]
    standing: Annotated[int, Field("B", "", "role in the chain", Standing)]
    incarnation: Annotated[int, Field("Q", "", "of the intended process; 0: any")]


@dataclass(frozen=True, slots=True)
class Configuration:
    """The chain of the sender's region from head to tail, and the replica joining behind it (3.3)."""

    reads: ClassVar = ("{number}:", "{replicas}")

    number: Annotated[int, Field("Q", "", "increases with each configuration", columns=("configuration",))]
    began: Annotated[int, Field("Q", "", "configuration since which a member has all; earlier state is void")]
    replicas: Annotated[
        tuple[Replica, ...], TailField("rows", "members from head to tail, then the joining replica", Replica)
    ]

    def check(self) -> None:
        """Raise RemoteProtocolError for an invalid chain."""
        check_number("CONFIGURATION", self.number)
        indices = [replica.index for replica in self.replicas]
        if len(dict.fromkeys(indices)) != len(indices):
            raise RemoteProtocolError(f"CONFIGURATION {self.number} with a replica listed twice")
        if any(replica.standing != Standing.MEMBER for replica in self.replicas[:-1]):
            raise RemoteProtocolError(f"CONFIGURATION {self.number} with members after the joining replica")
        if any(replica.standing > Standing.JOINING for replica in self.replicas):
            raise RemoteProtocolError(f"CONFIGURATION {self.number} with an unknown standing")


@dataclass(frozen=True, slots=True)
class Joined:
    """The sender has the token and requests membership (3.3)."""

    reads: ClassVar = ("configuration {configuration}",)

    configuration: Annotated[int, Field("Q", "", "in which the token was passed")]


@dataclass(frozen=True, slots=True)
class Whole:
    """The receiver has, also on disk, all events that the region's streams had when they were recovered."""

    reads: ClassVar = ("configuration {configuration}",)

    configuration: Annotated[int, Field("Q", "", "in which that holds")]


@dataclass(frozen=True, slots=True)
class Status:
    """The sender's state, for its configuration service: sent first, on every CONFIGURATION, and when the
    disk becomes full or works again (3.3).
    """

    reads: ClassVar = ("configuration {configuration}", "committed {cnt}")

    configuration: Annotated[int, Field("Q", "", "the last configuration of this state; 0: none")]
    cnt: Annotated[int, Field("Q", SEQ, "sum of the committed counters of the region's own streams")]
    disk: Annotated[int, Field("B", "", "whether more can be stored", DiskState)]

    @property
    def is_full(self) -> bool:
        """Whether nothing more can be stored."""
        return self.disk == DiskState.FULL


SPRINKLER_MESSAGES = (
    Hello, Advertisement, Subscribe, Unsubscribe, Events, Publish, Published, Refused, SparseEvents, View,
    Notify, Request, Answered, Publication, Follow, Stored, Token, Configuration, Joined, Status, Paths,
    Whole,
)  # fmt: skip
CODEC = Codec(numbered(SPRINKLER_MESSAGES))
