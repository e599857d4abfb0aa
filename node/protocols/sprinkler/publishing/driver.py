"""A driver: publishes events on its streams, in an open loop at a rate or in a closed loop (paper 5.1).

These are usually its region's streams; it publishes on each at the proxy that manages it (2.2), and divides
the workload evenly among them (`stream_load`). It calls the per-event `publish` of the client interface for
every event, and receives none. Each acknowledged batch is recorded.
"""

from collections.abc import Sequence

from node.core import machine as m
from node.core.deliveries import RecordKind
from node.core.specification import NodeSpec
from node.protocols.sprinkler.chain.participant import RETRY, Participant
from node.protocols.sprinkler.messages import (
    Configuration,
    Counter,
    Published,
    Refused,
    Role,
)
from node.protocols.sprinkler.publishing.channel import SprinklerChannel
from node.protocols.sprinkler.region.stream_load import Keys, StreamLoad
from node.protocols.sprinkler.storage.batches import event_payload
from node.protocols.sprinkler.workload import DriverWorkload, driver_tag

TICK: m.Timer = ("tick",)


class Driver(Participant):
    """A driver: publishes to the head of a region's proxy, whichever replica that is (3.3)."""

    role = Role.DRIVER

    def __init__(self, spec: NodeSpec, rng: m.Randomness) -> None:
        super().__init__(spec, rng)
        self._workload = DriverWorkload.from_mapping(spec.workload)
        drivers = sorted(member.name for member in spec.members if member.role == "driver")
        tag = driver_tag(drivers.index(spec.name) if spec.name in drivers else 0, spec.start)
        streams, keys = spec.published_by(spec), key_source(self._workload, rng)
        self.loads = {
            stream: StreamLoad(
                stream, (number, len(streams)), self._workload, self.parameters, tag=tag, keys=keys
            )
            for number, stream in enumerate(streams)
        }
        self._owners = {stream: spec.homes[stream] for stream in streams}
        self._start_us: int | None = None
        self._stopped = False
        self._tick_us = 0  # when the next tick is due
        self.takes = {
            (Role.PROXY, Published): self._published,
            (Role.CONFIGURATION, Configuration): self._configured,
        }

    # --- Hooks

    def started(self) -> None:
        """Begin a session of the record of deliveries."""
        self.begin_session(next(iter(self.loads), 0))

    def opened(self, channel: SprinklerChannel) -> None:
        """Repeat unacknowledged publications."""
        super().opened(channel)
        if channel.role is Role.PROXY:
            self._rewind(self.chains.region_of(channel.name))

    def go(self, given: m.Go) -> None:
        """Begin, each driver at its own offset in the flush interval, so that they do not tick together."""
        self._start_us = given.start_us
        for load in self.loads.values():
            load.begin(given.start_us)
        self._tick_us = given.start_us + self.rng.randrange(self.parameters.flush_interval_us)
        self.emit(m.SetTimer(TICK, self._tick_us))

    def stop_drivers(self, given: m.StopDrivers) -> None:
        """Publish nothing new; finish operations in progress."""
        self._stopped = True
        self.emit(m.CancelTimer(TICK))
        for load in self.loads.values():
            load.publisher.flush()

    def timer_fired(self, timer: m.Timer) -> None:
        """Handle a tick, or repeat a refused batch."""
        if timer[0] == RETRY:
            self.loads[int(timer[1])].publisher.rewind()
        elif timer == TICK and not self._stopped:
            self._tick()

    def settle(self) -> None:
        """Send closed batches; in a closed loop first fill the window."""
        fills = self._workload.rate_per_s is None and self._runs_now
        for stream, load in self.loads.items():
            if fills:
                load.fill_window(self.now_us)
            head = self.channels.get(self.chains.head(self._owners[stream]) or "")
            if head is not None:
                self.publish_unsent(head, load.publisher)

    def is_ready(self) -> bool:
        """Return whether it is connected with the heads of all regions on whose streams it publishes."""
        return all(self.chains.head(owner) in self.channels for owner in self._owners.values())

    def refused(self, channel: SprinklerChannel, message: Refused) -> None:
        """Give up a permanently rejected publication."""
        if message.stream in self.loads:
            self.reject_publication(message, self.loads[message.stream].publisher)

    def counters(self) -> list[Counter]:
        """Return the counters of acknowledged publications, which a proxy that lost its state needs."""
        return [Counter(stream, load.publisher.published) for stream, load in self.loads.items()]

    def progress(self) -> m.NodeProgress:
        """Return the last acknowledged sequence numbers, and whether more will follow."""
        published = {stream: load.publisher.published for stream, load in self.loads.items()}
        is_idle = all(load.publisher.is_idle for load in self.loads.values())
        return m.NodeProgress(published, silent=self._stopped and is_idle)

    # --- Its own parts

    @property
    def _runs_now(self) -> bool:
        return self._start_us is not None and self.now_us >= self._start_us and not self._stopped

    def _rewind(self, region: str | None) -> None:
        """Repeat unacknowledged publications on this region's streams."""
        for stream, load in self.loads.items():
            if self._owners[stream] == region:
                load.publisher.rewind()

    def _tick(self) -> None:
        """Publish all due events; set the next tick on its schedule."""
        interval_us = self.parameters.flush_interval_us
        missed = max(0, self.now_us - self._tick_us) // interval_us
        self._tick_us += (missed + 1) * interval_us
        self.emit(m.SetTimer(TICK, self._tick_us))
        due = self._workload.due(self.now_us - (self._start_us or 0))
        for load in self.loads.values():
            load.tick(due, self.now_us)

    def _configured(self, channel: SprinklerChannel, message: Configuration) -> None:
        if region := self.learned(channel, message):
            self.keep_connected(self.chains.targets_for(self.name))
            self._rewind(region)

    def _published(self, channel: SprinklerChannel, message: Published) -> None:
        load = self.loads.get(message.stream)
        if load is not None and message.first_request <= load.publisher.acknowledged:
            return  # a repeated batch is acknowledged again
        batch = self.acknowledge(channel, message, None if load is None else load.publisher)
        if load is None or batch is None:
            return
        load.acknowledged()
        payload = event_payload(batch.count, batch.event_bytes, batch.payload)
        stream, first_seq, count = batch.stream, message.first_seq, batch.count
        mark = load.mark(batch, first_seq)
        self.emit(m.Record(RecordKind.PUBLISHED, stream, first_seq, count, count, payload, mark))


def key_source(workload: DriverWorkload, rng: m.Randomness) -> Keys:
    """Return a function that draws the keys of the workload's events; one without keys if they have none."""
    if workload.keys is None:
        return no_keys
    # NumPy costs every process 14 MB: only drivers with keys have it
    from node.protocols.sprinkler.storage.key_popularity import KeyDraws as Popularity  # noqa: PLC0415

    return Popularity.from_mapping(workload.keys, rng).draw_bytes


def no_keys(count: int) -> Sequence[bytes]:
    """Return no keys, for events without keys."""
    return ()
