"""Meghdoot's messages. SUBSCRIBE, PUBLISH, EVENT and NOTIFY are what the paper's algorithms send (3.3, 3.4).

CONFIRM, ROOT_CONFIRM, NOTIFIED and UNDELIVERED go back the same way and let a publisher know that an event is
everywhere; STORE keeps copies of subscriptions where their zone's replicas and their mirror image are (4.3),
and RECOVER asks for them.
"""

import struct
from dataclasses import dataclass
from typing import Annotated, ClassVar

from node.core.errors import RemoteProtocolError
from node.core.message_layout import ADDRESS, SEQ, Codec, Field, Layout, Tail, Values
from node.protocols.can.messages import Side, can_layouts, check_sides

DOUBLE = struct.Struct(">d")
Address = Annotated[int, Field("I", ADDRESS, "where the node listens")]
Stream = Annotated[int, Field("I", "", "whose events")]
FirstSeq = Annotated[int, Field("Q", SEQ, "the event's number, from 1 on")]
Settled = Annotated[int, Field("Q", SEQ, "the first event of the stream that is not known to be everywhere")]
Attempt = Annotated[int, Field("H", "", "how often the event was sent out before")]
Age = Annotated[int, Field("Q", "us", "since it was published, without times on the way")]
ZoneId = Annotated[int, Field("Q", "", "the zone, by a hash of its edges; 0: whichever the receiver has")]
Points = Annotated[int, Field("Q", "points", "of the region, visited from there on, modulo a prime")]
Doubts = Annotated[int, Field("H", "zones", "visited whose subscriptions may not all be known yet")]
Payload = Annotated[bytes, Tail("bytes", "the event, which begins with its values as doubles")]
Number = Annotated[int, Field("I", "", "of the sender's, for the answer")]
Packed = Annotated[bytes, Tail("bytes", "subscriptions, one after the other")]


class Purpose(Values):
    """What subscriptions are sent for."""

    INSTALL = 0, "the sender subscribes, or no longer does: the receiver's zone has their point"
    COPY = 1, "mirror images, to be kept out of matching"
    REPLICA = 2, "the receiver is a replica of the sender's zone"
    RECOVERED = 3, "the receiver asked for them"


@dataclass(frozen=True, slots=True)
class Store:
    """Keep these subscriptions."""

    reads: ClassVar = ("{purpose}", "for {address}")

    address: Annotated[int, Field("I", ADDRESS, "where the answer goes")]
    number: Number
    purpose: Annotated[int, Field("B", "", "what for", Purpose)]
    subscriptions: Packed


@dataclass(frozen=True, slots=True)
class StoreAt:
    """Keep the copy of a subscription: routed to the place of its mirror image."""

    reads: ClassVar = ("for {address}",)

    address: Annotated[int, Field("I", ADDRESS, "where the answer goes")]
    number: Number
    subscriptions: Annotated[bytes, Tail("bytes", "the place, as doubles, and the subscription")]


@dataclass(frozen=True, slots=True)
class Stored:
    """I keep them."""

    number: Annotated[int, Field("I", "", "yours")]


@dataclass(frozen=True, slots=True)
class Handed:
    """You have all that I had of a zone that is yours now."""

    doubt_us: Annotated[int, Field("Q", "us", "for how long something of it may not have been known to me")]
    edges: Annotated[bytes, Tail("bytes", "lower and upper edges of the zone, as doubles")]

    def check(self) -> None:
        """Raises RemoteProtocolError for a zone that is none."""
        check_edges("HANDED", self.edges)


@dataclass(frozen=True, slots=True)
class Word:
    """A subscription, and which word about it."""

    reads: ClassVar = ("{number} v{version}",)

    number: Annotated[int, Field("I", "", "the subscriber's own")]
    version: Annotated[int, Field("Q", "", "of its word", columns=())]


@dataclass(frozen=True, slots=True)
class Subscribed:
    """So be it, of these subscriptions; or of their ends."""

    reads: ClassVar = ("{words}",)

    words: Annotated[tuple[Word, ...], Tail("rows", "which", Word)]


@dataclass(frozen=True, slots=True)
class Publish:
    """An event, routed to its point."""

    reads: ClassVar = ("s{stream}", "{first_seq}", "attempt {attempt?}")

    stream: Stream
    first_seq: FirstSeq
    attempt: Attempt
    settled: Settled
    age_us: Age
    address: Annotated[int, Field("I", ADDRESS, "where the publisher listens")]
    payload: Payload


@dataclass(frozen=True, slots=True)
class Event:
    """An event, from a zone that it affects to another one."""

    reads: ClassVar = ("s{stream}", "{first_seq}", "attempt {attempt?}")

    stream: Stream
    first_seq: FirstSeq
    attempt: Attempt
    settled: Settled
    age_us: Age
    address: Annotated[int, Field("I", ADDRESS, "where the publisher listens")]
    zone: ZoneId
    payload: Payload


@dataclass(frozen=True, slots=True)
class Notify:
    """An event, to a subscriber with a subscription that it matches."""

    reads: ClassVar = ("s{stream}", "{first_seq}")

    stream: Stream
    first_seq: FirstSeq
    settled: Settled
    age_us: Age
    life: Annotated[int, Field("I", "", "of the subscriber, in which it asked for it")]
    payload: Payload


@dataclass(frozen=True, slots=True)
class EventName:
    """An event that came to a subscriber."""

    reads: ClassVar = ("s{stream} {first_seq}",)

    stream: Annotated[int, Field("I", "", "whose", columns=())]
    first_seq: Annotated[int, Field("Q", SEQ, "its number", columns=())]
    life: Annotated[int, Field("I", "", "of the subscriber, which it was for")]


@dataclass(frozen=True, slots=True)
class Notified:
    """I have these events."""

    reads: ClassVar = ("{events}",)

    events: Annotated[tuple[EventName, ...], Tail("rows", "which", EventName)]


@dataclass(frozen=True, slots=True)
class Visited:
    """What became of a wave at a zone, and from there on."""

    reads: ClassVar = ("s{stream} {first_seq}",)

    stream: Annotated[int, Field("I", "", "whose event, or who recovers", columns=())]
    first_seq: Annotated[int, Field("Q", SEQ, "its number", columns=())]
    attempt: Attempt
    zone: ZoneId
    points: Points
    undelivered: Annotated[int, Field("I", "subscribers", "that did not say that they have it")]
    doubts: Doubts
    late_us: Annotated[int, Field("I", "us", "by which the busiest of these peers was late", columns=())]


Visits = Annotated[tuple[Visited, ...], Tail("rows", "of which waves", Visited)]


@dataclass(frozen=True, slots=True)
class Confirm:
    """From a zone to the one that passed a wave on to it: all from here on have it."""

    reads: ClassVar = ("{visits}",)

    visits: Visits


@dataclass(frozen=True, slots=True)
class RootConfirm:
    """From the zone with which a wave began, to the peer that began it."""

    reads: ClassVar = ("{visits}",)

    visits: Visits


@dataclass(frozen=True, slots=True)
class Subscriber:
    """A subscriber in one of its lives."""

    reads: ClassVar = ("{address}",)

    address: Annotated[int, Field("I", ADDRESS, "where it listens")]
    life: Annotated[int, Field("I", "", "how often it was started before")]


@dataclass(frozen=True, slots=True)
class Undelivered:
    """To a publisher: these subscribers did not say that they have its event."""

    reads: ClassVar = ("s{stream}", "{first_seq}", "{subscribers}")

    stream: Stream
    first_seq: FirstSeq
    attempt: Attempt
    zone: ZoneId
    subscribers: Annotated[tuple[Subscriber, ...], Tail("rows", "which", Subscriber)]


class Where(Values):
    """Which zones are asked for what belongs to one."""

    MIRROR = (
        0,
        "those of its mirror image: copies of its subscriptions, and subscriptions whose copies it had",
    )
    AROUND = 1, "those around it: copies that had to move from there, or to there"


Edges = Annotated[bytes, Tail("bytes", "lower and upper edges of the zone that was lost, as doubles")]


def check_edges(name: str, edges: bytes | memoryview) -> None:
    """Raises RemoteProtocolError unless they are those of a box in the space."""
    if len(edges) % (2 * DOUBLE.size):
        raise RemoteProtocolError(f"{name} with {len(edges)} bytes of edges")
    numbers = [number for (number,) in DOUBLE.iter_unpack(edges)]
    half = len(numbers) // 2
    check_sides(name, map(Side, numbers[:half], numbers[half:]))


WhereAsked = Annotated[int, Field("B", "", "who is asked", Where)]


@dataclass(frozen=True, slots=True)
class Recover:
    """Give me what you have of a zone that I took over: spread over a region as an event is over its own."""

    reads: ClassVar = ("{where}", "for {address}")

    address: Annotated[int, Field("I", ADDRESS, "who asks")]
    number: Number
    attempt: Attempt
    where: WhereAsked
    zone: ZoneId
    edges: Edges

    def check(self) -> None:
        """Raises RemoteProtocolError for a zone that is none."""
        check_edges("RECOVER", self.edges)


@dataclass(frozen=True, slots=True)
class RecoverAt:
    """The same, routed to the corner from which it spreads."""

    reads: ClassVar = ("{where}", "for {address}")

    address: Annotated[int, Field("I", ADDRESS, "who asks")]
    number: Number
    attempt: Attempt
    where: WhereAsked
    edges: Edges

    def check(self) -> None:
        """Raises RemoteProtocolError for a zone that is none."""
        check_edges("RECOVER_AT", self.edges)


@dataclass(frozen=True, slots=True)
class Loaded:
    """A peer with much to do."""

    reads: ClassVar = ("{address} {load}",)

    address: Annotated[int, Field("I", ADDRESS, "where it listens", columns=())]
    load: Annotated[float, Field("d", "visits", "its load", columns=())]


@dataclass(frozen=True, slots=True)
class Load:
    """This much I have to do, and these have most, of all that I have heard of: the loadedPeerList (4.2)."""

    reads: ClassVar = ("{load}", "{peers}")

    load: Annotated[float, Field("d", "visits", "of zones, lately; matching counts as well")]
    peers: Annotated[tuple[Loaded, ...], Tail("rows", "the most loaded ones", Loaded)]


@dataclass(frozen=True, slots=True)
class Climb:
    """A peer wants to join where there is much to do: to a neighbour with more, until there is none (4.2)."""

    reads: ClassVar = ("{id}", "for {address}")

    id: Annotated[int, Field("K", "", "of the peer that joins", columns=("key",))]
    address: Annotated[int, Field("I", ADDRESS, "where it listens")]
    sequence: Annotated[int, Field("Q", "", "that its zones will have first")]
    hops: Annotated[int, Field("B", "peers", "that passed it on")]
    load: Annotated[float, Field("d", "visits", "of the one that passes it on")]


MEGHDOOT_MESSAGES = (
    Store, StoreAt, Stored, Subscribed, Publish, Event, Notify, Notified, Confirm, RootConfirm, Undelivered,
    Recover, RecoverAt, Handed, Load, Climb,
)  # fmt: skip
FIRST_TYPE = 64  # after the overlay's

OWN_TYPE = 128  # from here on: messages of applications


def codec(*own: type) -> Codec:
    """Of CAN's and Meghdoot's messages, and of those that an application has beside them."""
    return Codec(
        [
            *can_layouts(),
            *(Layout(message, FIRST_TYPE + number) for number, message in enumerate(MEGHDOOT_MESSAGES)),
            *(Layout(message, OWN_TYPE + number) for number, message in enumerate(own)),
        ]
    )


CODEC = codec()
