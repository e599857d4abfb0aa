"""A client: takes every event of every stream from its region's proxy, as in the paper's prototype (4).

It subscribes at its own counters, so that after a lost connection it goes on where it was. Each batch is
checked (seq - range <= cnt < seq, as in the paper's deliverEvent, Fig. 3) and put on record with the CRC of
its events' bytes. For applications there is `get_event`, one event at a time, and `publish`; for the
testbed's clients the record is all. An application that does not take its events stops the reading from the
network, at a named bound.
"""

from collections import deque
from dataclasses import dataclass

from node.core import machine as m
from node.core.deliveries import RecordKind
from node.core.errors import RemoteProtocolError
from node.core.specification import NodeSpec
from node.protocols.sprinkler.batches import cut_before, event_payload, last_seq, unpack_events
from node.protocols.sprinkler.channel import Channel
from node.protocols.sprinkler.membership import own_proxy
from node.protocols.sprinkler.messages import (
    Advertisement,
    Counter,
    Events,
    Kind,
    Published,
    Refusal,
    Role,
    Subscribe,
)
from node.protocols.sprinkler.parameters import Parameters
from node.protocols.sprinkler.participant import Participant
from node.protocols.sprinkler.publisher import Publisher

KEPT_BATCHES = 256  # that the application has not taken, before nothing more is read


@dataclass(frozen=True, slots=True)
class Event:
    """What `get_event` gives. A tombstone stands for `range` collected events up to `seq` and has no data."""

    kind: Kind
    stream: int
    seq: int
    range: int
    data: bytes


class Client(Participant):
    """One client. `keeps_events` says that an application will take them with `get_event`."""

    role = Role.CLIENT

    def __init__(self, spec: NodeSpec, rng: m.Randomness, *, keeps_events: bool = False) -> None:
        parameters = Parameters(**spec.parameters)
        super().__init__(spec.name, parameters, rng, [own_proxy(spec, parameters, spec.index)])
        self.cnt = dict.fromkeys(sorted(spec.streams.values()), 0)
        self.publisher = Publisher(spec.streams[spec.region], parameters)
        self.duplicates = 0  # events that came again and were dropped
        self._keeps_events = keeps_events
        self._batches: deque[Events] = deque()  # for the application
        self._events: deque[Event] = deque()  # the first of them, taken apart
        self._paused: Channel | None = None  # not read from, until the application has taken its events
        self.takes = {
            (Role.PROXY, Events): self._deliver,
            (Role.PROXY, Published): self._published,
            (Role.PROXY, Advertisement): lambda channel, message: None,  # a heartbeat, nothing more
        }

    # --- The client interface (paper 2.1)

    def publish(self, event: bytes) -> int:
        """Queue one event for the region's stream; returns its request number. The next input sends it.

        It is published once `published_requests` has reached that number.
        """
        return self.publisher.request(event)

    def get_event(self) -> Event | None:
        """The next event in the order of its stream, or None if none is there now."""
        if not self._events:
            if not self._batches:
                return None
            self._events.extend(events_of(self._batches.popleft()))
        return self._events.popleft()

    @property
    def wants_reading(self) -> bool:
        """Whether the application has taken enough for reading to go on; the next input resumes it."""
        return self._paused is not None and len(self._batches) < KEPT_BATCHES // 2

    @property
    def published_requests(self) -> int:
        """Request number up to which everything is published."""
        return self.publisher.acknowledged

    # --- Hooks

    def started(self) -> None:
        """A new session of the record of deliveries."""
        self.emit(m.Record(RecordKind.SESSION, self.publisher.stream, 0, 0, 0))

    def opened(self, channel: Channel) -> None:
        """Take every stream from where we are, and repeat what is not acknowledged."""
        self.send(channel, *(Subscribe(stream, cnt) for stream, cnt in self.cnt.items()))
        self.publisher.rewind()

    def lost(self, channel: Channel, reason: str) -> None:
        """Its reading need not be resumed."""
        self._paused = None

    def settle(self) -> None:
        """Send what the application published, and read as long as it takes its events."""
        self.publisher.flush()
        for channel in list(self.channels.values()):
            self.publish_unsent(channel, self.publisher)
            if self._paused is None and len(self._batches) >= KEPT_BATCHES:
                self._paused = channel
                self.pause_reading(channel)
        if self._paused is not None and self.wants_reading:
            self.resume_reading(self._paused)
            self._paused = None

    def counters(self) -> list[Counter]:
        """How far it got."""
        return [Counter(stream, cnt) for stream, cnt in self.cnt.items()]

    def progress(self) -> m.Progress:
        """How far it got."""
        return m.Progress(delivered=self.cnt)

    # --- Its own parts

    def _deliver(self, channel: Channel, batch: Events) -> None:
        cnt = self.cnt.get(batch.stream)
        if cnt is None:
            self.refuse(channel, Refusal.UNKNOWN_STREAM, f"did not ask for {batch.stream}", batch.stream)
        elif last_seq(batch) <= cnt:
            self.duplicates += batch.count
        elif batch.first_seq > cnt + 1:
            self.log("hole", "warning", stream=batch.stream, cnt=cnt, first_seq=batch.first_seq)
            self.drop(channel, "a hole in its events")  # the new connection subscribes at our counter
        else:
            self._accept(batch if batch.first_seq > cnt else cut_before(batch, cnt))

    def _accept(self, batch: Events) -> None:
        stream = batch.stream
        self.cnt[stream] = last_seq(batch)
        if self._keeps_events:
            self._batches.append(batch)
        tombstone = batch.kind == Kind.TOMBSTONE
        payload = b"" if tombstone else event_payload(batch.count, batch.event_bytes, batch.payload)
        kind = RecordKind.TOMBSTONE if tombstone else RecordKind.DELIVERED
        self.emit(m.Record(kind, stream, batch.first_seq, batch.count, batch.count, payload))

    def _published(self, channel: Channel, message: Published) -> None:
        try:
            self.publisher.acknowledge(message)
        except RemoteProtocolError as error:
            self.refuse(channel, Refusal.UNEXPECTED, str(error))
            self.drop(channel, "unexpected acknowledgement", abort=False)


def events_of(batch: Events) -> list[Event]:
    """The single events of a batch; a tombstone is one."""
    if batch.kind == Kind.TOMBSTONE:
        return [Event(Kind.TOMBSTONE, batch.stream, last_seq(batch), batch.count, b"")]
    datas = unpack_events(batch.count, batch.event_bytes, batch.payload)
    kind = Kind(batch.kind)
    return [Event(kind, batch.stream, batch.first_seq + at, 1, data) for at, data in enumerate(datas)]
