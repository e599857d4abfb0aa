"""A driver: publishes events on its region's stream, in an open loop at a rate or in a closed loop (paper
5.1).

It calls the per-event `publish` of the client interface for every event. In an open loop batches are closed
once in a flush interval. While the one before is not acknowledged, a batch stays open and grows, for a
bounded number of intervals (as TCP holds back small segments, RFC 896): a batch costs every node as much as a
hundred of its events, so where machines or links are too slow for an interval, fewer and larger ones keep up.
It takes no events. Each acknowledged batch is put on record.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from node.core import machine as m
from node.core.collection_marks import encode_mark, keys_of
from node.core.deliveries import RecordKind
from node.core.errors import RemoteProtocolError
from node.core.specification import NodeSpec
from node.protocols.sprinkler.batches import event_payload, unpack_events
from node.protocols.sprinkler.channel import Channel
from node.protocols.sprinkler.configurations import Chains
from node.protocols.sprinkler.messages import (
    FINAL_REFUSALS,
    Advertisement,
    Configuration,
    Counter,
    Kind,
    Predicate,
    Publish,
    Published,
    Refusal,
    Refused,
    Role,
)
from node.protocols.sprinkler.parameters import Parameters
from node.protocols.sprinkler.participant import Participant
from node.protocols.sprinkler.publisher import Publisher
from node.protocols.sprinkler.workload import Collect, Workload, driver_tag

if TYPE_CHECKING:
    from node.protocols.sprinkler.key_popularity import Keys

TICK: m.Timer = ("tick",)
RETRY: m.Timer = ("retry",)


class Driver(Participant):
    """One driver. It publishes to the head of its region's proxy, whichever replica that is (3.3)."""

    role = Role.DRIVER

    def __init__(self, spec: NodeSpec, rng: m.Randomness) -> None:
        parameters = Parameters(**spec.parameters)
        self._chains = Chains(spec, parameters)
        self._region = spec.region
        super().__init__(spec.name, parameters, rng, self._chains.targets_for(spec.name))
        self._workload = Workload.from_mapping(spec.workload)
        self._keys = drawn_keys(self._workload, rng)
        self._collect = self._workload.collect
        at_first = Collect() if self._collect.seldom else self._collect
        self.publisher = Publisher(
            spec.owned_by(spec.region)[0], parameters, at_first.predicate, at_first.argument
        )
        self._collect_us = 0  # when the next event that collects is due, if they come by time
        drivers = sorted(member.name for member in spec.members if member.role == "driver")
        self._tag = driver_tag(drivers.index(spec.name) if spec.name in drivers else 0, spec.start)
        self._start_us: int | None = None
        self._stopped = False
        self._tick_us = 0  # when the next tick is due
        self._held = 0  # ticks for which the open batch was kept open
        self.takes = {
            (Role.PROXY, Published): self._published,
            (Role.PROXY, Advertisement): lambda channel, message: None,  # a heartbeat, nothing more
            (Role.CONFIGURATION, Advertisement): lambda channel, message: None,  # likewise
            (Role.CONFIGURATION, Configuration): self._configured,
        }

    # --- Hooks

    def started(self) -> None:
        """A new session of the record of deliveries."""
        self.emit(m.Record(RecordKind.SESSION, self.publisher.stream, 0, 0, 0))

    def opened(self, channel: Channel) -> None:
        """Repeat what is not acknowledged."""
        if channel.role is Role.PROXY:
            self.publisher.rewind()

    def go(self, given: m.Go) -> None:
        """Begin, each driver at its own point of the flush interval, so that they do not tick together."""
        self._start_us = given.start_us
        self._collect_us = given.start_us + self._collect.every_us
        self._tick_us = given.start_us + self.rng.randrange(self.parameters.flush_interval_us)
        self.emit(m.SetTimer(TICK, self._tick_us))

    def stop_drivers(self, given: m.StopDrivers) -> None:
        """Publish nothing new."""
        self._stopped = True
        self.emit(m.CancelTimer(TICK))
        self.publisher.flush()

    def timer_fired(self, timer: m.Timer) -> None:
        """A tick, or time to repeat what was refused."""
        if timer == RETRY:
            self.publisher.rewind()
        elif timer == TICK and not self._stopped:
            self._tick()

    def settle(self) -> None:
        """Send what is closed; in a closed loop first fill the window."""
        if self._workload.rate_per_s is None and self._start_us is not None and not self._stopped:
            self._fill_window()
        head = self.channels.get(self._chains.head(self._region) or "")
        if head is not None:
            self.publish_unsent(head, self.publisher)

    def is_ready(self) -> bool:
        """Connected with the head."""
        return self._chains.head(self._region) in self.channels

    def refused(self, channel: Channel, message: Refused) -> None:
        """A full history may have room later, and a replica become head; what else is refused is given up."""
        if message.code in {Refusal.HISTORY_FULL, Refusal.NOT_HEAD}:
            self.emit(m.SetTimer(RETRY, self.now_us + self.parameters.retry_us))
        elif message.code in FINAL_REFUSALS:
            self.publisher.reject(message.request)

    def counters(self) -> list[Counter]:
        """How far its publications are acknowledged: a proxy that lost its state learns it from this."""
        return [Counter(self.publisher.stream, self.publisher.published)]

    def progress(self) -> m.Progress:
        """The last acknowledged sequence number, and whether any will follow."""
        published = {self.publisher.stream: self.publisher.published}
        return m.Progress(published, silent=self._stopped and self.publisher.is_idle)

    # --- Its own parts

    def _tick(self) -> None:
        """Publish what is due by now, as far as the window has room; set the next tick on its schedule."""
        interval_us = self.parameters.flush_interval_us
        missed = max(0, self.now_us - self._tick_us) // interval_us
        self._tick_us += (missed + 1) * interval_us
        self.emit(m.SetTimer(TICK, self._tick_us))
        due = self._workload.due(self.now_us - (self._start_us or 0))
        while self.publisher.requested < due and self.publisher.has_room(self._open_bytes):
            self._publish(min(due - self.publisher.requested, self._batch_events()))
        if self.publisher.open_events and self._may_grow():
            self._held += 1
        else:
            self._close_batch()

    @property
    def _open_bytes(self) -> int:
        return self.publisher.open_events * self._workload.event_size_bytes

    def _may_grow(self) -> bool:
        """Whether the open batch waits for the acknowledgement of the one before."""
        publisher = self.publisher
        return (
            publisher.is_awaiting
            and self._held + 1 < self.parameters.flush_intervals
            and self._open_bytes < self.parameters.batch_limit_bytes
        )

    def _close_batch(self) -> None:
        self._held = 0
        self.publisher.flush()

    def _fill_window(self) -> None:
        """The closed loop: whole batches as long as the window has room."""
        if self._start_us is None or self.now_us < self._start_us:
            return
        while self.publisher.has_room():
            self._publish(self._batch_events())
            self.publisher.flush()

    def _batch_events(self) -> int:
        return max(1, self.parameters.batch_limit_bytes // self._workload.event_size_bytes)

    def _publish(self, count: int) -> None:
        publish = self.publisher.publish
        keys = self._keys.draw_bytes(count) if self._keys else ()
        first_request = self.publisher.requested + 1
        events = self._workload.events(first_request, count, self._tag, keys)
        if self._collect.seldom:
            self._publish_seldom_collecting(first_request, events)
            return
        for event in events:
            publish(event)

    def _publish_seldom_collecting(self, first_request: int, events: Sequence[bytes]) -> None:
        publisher, collect = self.publisher, self._collect
        for request, event in enumerate(events, first_request):
            if not self._collects(request):
                publisher.publish(event)
                continue
            publisher.collect(collect.predicate, collect.argument)
            publisher.publish(event)
            publisher.collect(Predicate.NONE, 0)

    def _collects(self, request: int) -> bool:
        """Whether it is this event's turn to collect."""
        if self._collect.one_of:
            return request % self._collect.one_of == 0
        if self.now_us < self._collect_us:
            return False
        missed = (self.now_us - self._collect_us) // self._collect.every_us
        self._collect_us += (missed + 1) * self._collect.every_us
        return True

    def _configured(self, channel: Channel, message: Configuration) -> None:
        if self._chains.learn(self._region, message):
            self.keep_connected(self._chains.targets_for(self.name))
            self.publisher.rewind()

    def _published(self, channel: Channel, message: Published) -> None:
        if message.first_request <= self.publisher.acknowledged:
            return  # what was repeated is acknowledged again
        try:
            batch = self.publisher.acknowledge(message)
        except RemoteProtocolError as error:
            self.refuse(channel, Refusal.UNEXPECTED, str(error))
            self.drop(channel, "unexpected acknowledgement", abort=False)
            return
        if self._held and not self.publisher.is_awaiting:
            self._close_batch()
        payload = event_payload(batch.count, batch.event_bytes, batch.payload)
        stream, first_seq, count = batch.stream, message.first_seq, batch.count
        mark = self._mark(batch, first_seq)
        self.emit(m.Record(RecordKind.PUBLISHED, stream, first_seq, count, count, payload, mark))

    def _mark(self, batch: Publish, first_seq: int) -> bytes:
        """What a checker has to know of a batch that collects, or is collected by key."""
        by_key = self._collect.predicate == Predicate.SAME_KEY
        collects = batch.kind == Kind.GC
        if not by_key and not (collects and self._collect.seldom):
            return b""
        events = unpack_events(batch.count, batch.event_bytes, batch.payload) if by_key else ()
        keys = keys_of(events, self._collect.argument)
        return encode_mark(batch.stream, first_seq, batch.count, collects=collects, keys=keys)


def drawn_keys(workload: Workload, rng: m.Randomness) -> "Keys | None":
    """Where the events' keys come from, if they have any."""
    if workload.keys is None:
        return None
    # NumPy costs every process 14 MB: only drivers with keys have it
    from node.protocols.sprinkler.key_popularity import Keys  # noqa: PLC0415

    return Keys.from_mapping(workload.keys, rng)
