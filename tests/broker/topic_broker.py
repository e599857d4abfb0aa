"""A broker with topics, at most once: publishers publish; subscribers follow some topics, and then others.

Each region has a broker. It passes what its publishers publish to its subscribers and to the other brokers,
which pass it on to theirs. Nothing is sent again: what a broken connection does not take is lost. A topic is
numbered by the one publisher that it has.
"""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from node.core import machine as m
from node.core.declaration import Contract, Declared, Reading, System, Trait
from node.core.deliveries import RecordKind
from node.core.message_layout import SEQ, Codec, Field, TailField, numbered
from node.core.peers.small_machine import SmallMachine

Topic = Annotated[int, Field("I", "", "the topic", columns=("stream",))]
On = Annotated[int, Field("B", "", "1: from now on; 0: no longer")]


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters that an experiment may set."""

    port: int = 7100
    tick_us: int = 50_000  # between two publications, and between two heartbeats of brokers
    silence_us: int = 600_000  # a broker that was not heard for so long is given up


@dataclass(frozen=True, slots=True)
class Hello:
    """I live; from brokers to each other."""


@dataclass(frozen=True, slots=True)
class Subscribe:
    """I follow a topic, or no longer."""

    topic: Topic
    on: On


@dataclass(frozen=True, slots=True)
class Subscribed:
    """So be it, from this event on."""

    topic: Topic
    on: On
    next: Annotated[int, Field("Q", SEQ, "the first event that it concerns")]


@dataclass(frozen=True, slots=True)
class Publish:
    """Events of a topic, from its publisher."""

    reads: ClassVar = ("t{topic}", "[{first_seq}..{first_seq+count}]")

    topic: Topic
    first_seq: Annotated[int, Field("Q", SEQ, "the first one's number")]
    count: Annotated[int, Field("I", "events", "how many")]
    payload: Annotated[bytes, TailField("bytes", "the events, one after the other")]


@dataclass(frozen=True, slots=True)
class Forward(Publish):
    """The same, from a broker."""


MESSAGES = (Hello, Subscribe, Subscribed, Publish, Forward)
CODEC = Codec(numbered(MESSAGES))


class Node(SmallMachine):
    """The base of all roles: a connection to the region's broker, which makes them ready."""

    def __init__(self, spec, rng):
        self.parameters = Parameters(**spec.parameters)
        super().__init__(spec, rng, port=self.parameters.port, tick_us=self.parameters.tick_us)

    def begin(self):
        self.keep(next(each for each in self.brokers() if each.region == self.spec.region))

    def brokers(self):
        return [each for each in self.spec.members if each.role == "broker" and each.name != self.spec.name]

    def joined(self, connection, peer):
        self.ready()


class Publisher(Node):
    """Publishes events of its region's topics in turn, at the workload's rate."""

    sent, counts = 0, {}

    def begin(self):
        super().begin()
        self.counts = dict.fromkeys(self.spec.published_by(self.spec), 0)

    def tick(self):
        size, due = self.spec.workload["event_size_bytes"], self.due_events() - self.sent if self.peers else 0
        for topic, before in self.counts.items():
            count = due // len(self.counts)
            if count > 0:
                self.counts[topic] += count
                events = b"".join(b"%0*d" % (size, topic << 32 | before + n + 1) for n in range(count))
                self.send(*self.peers.values(), Publish(topic, before + 1, count, events))
                self.record(RecordKind.PUBLISHED, topic, before + 1, count, events)
                self.sent += count

    def progress(self):
        return m.NodeProgress(
            {topic: last for topic, last in self.counts.items() if last}, silent=self.stopped
        )


class Broker(Node):
    """Forwards each event once to the followers of its topic."""

    def begin(self):
        self.followers, self.heard_us, self.passed = {}, {}, {}
        self.emit(m.Listen(self.parameters.port))
        for broker in self.brokers():
            self.keep(broker)

    def joined(self, connection, peer):
        self.heard_us[connection] = self.now_us

    def left(self, connection):
        for following in self.followers.values():
            following.discard(connection)

    def tick(self):
        for peer, connection in list(self.peers.items()):
            if self.now_us - self.heard_us[connection] > self.parameters.silence_us:
                self.emit(m.Log("broker_silent", {"peer": peer}))
                self.drop(peer)
            else:
                self.send(connection, Hello())
        self.measure("broker", followers=sum(map(len, self.followers.values())))
        if len(self.peers) == len(self.brokers()):
            self.ready()

    def take(self, connection, message):
        self.heard_us[connection] = self.now_us
        if isinstance(message, Hello) and connection not in self.peers.values():
            self.send(connection, message)  # the other one keeps this connection: show it that we live
        elif isinstance(message, Subscribe):
            following = self.followers.setdefault(message.topic, set())
            (following.add if message.on else following.discard)(connection)
            following_event = self.passed.get(message.topic, 0) + 1
            self.send(connection, Subscribed(message.topic, message.on, following_event))
        elif isinstance(message, Publish):
            self.passed[message.topic] = message.first_seq + message.count - 1
            self.pass_on(message, from_broker=isinstance(message, Forward))

    def pass_on(self, message, *, from_broker):
        onward = Forward(message.topic, message.first_seq, message.count, bytes(message.payload))
        others = [] if from_broker else self.peers.values()
        for connection in [*sorted(self.followers.get(message.topic, ())), *others]:
            self.send(connection, onward)


class Subscriber(Node):
    """Follows the topics that the plan says."""

    def begin(self):
        super().begin()
        self.following, self.got = set(), {}

    def tick(self):
        for due in self.due_subscriptions() if self.peers else ():
            (self.following.add if due.on else self.following.discard)(due.number)
            self.record(RecordKind.SUBSCRIBING if due.on else RecordKind.UNSUBSCRIBING, due.number)
            self.send(*self.peers.values(), Subscribe(due.number, due.on))

    def take(self, connection, message):
        if isinstance(message, Subscribed):
            kind = RecordKind.SUBSCRIBED if message.on else RecordKind.UNSUBSCRIBED
            self.record(kind, message.topic, message.next)
        elif isinstance(message, Forward):
            self.deliver(message)

    def deliver(self, message):
        self.got[message.topic] = message.first_seq + message.count - 1
        events = bytes(message.payload)
        self.record(RecordKind.DELIVERED, message.topic, message.first_seq, message.count, events)

    def progress(self):
        return m.NodeProgress(delivered={topic: self.got.get(topic, 0) for topic in self.following})


SYSTEM = System(
    Declared(
        "broker",
        {"broker": (Trait.SERVER,), "publisher": (Trait.PUBLISHER,), "subscriber": (Trait.SUBSCRIBER,)},
        Contract("sent", "topic", "subscription", "stream", "at-most-once", survives=(), settle_us=1_500_000),
        workloads=("topics",),
    ),
    Parameters,
    {"broker": Broker, "publisher": Publisher, "subscriber": Subscriber},
    CODEC,
    Reading(
        carries=("FORWARD",), publish=("PUBLISH", "PUBLISH"), asks=("SUBSCRIBE",),
        noticed=("broker_silent",), heartbeat="HELLO",
    ),
)  # fmt: skip
