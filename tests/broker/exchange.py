"""An exchange: one server matches events with all subscriptions and forwards them in one order.

Publishers in all regions send it their events; it sends each event once to each matching subscriber. Nothing
is retransmitted: a broken connection loses its messages.
"""

import struct
from dataclasses import dataclass
from hashlib import blake2b
from typing import Annotated, ClassVar

from node.core import machine as m
from node.core.content import content, content_measures
from node.core.content.event_values import EventValues
from node.core.declaration import Contract, Declared, Reading, System, Trait
from node.core.deliveries import RecordKind
from node.core.message_layout import SEQ, Codec, Field, TailField, numbered
from node.core.peers.small_machine import SmallMachine


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters that an experiment may set."""

    port: int = 7300
    tick_us: int = 20_000


@dataclass(frozen=True, slots=True)
class Subscribe:
    """Tell me of events within these ranges, or no longer."""

    number: Annotated[int, Field("I", "", "mine")]
    on: Annotated[int, Field("B", "", "1: from now on; 0: no longer")]
    ranges: Annotated[bytes, TailField("bytes", "low and high of each attribute, as doubles")]


@dataclass(frozen=True, slots=True)
class Subscribed:
    """So be it."""

    number: Annotated[int, Field("I", "", "yours")]
    on: Annotated[int, Field("B", "", "as asked")]


@dataclass(frozen=True, slots=True)
class Publish:
    """An event, which begins with its values as doubles."""

    reads: ClassVar = ("s{stream}", "{first_seq}", "{key}")

    stream: Annotated[int, Field("I", "", "whose")]
    first_seq: Annotated[int, Field("Q", SEQ, "its number")]
    key: Annotated[int, Field("K", "", "hash of its content")]
    payload: Annotated[bytes, TailField("bytes", "the event")]


@dataclass(frozen=True, slots=True)
class Notify(Publish):
    """The same, from the exchange."""


MESSAGES = (Subscribe, Subscribed, Publish, Notify)
CODEC = Codec(numbered(MESSAGES))


def key_of(event):
    return int.from_bytes(blake2b(event, digest_size=16).digest(), "big")


def packed(values):
    return struct.pack(f">{len(values)}d", *values)


class Node(SmallMachine):
    def __init__(self, spec, rng):
        self.parameters = Parameters(**spec.parameters)
        super().__init__(spec, rng, port=self.parameters.port, tick_us=self.parameters.tick_us)
        self.attributes = content.attributes_of(spec.workload)

    def begin(self):
        self.keep(next(each for each in self.spec.members if each.role == "exchange"))

    def joined(self, connection, peer):
        self.ready()


class Publisher(Node):
    last = 0

    def begin(self):
        super().begin()
        self.values = EventValues.for_publisher(self.spec)

    def tick(self):
        [stream], size = self.spec.published_by(self.spec), self.spec.workload["event_size_bytes"]
        while self.peers and self.last < self.due_events():
            self.last += 1
            values = self.values.one(self.last - 1)
            event = packed(values).ljust(size, b".")
            self.send(*self.peers.values(), Publish(stream, self.last, key_of(event), event))
            self.record(RecordKind.PUBLISHED, stream, self.last, 1, event)
            self.emit(content_measures.event(stream, self.last, values))

    def progress(self):
        return m.NodeProgress(
            dict.fromkeys(self.spec.published_by(self.spec), self.last), silent=self.stopped
        )


class Exchange(Node):
    def begin(self):
        self.asked = {}
        self.emit(m.Listen(self.parameters.port))
        self.ready()

    def left(self, connection):
        self.asked.pop(connection, None)

    def take(self, connection, message):
        if isinstance(message, Subscribe):
            mine = self.asked.setdefault(connection, {})
            mine.pop(message.number, None)
            if message.on:
                bounds = [each for (each,) in struct.iter_unpack(">d", message.ranges)]
                mine[message.number] = list(zip(bounds[::2], bounds[1::2], strict=True))
            self.send(connection, Subscribed(message.number, message.on))
        else:
            event = bytes(message.payload)
            values = struct.unpack_from(f">{len(self.attributes)}d", event)
            for each in self.wanted_by(content.event_ranges(self.attributes, values)):
                self.tell(each, Notify(message.stream, message.first_seq, message.key, event))

    def wanted_by(self, about):
        return [
            connection
            for connection, mine in self.asked.items()
            if any(content.matches(ranges, about) for ranges in mine.values())
        ]

    def tell(self, connection, message):
        self.send(connection, message)


class Subscriber(Node):
    def begin(self):
        super().begin()
        self.subscriptions, self.got = {}, {}

    def tick(self):
        for due in self.due_subscriptions() if self.peers else ():
            self.subscriptions[due.number] = due
            self.interest(RecordKind.SUBSCRIBING if due.on else RecordKind.UNSUBSCRIBING, due)
            bounds = [bound for both in due.ranges for bound in both]
            self.send(*self.peers.values(), Subscribe(due.number, due.on, packed(bounds)))

    def take(self, connection, message):
        if isinstance(message, Subscribed):
            kind = RecordKind.SUBSCRIBED if message.on else RecordKind.UNSUBSCRIBED
            self.interest(kind, self.subscriptions[message.number])
        else:
            self.got[message.stream] = message.first_seq
            self.record(RecordKind.DELIVERED, message.stream, message.first_seq, 1, bytes(message.payload))

    def progress(self):
        return m.NodeProgress(delivered=self.got)


SYSTEM = System(
    Declared(
        "exchange",
        {"exchange": (Trait.SERVER,), "publisher": (Trait.PUBLISHER,), "subscriber": (Trait.SUBSCRIBER,)},
        Contract("sent", "content", "subscription", "total", "at-most-once", ("cut",), settle_us=1_000_000),
        workloads=("content",),
    ),
    Parameters,
    {"exchange": Exchange, "publisher": Publisher, "subscriber": Subscriber},
    CODEC,
    Reading(carries=("NOTIFY",), publish=("PUBLISH", "PUBLISH"), asks=("SUBSCRIBE",)),
)
