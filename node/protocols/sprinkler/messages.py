"""Sprinkler's messages: each declared once, as a table of fields, and the codec made from them.

HELLO says who speaks, REFUSED says what was wrong. ADVERTISEMENT, PATHS, SUBSCRIBE and UNSUBSCRIBE are those
of the proxy-level protocol (3.1), VIEW, NOTIFY, REQUEST and ANSWERED of the region-level protocol (3.2),
PUBLICATION to STATUS of the replicated proxy (3.3); PUBLISH and PUBLISHED carry the client interface (2.1).
Many events of one stream travel in one message (paper 4: "batching is extensively used"): EVENTS with
consecutive sequence numbers, SPARSE_EVENTS where collected events lie between them. A sequence number's
upper bits are the epoch of its stream (`node.core.epochs`); EVENTS of kind EPOCH say where one begins.
"""

import struct
from dataclasses import dataclass
from typing import Annotated, ClassVar

from node.core.epochs import EPOCH_MAX, SEQ_MAX, first_of
from node.core.errors import RemoteProtocolError
from node.core.layout import SEQ, Codec, Field, Layout, Numbers, Tail, Values

NAME_LIMIT_BYTES = 255
THE_PROXY = 0xFFFF_FFFF  # in a row of VIEW
U32_BYTES = 4
NUMBER_MAX = 1 << 50  # of requests and configurations: three years of 10 million a second


class Role(Values):
    """Who speaks, in HELLO."""

    PROXY = 0
    DRIVER = 1
    CLIENT = 2
    CONFIGURATION = 3, "the configuration service of a region (3.3)"


class Kind(Values):
    """The type of an event (paper 2.1). A tombstone stands for `count` collected events and has no bytes."""

    DATA = 0
    GC = 1
    TOMBSTONE = 2
    EPOCH = 3, "no event: the stream goes on with the first one of the epoch that the argument says"


class Predicate(Values):
    """What a garbage collection event collects, among the events before it (paper 3.4, 7)."""

    NONE = 0
    BEFORE = 1, "sequence numbers less than the argument"
    LAST = 2, "sequence numbers less than the event's own less the argument: only the last N stay"
    OLDER_THAN = 3, "published more than the argument, in microseconds, before the event itself"
    SAME_KEY = 4, "events with the same key: the first bytes of an event, as many as the argument says"


class Standing(Values):
    """A replica's part in a configuration."""

    MEMBER = 0
    JOINING = 1, "beyond the tail, catching up"


class Disk(Values):
    """What the disk of a durable replica does; without one it counts as working."""

    WORKS = 0
    FULL = 1, "it takes nothing, and the replica nothing that others should rely on"


class Refusal(Values):
    """Why something was refused."""

    MALFORMED = 1, "the connection is closed after it"
    NOT_OWNER = 2
    UNKNOWN_STREAM = 3
    HISTORY_FULL = 4
    UNEXPECTED = 5, "a message that this role does not take, or before HELLO"
    NOT_HEAD = 6, "of the chain: the configuration service knows who is"
    UNDOES = 7, "a garbage collection event that would undo an earlier one (2.1)"
    STALE = 8, "it belongs to another configuration"


FINAL_REFUSALS = frozenset({Refusal.NOT_OWNER, Refusal.UNKNOWN_STREAM, Refusal.UNDOES})
"""Of a publication: to repeat it would be no use."""


SIZES = Numbers("sizes", "count", "bytes", "of each event", if_zero="event_bytes")
REACHES = Numbers(
    "reaches", "count", "events", "of each event: 1 and the collected ones since the event before"
)


@dataclass(frozen=True, slots=True)
class Hello:
    """First message of each side of a connection."""

    reads: ClassVar = ("{name}", "{role}")

    role: Annotated[int, Field("B", "", "what the sender is", Role)]
    incarnation: Annotated[int, Field("Q", "", "differs each time that the process starts")]
    name: Annotated[str, Tail("text", "the process, as r2/proxy-0")]

    def check(self) -> None:
        """Raises RemoteProtocolError for an unknown role or a name of no sensible length."""
        if self.role > Role.CONFIGURATION:
            raise RemoteProtocolError(f"HELLO with unknown role {self.role}")
        if not 0 < len(self.name) <= NAME_LIMIT_BYTES:
            raise RemoteProtocolError(f"HELLO with a name of {len(self.name)} characters")


@dataclass(frozen=True, slots=True)
class Counter:
    """A row of ADVERTISEMENT, NOTIFY, FOLLOW and STORED: cnt of one stream."""

    reads: ClassVar = ("s{stream} {cnt}",)

    stream: Annotated[int, Field("I", "", "the stream")]
    cnt: Annotated[int, Field("Q", SEQ, "sequence number of the last event that the sender has")]


@dataclass(frozen=True, slots=True)
class Advertisement:
    """The sender's progress on each stream, and its heartbeat (paper 3.1).

    A stream that has had several epochs stands there several times: where former ones ended, too.
    """

    reads: ClassVar = ("{counters}",)

    counters: Annotated[tuple[Counter, ...], Tail("rows", "cnt of each stream", Counter)]

    def check(self) -> None:
        """Raises RemoteProtocolError for a counter that no stream reaches."""
        for counter in self.counters:
            check_number("ADVERTISEMENT", counter.cnt, SEQ_MAX)


@dataclass(frozen=True, slots=True)
class Hop:
    """A row of PATHS: one region of one stream's path."""

    reads: ClassVar = ("s{stream} {region}",)

    stream: Annotated[int, Field("I", "", "the stream")]
    region: Annotated[
        int, Field("I", "", "a region, by its position among the run's regions, sorted by name")
    ]


@dataclass(frozen=True, slots=True)
class Paths:
    """Through which regions the sender's region gets each stream, from itself to the owner.

    Sent when a connection opens and when a path changes, never otherwise. A stream without hops has no path.
    The paper has no such message; docs/subscription-rule.md says why there is one.
    """

    reads: ClassVar = ("{hops}",)

    hops: Annotated[tuple[Hop, ...], Tail("rows", "by stream, in the order of its path", Hop)]

    def check(self) -> None:
        """Raises RemoteProtocolError for a path that leads through a region twice."""
        if len(dict.fromkeys(self.hops)) != len(self.hops):
            raise RemoteProtocolError("PATHS with a region that stands in a path twice")


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Send me this stream's events after cnt, and go on with it (paper 3.1). cnt is the subscriber's own."""

    reads: ClassVar = ("s{stream}", "after {cnt}")

    stream: Annotated[int, Field("I", "", "the stream")]
    cnt: Annotated[int, Field("Q", SEQ, "how far the subscriber got")]

    def check(self) -> None:
        """Raises RemoteProtocolError for a counter that no stream reaches."""
        check_number("SUBSCRIBE", self.cnt, SEQ_MAX)


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """Send no more of this stream (paper 3.1)."""

    reads: ClassVar = ("s{stream}",)

    stream: Annotated[int, Field("I", "", "the stream")]


@dataclass(frozen=True, slots=True)
class Events:
    """A batch: `count` events of one stream with consecutive sequence numbers from first_seq on.

    An event's identity (type, stream, seq, range) follows: range is 1 but for a tombstone, whose seq is its
    last covered event, first_seq + count - 1, and whose range is count (paper 3.1). Every event of a batch of
    garbage collection events has the same predicate. A batch of kind EPOCH has no events and covers all from
    first_seq to the beginning of its epoch: whoever does not have that will never get it.
    """

    reads: ClassVar = ("s{stream}", "[{first_seq}..{first_seq+count}]", "{kind?}")

    kind: Annotated[int, Field("B", "", "of its events", Kind)]
    predicate: Annotated[int, Field("B", "", "what they collect", Predicate)]
    stream: Annotated[int, Field("I", "", "the stream")]
    first_seq: Annotated[int, Field("Q", SEQ, "sequence number of the first event")]
    count: Annotated[int, Field("I", "events", "events in the batch; a tombstone's range; 0 for an epoch")]
    event_bytes: Annotated[
        int, Field("I", "bytes", "size of every event; 0: they differ, and the sizes come first")
    ]
    argument: Annotated[
        int, Field("Q", "", "of the predicate: events, microseconds or bytes; the epoch that begins")
    ]
    time_us: Annotated[int, Field("Q", "us", "when its head took it, by the stream's clock; never falls")]
    payload: Annotated[
        bytes | memoryview, Tail("bytes", "the events' bytes, one after the other", numbers=(SIZES,))
    ]

    def check(self) -> None:
        """Raises RemoteProtocolError for a batch that does not add up."""
        if self.kind > Kind.EPOCH:
            raise RemoteProtocolError(f"EVENTS of unknown kind {self.kind}")
        check_predicate("EVENTS", self.kind, self.predicate)
        if self.kind == Kind.EPOCH:
            self._check_epoch()
            return
        if self.first_seq < 1 or self.count < 1:
            raise RemoteProtocolError(f"EVENTS with first_seq {self.first_seq} and count {self.count}")
        check_number("EVENTS", self.first_seq, SEQ_MAX)
        if self.kind == Kind.TOMBSTONE:
            if len(self.payload):
                raise RemoteProtocolError("EVENTS: a tombstone with a payload")
            return
        check_payload("EVENTS", self.count, self.event_bytes, self.payload)

    def _check_epoch(self) -> None:
        if self.count or len(self.payload):
            raise RemoteProtocolError("EVENTS: the beginning of an epoch with events")
        if self.argument > EPOCH_MAX or not 1 <= self.first_seq < first_of(self.argument):
            raise RemoteProtocolError(f"EVENTS: epoch {self.argument} cannot follow {self.first_seq - 1}")


@dataclass(frozen=True, slots=True)
class SparseEvents:
    """A batch from which events were collected: every event stands with a tombstone for those before it.

    The batch covers first_seq to first_seq + the sum of the reaches - 1.
    """

    reads: ClassVar = ("s{stream}", "[{first_seq}..{first_seq+reaches}]", "{kind?}", "{count} left")

    kind: Annotated[int, Field("B", "", "of its events, no tombstones", Kind)]
    predicate: Annotated[int, Field("B", "", "what they collect", Predicate)]
    stream: Annotated[int, Field("I", "", "the stream")]
    first_seq: Annotated[int, Field("Q", SEQ, "the first sequence number that is covered")]
    count: Annotated[int, Field("I", "events", "events in the batch")]
    event_bytes: Annotated[
        int, Field("I", "bytes", "size of every event; 0: they differ, and the sizes follow the reaches")
    ]
    argument: Annotated[int, Field("Q", "", "of the predicate: events, microseconds or bytes")]
    time_us: Annotated[int, Field("Q", "us", "when its head took it, by the stream's clock; never falls")]
    payload: Annotated[
        bytes | memoryview, Tail("bytes", "the events' bytes, one after the other", numbers=(REACHES, SIZES))
    ]

    def check(self) -> None:
        """Raises RemoteProtocolError for a batch that does not add up."""
        if self.kind > Kind.GC:
            raise RemoteProtocolError(f"SPARSE_EVENTS of kind {self.kind}")
        check_predicate("SPARSE_EVENTS", self.kind, self.predicate)
        if self.first_seq < 1 or self.count < 1:
            raise RemoteProtocolError(f"SPARSE_EVENTS with first_seq {self.first_seq} and count {self.count}")
        check_number("SPARSE_EVENTS", self.first_seq, SEQ_MAX)
        if len(self.payload) < U32_BYTES * self.count:
            raise RemoteProtocolError(
                f"SPARSE_EVENTS with {len(self.payload)} bytes for {self.count} reaches"
            )
        if 0 in event_sizes(self.count, self.payload):
            raise RemoteProtocolError("SPARSE_EVENTS: an event with no reach")
        rest = memoryview(self.payload)[U32_BYTES * self.count :]
        check_payload("SPARSE_EVENTS", self.count, self.event_bytes, rest)


@dataclass(frozen=True, slots=True)
class Publish:
    """A batch of events to be published, numbered by its publisher so that a repetition is known as such."""

    reads: ClassVar = ("s{stream}", "requests [{first_request}..{first_request+count}]", "{kind?}")

    kind: Annotated[int, Field("B", "", "of its events, no tombstones", Kind)]
    predicate: Annotated[int, Field("B", "", "what they collect", Predicate)]
    stream: Annotated[int, Field("I", "", "the stream")]
    first_request: Annotated[
        int, Field("Q", "events", "the publisher's number of the first event, from 1 on")
    ]
    count: Annotated[int, Field("I", "events", "events in the batch")]
    event_bytes: Annotated[
        int, Field("I", "bytes", "size of every event; 0: they differ, and the sizes come first")
    ]
    argument: Annotated[int, Field("Q", "", "of the predicate: events, microseconds or bytes")]
    payload: Annotated[
        bytes | memoryview, Tail("bytes", "the events' bytes, one after the other", numbers=(SIZES,))
    ]

    def check(self) -> None:
        """Raises RemoteProtocolError for a batch that does not add up."""
        if self.kind > Kind.GC:
            raise RemoteProtocolError(f"PUBLISH of kind {self.kind}")
        check_predicate("PUBLISH", self.kind, self.predicate)
        if self.first_request < 1 or self.count < 1:
            raise RemoteProtocolError(
                f"PUBLISH with first_request {self.first_request} and count {self.count}"
            )
        check_number("PUBLISH", self.first_request)
        check_payload("PUBLISH", self.count, self.event_bytes, self.payload)


@dataclass(frozen=True, slots=True)
class Published:
    """The batch with this first_request is published: its events are numbered from first_seq on."""

    reads: ClassVar = ("s{stream}", "[{first_seq}..{first_seq+count}]", "request {first_request}")

    stream: Annotated[int, Field("I", "", "the stream")]
    first_request: Annotated[int, Field("Q", "events", "of the PUBLISH")]
    first_seq: Annotated[int, Field("Q", SEQ, "sequence number of its first event")]
    count: Annotated[int, Field("I", "events", "events in the batch")]


@dataclass(frozen=True, slots=True)
class Refused:
    """Something that the peer sent was not accepted."""

    reads: ClassVar = ("{code}", "s{stream}", "request {request?}", "{reason}")

    code: Annotated[int, Field("H", "", "why", Refusal)]
    stream: Annotated[int, Field("I", "", "the stream concerned, or 0")]
    request: Annotated[int, Field("Q", "events", "first_request of a refused PUBLISH, or 0")]
    reason: Annotated[str, Tail("text", "for people")]


# --- Region-level protocol (3.2)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A row of VIEW. Whoever reads it needs no list of the region's clients: they join at any time."""

    reads: ClassVar = ("{member}",)

    member: Annotated[int, Field("I", "", "which of its region's clients; 4294967295: the region's proxy")]
    address: Annotated[int, Field("I", "", "its IPv4 address; 0 for the proxy, which everyone knows")]


@dataclass(frozen=True, slots=True)
class View:
    """The sender's view of its region: gossip of the membership protocol (3.2)."""

    reads: ClassVar = ("{neighbours}",)

    neighbours: Annotated[tuple[Neighbour, ...], Tail("rows", "the sender, then its neighbours", Neighbour)]


@dataclass(frozen=True, slots=True)
class Notify:
    """The sender has these streams up to cnt (3.2)."""

    reads: ClassVar = ("{counters}",)

    counters: Annotated[tuple[Counter, ...], Tail("rows", "streams that have grown", Counter)]


@dataclass(frozen=True, slots=True)
class Request:
    """Send me this stream's events next to cnt (3.2). Answered by EVENTS, SPARSE_EVENTS and one ANSWERED."""

    reads: ClassVar = ("s{stream}", "[{next}..{cnt}]")

    stream: Annotated[int, Field("I", "", "the stream")]
    next: Annotated[int, Field("Q", SEQ, "the first event that is wanted")]
    cnt: Annotated[int, Field("Q", SEQ, "the last event that is wanted")]

    def check(self) -> None:
        """Raises RemoteProtocolError for an interval that is none."""
        if not 0 < self.next <= self.cnt:
            raise RemoteProtocolError(f"REQUEST for {self.next} to {self.cnt}")


@dataclass(frozen=True, slots=True)
class Answered:
    """The events before this are all that the sender gives for a REQUEST (3.2: EVENTS carries cnt, too)."""

    reads: ClassVar = ("s{stream}", "[{next}..{last}]", "of {cnt}")

    stream: Annotated[int, Field("I", "", "the stream")]
    next: Annotated[int, Field("Q", SEQ, "next of the REQUEST")]
    last: Annotated[int, Field("Q", SEQ, "how far the answer goes: cnt of the REQUEST, or less")]
    cnt: Annotated[int, Field("Q", SEQ, "the sender's own cnt")]


# --- The replicated proxy (3.3)


@dataclass(frozen=True, slots=True)
class Publication:
    """Whose the events from first_seq on are: passed down the chain, so that a retry is known later."""

    reads: ClassVar = (
        "s{stream}",
        "[{first_seq}..{first_seq+count}]",
        "request {first_request}",
        "by {name}",
    )

    stream: Annotated[int, Field("I", "", "the stream")]
    first_seq: Annotated[int, Field("Q", SEQ, "sequence number of its first event")]
    count: Annotated[int, Field("I", "events", "events in the batch")]
    first_request: Annotated[int, Field("Q", "events", "of its PUBLISH")]
    incarnation: Annotated[int, Field("Q", "", "of its publisher")]
    name: Annotated[str, Tail("text", "its publisher")]


@dataclass(frozen=True, slots=True)
class Follow:
    """I come after you in this configuration and have this much: send me what follows.

    Answered in kind by the predecessor, with its own counters: what it sends along the chain from then on
    belongs to this configuration, and what it sent before does not count.
    """

    reads: ClassVar = ("configuration {configuration}", "{counters}")

    configuration: Annotated[int, Field("Q", "", "number of the configuration")]
    counters: Annotated[tuple[Counter, ...], Tail("rows", "cnt of each stream", Counter)]


@dataclass(frozen=True, slots=True)
class Stored:
    """All replicas from the sender to the tail have these streams up to cnt."""

    reads: ClassVar = ("{counters}",)

    counters: Annotated[tuple[Counter, ...], Tail("rows", "streams that have grown", Counter)]


@dataclass(frozen=True, slots=True)
class Token:
    """You have everything: you are the tail from now on (3.3)."""

    reads: ClassVar = ("configuration {configuration}",)

    configuration: Annotated[int, Field("Q", "", "in which the sender was the tail")]


@dataclass(frozen=True, slots=True)
class Replica:
    """A row of CONFIGURATION."""

    reads: ClassVar = ("{index}", "{standing?}")

    index: Annotated[int, Field("I", "", "which of its region's proxies")]
    standing: Annotated[int, Field("B", "", "its part in the chain", Standing)]
    incarnation: Annotated[int, Field("Q", "", "of the process that is meant; 0: any")]


@dataclass(frozen=True, slots=True)
class Configuration:
    """The chain of the sender's region from head to tail, and who is joining behind it (3.3)."""

    reads: ClassVar = ("{number}:", "{replicas}")

    number: Annotated[int, Field("Q", "", "grows with each configuration")]
    began: Annotated[
        int, Field("Q", "", "configuration since when a member has all: state from before it is void")
    ]
    replicas: Annotated[
        tuple[Replica, ...], Tail("rows", "members from head to tail, then who joins", Replica)
    ]

    def check(self) -> None:
        """Raises RemoteProtocolError for what is no chain."""
        check_number("CONFIGURATION", self.number)
        indices = [replica.index for replica in self.replicas]
        if len(dict.fromkeys(indices)) != len(indices):
            raise RemoteProtocolError(f"CONFIGURATION {self.number} with a replica that stands there twice")
        if any(replica.standing != Standing.MEMBER for replica in self.replicas[:-1]):
            raise RemoteProtocolError(f"CONFIGURATION {self.number} with members behind who joins")
        if any(replica.standing > Standing.JOINING for replica in self.replicas):
            raise RemoteProtocolError(f"CONFIGURATION {self.number} with an unknown standing")


@dataclass(frozen=True, slots=True)
class Joined:
    """I have the token: make me a member (3.3)."""

    reads: ClassVar = ("configuration {configuration}",)

    configuration: Annotated[int, Field("Q", "", "in which the token was given")]


@dataclass(frozen=True, slots=True)
class Status:
    """This is what I have, for my configuration service: said first of all, on every CONFIGURATION, and when
    the disk is full or works again (3.3).
    """

    reads: ClassVar = ("configuration {configuration}", "committed {cnt}")

    configuration: Annotated[int, Field("Q", "", "the last that this state belonged to; 0: there is none")]
    cnt: Annotated[int, Field("Q", SEQ, "of the region's own stream, what of this is committed")]
    disk: Annotated[int, Field("B", "", "whether more can be stored", Disk)]

    @property
    def is_full(self) -> bool:
        """Whether nothing more can be stored."""
        return self.disk == Disk.FULL


def check_predicate(name: str, kind: int, predicate: int) -> None:
    """Raises RemoteProtocolError unless garbage collection events, and only those, have a known predicate."""
    if predicate > Predicate.SAME_KEY or (kind == Kind.GC) != (predicate != Predicate.NONE):
        raise RemoteProtocolError(f"{name} of kind {kind} with predicate {predicate}")


def check_number(name: str, number: int, limit: int = NUMBER_MAX) -> None:
    """Raises RemoteProtocolError for a number that nobody gets to."""
    if number > limit:
        raise RemoteProtocolError(f"{name} with number {number}")


def check_payload(name: str, count: int, event_bytes: int, payload: bytes | memoryview) -> None:
    """Raises RemoteProtocolError unless the payload is exactly `count` events long."""
    if event_bytes:
        wanted = count * event_bytes
    else:
        if len(payload) < U32_BYTES * count:
            raise RemoteProtocolError(f"{name} with {len(payload)} bytes for the sizes of {count} events")
        wanted = U32_BYTES * count + sum(event_sizes(count, payload))
    if len(payload) != wanted:
        raise RemoteProtocolError(f"{name} with {len(payload)} bytes of payload where {wanted} belong")


def event_sizes(count: int, payload: bytes | memoryview) -> tuple[int, ...]:
    """The sizes in bytes that stand before a batch of events of mixed size."""
    return struct.unpack_from(f">{count}I", payload)


CODEC = Codec(
    (
        Layout(Hello, 1),
        Layout(Advertisement, 2),
        Layout(Subscribe, 3),
        Layout(Unsubscribe, 4),
        Layout(Events, 5),
        Layout(Publish, 6),
        Layout(Published, 7),
        Layout(Refused, 8),
        Layout(SparseEvents, 9),
        Layout(View, 10),
        Layout(Notify, 11),
        Layout(Request, 12),
        Layout(Answered, 13),
        Layout(Publication, 14),
        Layout(Follow, 15),
        Layout(Stored, 16),
        Layout(Token, 17),
        Layout(Configuration, 18),
        Layout(Joined, 19),
        Layout(Status, 20),
        Layout(Paths, 21),
    )
)
