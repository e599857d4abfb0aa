"""Meghdoot's messages. SUBSCRIBE, PUBLISH, EVENT and NOTIFY are those of the paper's algorithms (3.3, 3.4).

CONFIRM, ROOT_CONFIRM, NOTIFIED and UNDELIVERED return the same way, so that a publisher knows when all
subscribers have an event. STORE puts subscriptions at replicas and copies at mirror images (4.3), and RECOVER
requests them.
"""

import struct
from dataclasses import dataclass
from typing import Annotated, ClassVar

from node.core.errors import RemoteProtocolError
from node.core.message_layout import ADDRESS, SEQ, Codec, Field, NamedValues, TailField, numbered, wire_name
from node.protocols.can.messages import CAN_MESSAGES, ZoneSide, check_sides

DOUBLE = struct.Struct(">d")
Address = Annotated[int, Field("I", ADDRESS, "listen address of the node")]
Stream = Annotated[int, Field("I", "", "stream of the event")]
FirstSeq = Annotated[int, Field("Q", SEQ, "sequence number of the event, from 1 on")]
Settled = Annotated[int, Field("Q", SEQ, "first event of the stream that is not confirmed everywhere")]
Attempt = Annotated[int, Field("H", "", "number of earlier transmissions of the event")]
Age = Annotated[int, Field("Q", "us", "time since its publication, without transmission delays")]
ZoneId = Annotated[int, Field("Q", "", "the zone, by a hash of its edges; 0: any zone of the receiver")]
Points = Annotated[int, Field("Q", "points", "of the region visited from the zone on, modulo a prime")]
Doubts = Annotated[int, Field("H", "zones", "visited in doubt: their subscriptions may be incomplete")]
Payload = Annotated[bytes, TailField("bytes", "the event, beginning with its values as doubles")]
Number = Annotated[int, Field("I", "", "number for the answer")]
Packed = Annotated[bytes, TailField("bytes", "subscriptions, one after the other")]


def check_edges(message: "Handed | Recover | RecoverAt") -> None:
    """Check that the message's edges describe a box in the space. Raises RemoteProtocolError."""
    if len(message.edges) % (2 * DOUBLE.size):
        raise RemoteProtocolError(f"{wire_name(type(message))} with {len(message.edges)} bytes of edges")
    numbers = [number for (number,) in DOUBLE.iter_unpack(message.edges)]
    half = len(numbers) // 2
    check_sides(message, map(ZoneSide, numbers[:half], numbers[half:]))


class StorePurpose(NamedValues):
    """Purpose of sent subscriptions."""

    INSTALL = 0, "the sender starts or ends them; the receiver's zone has their point"
    COPY = 1, "copies at mirror images, which are not matched"
    REPLICA = 2, "the receiver is a replica of the sender's zone"
    RECOVERED = 3, "the receiver requested them, or has their zone now"


@dataclass(frozen=True, slots=True)
class Store:
    """Subscriptions to store. Answered by STORED, or by SUBSCRIBED once they are installed."""

    reads: ClassVar = ("{purpose}", "for {address}")

    address: Annotated[int, Field("I", ADDRESS, "receiver of the answer")]
    number: Number
    purpose: Annotated[int, Field("B", "", "the purpose", StorePurpose)]
    subscriptions: Packed


@dataclass(frozen=True, slots=True)
class StoreAt:
    """The copy of a subscription to store, routed to the place of its mirror image. Answered by STORED."""

    reads: ClassVar = ("for {address}",)

    address: Annotated[int, Field("I", ADDRESS, "receiver of the answer")]
    number: Number
    subscriptions: Annotated[bytes, TailField("bytes", "the place as doubles, and the subscription")]


@dataclass(frozen=True, slots=True)
class Stored:
    """The sender has stored the subscriptions."""

    number: Annotated[int, Field("I", "", "number of the STORE")]


@dataclass(frozen=True, slots=True)
class Handed:
    """The receiver has all that the sender knew of a zone, which the receiver owns or replicates."""

    doubt_us: Annotated[
        int, Field("Q", "us", "time for which the sender's data may be incomplete; 0: they are complete")
    ]
    edges: Annotated[bytes, TailField("bytes", "lower and upper edges of the zone, as doubles")]

    check = check_edges


@dataclass(frozen=True, slots=True)
class UpdateName:
    """A subscription and the version of an update of it."""

    reads: ClassVar = ("{number} v{version}",)

    number: Annotated[int, Field("I", "", "subscriber's number of the subscription")]
    version: Annotated[int, Field("Q", "", "of the update", columns=())]


@dataclass(frozen=True, slots=True)
class Subscribed:
    """These updates of subscriptions, or of their ends, are installed."""

    reads: ClassVar = ("{words}",)

    words: Annotated[tuple[UpdateName, ...], TailField("rows", "installed updates", UpdateName)]


@dataclass(frozen=True, slots=True)
class Publish:
    """An event, routed to its point."""

    reads: ClassVar = ("s{stream}", "{first_seq}", "attempt {attempt?}")

    stream: Stream
    first_seq: FirstSeq
    attempt: Attempt
    settled: Settled
    age_us: Age
    address: Annotated[int, Field("I", ADDRESS, "listen address of the publisher")]
    payload: Payload


@dataclass(frozen=True, slots=True)
class Event:
    """An event, from a zone that it affects to the next one."""

    reads: ClassVar = ("s{stream}", "{first_seq}", "attempt {attempt?}")

    stream: Stream
    first_seq: FirstSeq
    attempt: Attempt
    settled: Settled
    age_us: Age
    address: Annotated[int, Field("I", ADDRESS, "listen address of the publisher")]
    zone: ZoneId
    payload: Payload


@dataclass(frozen=True, slots=True)
class Notify:
    """An event, to a subscriber with a matching subscription."""

    reads: ClassVar = ("s{stream}", "{first_seq}")

    stream: Stream
    first_seq: FirstSeq
    settled: Settled
    age_us: Age
    life: Annotated[int, Field("I", "", "process generation of the subscription's subscriber")]
    payload: Payload


@dataclass(frozen=True, slots=True)
class EventName:
    """An event that a subscriber received."""

    reads: ClassVar = ("s{stream} {first_seq}",)

    stream: Annotated[int, Field("I", "", "stream of the event", columns=())]
    first_seq: Annotated[int, Field("Q", SEQ, "sequence number of the event", columns=())]
    life: Annotated[int, Field("I", "", "process generation of the subscriber that it was for")]


@dataclass(frozen=True, slots=True)
class Notified:
    """The sender has received these events."""

    reads: ClassVar = ("{events}",)

    events: Annotated[tuple[EventName, ...], TailField("rows", "received events", EventName)]


@dataclass(frozen=True, slots=True)
class Visited:
    """Result of a wave at a zone and beyond it."""

    reads: ClassVar = ("s{stream} {first_seq}",)

    stream: Annotated[int, Field("I", "", "stream of the event, or the recovering peer", columns=())]
    first_seq: Annotated[int, Field("Q", SEQ, "sequence number of the event", columns=())]
    attempt: Attempt
    zone: ZoneId
    points: Points
    undelivered: Annotated[int, Field("I", "subscribers", "that did not confirm the event")]
    doubts: Doubts
    late_us: Annotated[int, Field("I", "us", "maximum lateness of these peers", columns=())]


Visits = Annotated[tuple[Visited, ...], TailField("rows", "results of waves", Visited)]


@dataclass(frozen=True, slots=True)
class Confirm:
    """Results of waves, from a zone to the one that forwarded them, after all answers from beyond."""

    reads: ClassVar = ("{visits}",)

    visits: Visits


@dataclass(frozen=True, slots=True)
class RootConfirm(Confirm):
    """Results of waves, from the zone where they began to the peer that started them."""


@dataclass(frozen=True, slots=True)
class SubscriberGeneration:
    """One process generation of a subscriber."""

    reads: ClassVar = ("{address}",)

    address: Annotated[int, Field("I", ADDRESS, "listen address of the peer")]
    life: Annotated[int, Field("I", "", "number of earlier starts")]


@dataclass(frozen=True, slots=True)
class Undelivered:
    """A report to a publisher: these subscribers did not confirm its event."""

    reads: ClassVar = ("s{stream}", "{first_seq}", "{subscribers}")

    stream: Stream
    first_seq: FirstSeq
    attempt: Attempt
    zone: ZoneId
    subscribers: Annotated[
        tuple[SubscriberGeneration, ...],
        TailField("rows", "subscribers without an answer", SubscriberGeneration),
    ]


class RecoveryZones(NamedValues):
    """Zones that are asked for the data of a lost zone."""

    MIRROR = (
        0,
        "those of its mirror image: for copies of its subscriptions, and subscriptions whose copies it had",
    )
    AROUND = 1, "those around it: for copies that had to move out of it or into it"


Edges = Annotated[bytes, TailField("bytes", "lower and upper edges of the lost zone, as doubles")]


WhereAsked = Annotated[int, Field("B", "", "zones that are asked", RecoveryZones)]


@dataclass(frozen=True, slots=True)
class Recover:
    """A request for all data of a zone that was taken over; it spreads over a region as an event does."""

    reads: ClassVar = ("{where}", "for {address}")

    address: Annotated[int, Field("I", ADDRESS, "of the requesting peer")]
    number: Number
    attempt: Attempt
    where: WhereAsked
    zone: ZoneId
    edges: Edges

    check = check_edges


@dataclass(frozen=True, slots=True)
class RecoverAt:
    """The same request, routed to the corner from which it spreads."""

    reads: ClassVar = ("{where}", "for {address}")

    address: Annotated[int, Field("I", ADDRESS, "of the requesting peer")]
    number: Number
    attempt: Attempt
    where: WhereAsked
    edges: Edges

    check = check_edges


@dataclass(frozen=True, slots=True)
class Loaded:
    """A loaded peer."""

    reads: ClassVar = ("{address} {load}",)

    address: Annotated[int, Field("I", ADDRESS, "listen address of the peer", columns=())]
    load: Annotated[float, Field("d", "visits", "its load", columns=())]


@dataclass(frozen=True, slots=True)
class Load:
    """The load of the sender, and the most loaded peers that it knows of: the loadedPeerList (4.2)."""

    reads: ClassVar = ("{load}", "{peers}")

    load: Annotated[float, Field("d", "visits", "recent visits of zones, including the cost of matching")]
    peers: Annotated[tuple[Loaded, ...], TailField("rows", "most loaded peers", Loaded)]


@dataclass(frozen=True, slots=True)
class Climb:
    """A join on its way to a loaded peer: to a neighbour with more load, until none has more (4.2)."""

    reads: ClassVar = ("{id}", "for {address}")

    id: Annotated[int, Field("K", "", "id of the joining peer", columns=("key",))]
    address: Annotated[int, Field("I", ADDRESS, "listen address of the peer")]
    sequence: Annotated[int, Field("Q", "", "sequence of its first zone")]
    hops: Annotated[int, Field("B", "peers", "that forwarded it")]
    load: Annotated[float, Field("d", "visits", "load of the forwarding peer")]


MEGHDOOT_MESSAGES = (
    Store, StoreAt, Stored, Subscribed, Publish, Event, Notify, Notified, Confirm, RootConfirm, Undelivered,
    Recover, RecoverAt, Handed, Load, Climb,
)  # fmt: skip
FIRST_TYPE = 64  # after the overlay's types

OWN_TYPE = 128  # from here on: messages of applications


def codec(*own: type) -> Codec:
    """Return the codec of CAN's and Meghdoot's messages, and of the application's own."""
    return Codec(numbered(CAN_MESSAGES) + numbered(MEGHDOOT_MESSAGES, FIRST_TYPE) + numbered(own, OWN_TYPE))


CODEC = codec()
