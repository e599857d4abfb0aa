"""Messages with events: EVENTS, SPARSE_EVENTS, and the client interface, PUBLISH and PUBLISHED.

Many events of one stream travel in one message (paper 4: "batching is extensively used"): EVENTS with
consecutive sequence numbers, SPARSE_EVENTS with collected events between them. The upper bits of a sequence
number are the epoch of its stream (`node.core.epochs`); EVENTS of kind EPOCH mark the beginning of one.
"""

import struct
from typing import Annotated, ClassVar

from node.core.content.value import value
from node.core.epochs import EPOCH_MAX, SEQ_MAX, first_seq_of_epoch
from node.core.errors import RemoteProtocolError
from node.core.message_layout import SEQ, Field, NumberList, TailField
from node.protocols.sprinkler.message_values import U32_BYTES, EventKind, Predicate, check_number

SIZES = NumberList("sizes", "count", "bytes", "of each event", if_zero="event_bytes")
REACHES = NumberList(
    "reaches",
    "count",
    "events",
    "of each event: 1 plus the number of collected events since the previous event",
    column="covered",
)


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
    predicate: Annotated[int, Field("B", "", "which events they collect", Predicate)]
    stream: Annotated[int, Field("I", "", "the stream")]
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
    event_bytes: Annotated[
        int, Field("I", "bytes", "size of each event; 0: sizes differ and precede the events")
    ]
    argument: Annotated[
        int, Field("Q", "", "of the predicate: events, microseconds or bytes; the epoch that begins")
    ]
    time_us: Annotated[
        int, Field("Q", "us", "when the head accepted it, by the stream's clock; never decreases")
    ]
    payload: Annotated[
        bytes | memoryview, TailField("bytes", "bytes of the events, concatenated", numbers=(SIZES,))
    ]

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
        check_number("EVENTS", self.first_seq, SEQ_MAX)
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

    kind: Annotated[int, Field("B", "", "of its events, no tombstones", EventKind)]
    predicate: Annotated[int, Field("B", "", "which events they collect", Predicate)]
    stream: Annotated[int, Field("I", "", "the stream")]
    first_seq: Annotated[int, Field("Q", SEQ, "the first covered sequence number")]
    count: Annotated[int, Field("I", "events", "events in the batch")]
    event_bytes: Annotated[
        int, Field("I", "bytes", "size of each event; 0: sizes differ and follow the reaches")
    ]
    argument: Annotated[int, Field("Q", "", "of the predicate: events, microseconds or bytes")]
    time_us: Annotated[
        int, Field("Q", "us", "when the head accepted it, by the stream's clock; never decreases")
    ]
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
        check_number("SPARSE_EVENTS", self.first_seq, SEQ_MAX)
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

    kind: Annotated[int, Field("B", "", "of its events, no tombstones", EventKind)]
    predicate: Annotated[int, Field("B", "", "which events they collect", Predicate)]
    stream: Annotated[int, Field("I", "", "the stream")]
    first_request: Annotated[
        int,
        Field("Q", "events", "the publisher's number of the first event, from 1 on", columns=("request",)),
    ]
    count: Annotated[int, Field("I", "events", "events in the batch")]
    event_bytes: Annotated[
        int, Field("I", "bytes", "size of each event; 0: sizes differ and precede the events")
    ]
    argument: Annotated[int, Field("Q", "", "of the predicate: events, microseconds or bytes")]
    payload: Annotated[
        bytes | memoryview, TailField("bytes", "bytes of the events, concatenated", numbers=(SIZES,))
    ]

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

    stream: Annotated[int, Field("I", "", "the stream")]
    first_request: Annotated[int, Field("Q", "events", "of the PUBLISH", columns=("request",))]
    first_seq: Annotated[int, Field("Q", SEQ, "sequence number of its first event")]
    count: Annotated[int, Field("I", "events", "events in the batch")]

    def check(self) -> None:
        """Raise RemoteProtocolError for a sequence number beyond the limit."""
        check_number("PUBLISHED", self.first_seq, SEQ_MAX)


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
