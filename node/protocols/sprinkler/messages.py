"""Sprinkler's messages: each declared once, as a table of fields, and the codec made from them.

ADVERTISEMENT, SUBSCRIBE and UNSUBSCRIBE are those of the paper's proxy-level protocol (3.1); PUBLISH and
PUBLISHED carry the client interface (2.1); HELLO says who speaks, REFUSED says what was wrong. Many events
with consecutive sequence numbers travel in one message (paper 4: "batching is extensively used").
"""

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated

from node.core.errors import RemoteProtocolError
from node.core.layout import Codec, Field, Layout, Tail

NAME_LIMIT_BYTES = 255


class Role(IntEnum):
    """Who speaks, in HELLO."""

    PROXY = 0
    DRIVER = 1
    CLIENT = 2


class Kind(IntEnum):
    """The type of an event (paper 2.1). A tombstone stands for `count` collected events and has no bytes."""

    DATA = 0
    GC = 1
    TOMBSTONE = 2


class Refusal(IntEnum):
    """Why something was refused."""

    MALFORMED = 1  # the connection is closed after it
    NOT_OWNER = 2
    UNKNOWN_STREAM = 3
    HISTORY_FULL = 4
    UNEXPECTED = 5  # a message that this role does not take, or before HELLO


@dataclass(frozen=True, slots=True)
class Hello:
    """First message of each side of a connection."""

    role: Annotated[int, Field("B", "", "0 proxy, 1 driver, 2 client")]
    incarnation: Annotated[int, Field("Q", "", "differs each time that the process starts")]
    name: Annotated[str, Tail("text", "the process, as r2/proxy-0")]

    def check(self) -> None:
        """Raises RemoteProtocolError for an unknown role or a name of no sensible length."""
        if self.role > Role.CLIENT:
            raise RemoteProtocolError(f"HELLO with unknown role {self.role}")
        if not 0 < len(self.name) <= NAME_LIMIT_BYTES:
            raise RemoteProtocolError(f"HELLO with a name of {len(self.name)} characters")


@dataclass(frozen=True, slots=True)
class Counter:
    """A row of ADVERTISEMENT: cnt of one stream."""

    stream: Annotated[int, Field("I", "", "the stream")]
    cnt: Annotated[int, Field("Q", "events", "sequence number of the last event that the sender has")]


@dataclass(frozen=True, slots=True)
class Advertisement:
    """The sender's progress on each stream, and its heartbeat (paper 3.1)."""

    counters: Annotated[tuple[Counter, ...], Tail("rows", "cnt of each stream", Counter)]


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Send me this stream's events after cnt, and go on with it (paper 3.1). cnt is the subscriber's own."""

    stream: Annotated[int, Field("I", "", "the stream")]
    cnt: Annotated[int, Field("Q", "events", "how far the subscriber got")]


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """Send no more of this stream (paper 3.1)."""

    stream: Annotated[int, Field("I", "", "the stream")]


@dataclass(frozen=True, slots=True)
class Events:
    """A batch: `count` events of one stream with consecutive sequence numbers from first_seq on.

    An event's identity (type, stream, seq, range) follows: range is 1 but for a tombstone, whose seq is its
    last covered event, first_seq + count - 1, and whose range is count (paper 3.1).
    """

    kind: Annotated[int, Field("B", "", "0 data, 1 garbage collection, 2 tombstone")]
    stream: Annotated[int, Field("I", "", "the stream")]
    first_seq: Annotated[int, Field("Q", "events", "sequence number of the first event")]
    count: Annotated[int, Field("I", "events", "events in the batch; a tombstone's range")]
    event_bytes: Annotated[
        int, Field("I", "bytes", "size of every event; 0: a u32 for each event's size comes first")
    ]
    payload: Annotated[bytes | memoryview, Tail("bytes", "the events' bytes, one after the other")]

    def check(self) -> None:
        """Raises RemoteProtocolError for a batch that does not add up."""
        if self.kind > Kind.TOMBSTONE:
            raise RemoteProtocolError(f"EVENTS of unknown kind {self.kind}")
        if self.first_seq < 1 or self.count < 1:
            raise RemoteProtocolError(f"EVENTS with first_seq {self.first_seq} and count {self.count}")
        if self.kind == Kind.TOMBSTONE:
            if len(self.payload):
                raise RemoteProtocolError("EVENTS: a tombstone with a payload")
            return
        check_payload("EVENTS", self.count, self.event_bytes, self.payload)


@dataclass(frozen=True, slots=True)
class Publish:
    """A batch of events to be published, numbered by its driver so that a repetition is known as such."""

    kind: Annotated[int, Field("B", "", "0 data, 1 garbage collection")]
    stream: Annotated[int, Field("I", "", "the stream")]
    first_request: Annotated[int, Field("Q", "events", "the driver's number of the first event, from 1 on")]
    count: Annotated[int, Field("I", "events", "events in the batch")]
    event_bytes: Annotated[
        int, Field("I", "bytes", "size of every event; 0: a u32 for each event's size comes first")
    ]
    payload: Annotated[bytes | memoryview, Tail("bytes", "the events' bytes, one after the other")]

    def check(self) -> None:
        """Raises RemoteProtocolError for a batch that does not add up."""
        if self.kind > Kind.GC:
            raise RemoteProtocolError(f"PUBLISH of kind {self.kind}")
        if self.first_request < 1 or self.count < 1:
            raise RemoteProtocolError(
                f"PUBLISH with first_request {self.first_request} and count {self.count}"
            )
        check_payload("PUBLISH", self.count, self.event_bytes, self.payload)


@dataclass(frozen=True, slots=True)
class Published:
    """The batch with this first_request is published: its events are numbered from first_seq on."""

    stream: Annotated[int, Field("I", "", "the stream")]
    first_request: Annotated[int, Field("Q", "events", "of the PUBLISH")]
    first_seq: Annotated[int, Field("Q", "events", "sequence number of its first event")]
    count: Annotated[int, Field("I", "events", "events in the batch")]


@dataclass(frozen=True, slots=True)
class Refused:
    """Something that the peer sent was not accepted."""

    code: Annotated[
        int, Field("H", "", "1 malformed, 2 not owner, 3 unknown stream, 4 history full, 5 unexpected")
    ]
    stream: Annotated[int, Field("I", "", "the stream concerned, or 0")]
    request: Annotated[int, Field("Q", "events", "first_request of a refused PUBLISH, or 0")]
    reason: Annotated[str, Tail("text", "for people")]


def check_payload(name: str, count: int, event_bytes: int, payload: bytes | memoryview) -> None:
    """Raises RemoteProtocolError unless the payload is exactly `count` events long."""
    if event_bytes:
        wanted = count * event_bytes
    else:
        if len(payload) < 4 * count:
            raise RemoteProtocolError(f"{name} with {len(payload)} bytes for the sizes of {count} events")
        wanted = 4 * count + sum(event_sizes(count, payload))
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
    )
)
