"""Peers: one role that publishes and subscribes, without a server. Each tells all others, and itself."""

from dataclasses import dataclass
from typing import Annotated, ClassVar

from node.core import machine as m
from node.core.declaration import Contract, Declared, Reading, System, Trait
from node.core.deliveries import RecordKind
from node.core.message_layout import SEQ, Codec, Field, TailField, numbered
from node.core.peers.small_machine import SmallMachine


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters that an experiment may set."""

    port: int = 7400
    tick_us: int = 50_000


@dataclass(frozen=True, slots=True)
class Batch:
    """Events, from the peer that numbers them."""

    reads: ClassVar = ("s{stream}", "[{first_seq}..{first_seq+count}]")

    stream: Annotated[int, Field("I", "", "whose events")]
    first_seq: Annotated[int, Field("Q", SEQ, "number of the first one, from 1 on")]
    count: Annotated[int, Field("I", "events", "how many")]
    payload: Annotated[bytes, TailField("bytes", "the events, one after the other")]


class Peer(SmallMachine):
    last = 0

    def __init__(self, spec, rng):
        self.parameters = Parameters(**spec.parameters)
        super().__init__(spec, rng, port=self.parameters.port, tick_us=self.parameters.tick_us)
        self.got = {}

    def begin(self):
        self.emit(m.Listen(self.parameters.port))
        self.others = [each for each in self.spec.members if each.name != self.spec.name]
        for other in self.others:
            self.keep(other)

    def joined(self, connection, peer):
        if len(self.peers) == len(self.others):
            self.ready()

    def tick(self):
        count = self.due_events() - self.last
        if count > 0:
            [stream], size = self.spec.published_by(self.spec), self.spec.workload["event_size_bytes"]
            events = b"".join(b"%0*d" % (size, stream << 32 | self.last + n + 1) for n in range(count))
            told = Batch(stream, self.last + 1, count, events)
            self.record(RecordKind.PUBLISHED, stream, told.first_seq, count, events)
            self.last += count
            self.deliver(told)
            for each in self.peers.values():
                self.send(each, told)

    def take(self, connection, message):
        self.deliver(message)

    def deliver(self, told):
        self.got[told.stream] = told.first_seq + told.count - 1
        self.record(RecordKind.DELIVERED, told.stream, told.first_seq, told.count, bytes(told.payload))

    def progress(self):
        mine = dict.fromkeys(self.spec.published_by(self.spec), self.last)
        return m.NodeProgress(mine, delivered=self.got, silent=self.stopped)


SYSTEM = System(
    Declared(
        "peers",
        {"peer": (Trait.PUBLISHER, Trait.SUBSCRIBER)},
        Contract("sent", "all", "beginning", "stream", "at-most-once", survives=()),
    ),
    Parameters,
    {"peer": Peer},
    Codec(numbered((Batch,))),
    Reading(carries=("BATCH",), publish=("BATCH", "BATCH")),
)
