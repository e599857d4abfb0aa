"""A client: receives every event of every stream within its region (paper 3.2), for an application (2.1).

`dissemination` handles its neighbours (its view, NOTIFY, answers), `requests` asks for events, and `recv` is
its Recv. It is connected with the tail of its region's proxy, the region's configuration service, its
neighbours, and the heads of the proxies that manage the streams on which it publishes (2.2). A neighbour that
leaves the view stays connected for a short time, because it may still be answering.

Each batch is recorded with its events' bytes. Applications use `get_events` and `publish`; the testbed's
clients only record. If an application does not take its events, requests pause at a named limit.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from node.core import machine as m
from node.core.errors import LocalProtocolError
from node.core.peers.dialing import Target
from node.core.specification import NodeSpec
from node.protocols.sprinkler.chain.participant import RETRY, Participant
from node.protocols.sprinkler.messages import (
    Advertisement,
    Answered,
    Configuration,
    Counter,
    Events,
    Notify,
    Predicate,
    Published,
    Refused,
    Role,
    SparseEvents,
    View,
)
from node.protocols.sprinkler.publishing.channel import SprinklerChannel
from node.protocols.sprinkler.publishing.publisher import StreamPublisher
from node.protocols.sprinkler.region.application import DeliveredEvent, Rejection, events_of, record_of
from node.protocols.sprinkler.region.dissemination import Dissemination
from node.protocols.sprinkler.region.recv import Recv
from node.protocols.sprinkler.region.requests import Requests
from node.protocols.sprinkler.storage.batches import Batch

SWEEP: m.Timer = ("sweep",)
SWEEPS_A_TIMEOUT = 2
KEPT_BATCHES = 256  # not taken by the application, before requests pause


class Client(Participant):
    """One client of a region. keeps_events: whether an application takes them with `get_events`."""

    role = Role.CLIENT

    def __init__(self, spec: NodeSpec, rng: m.Randomness, *, keeps_events: bool = False) -> None:
        super().__init__(spec, rng)
        parameters = self.parameters
        self._region = spec.region
        self._tail = self.chains.tail(spec.region)
        self._homes = spec.homes
        self.own_stream = next(iter(spec.owned_by(spec.region)), None)
        self.recv = Recv(range(len(spec.homes)), parameters.recv_limit_bytes)
        self.dissemination = Dissemination(self, self.recv, spec)
        self.requests = Requests(
            self, range(len(spec.homes)), parameters.recv_limit_bytes, parameters.request_timeout_us
        )
        self.publishers: dict[int, StreamPublisher] = {}  # by stream, for those that it publishes on
        self.rejections: deque[Rejection] = deque()  # permanently rejected publications; for the application
        self._targets: dict[int, Target] = {}  # of neighbours
        self._left: dict[int, int] = {}  # former neighbours, and since when
        self._keeps_events = keeps_events
        self._batches: deque[Batch] = deque()  # for the application
        for_both: Mapping[type, Callable[[SprinklerChannel, Any], None]] = {
            Events: self.requests.receive_events,
            SparseEvents: self.requests.receive_events,
            Notify: self.requests.receive_notify,
            Answered: self.requests.answered,
            View: self.dissemination.receive_view,
        }
        self.takes = {
            **{(role, kind): take for role in (Role.CLIENT, Role.PROXY) for kind, take in for_both.items()},
            **self.dissemination.takes,
            (Role.PROXY, Published): self._published,
            (Role.PROXY, Advertisement): self._proxy_advertised,
            (Role.CONFIGURATION, Configuration): self._configured,
        }

    # --- The client interface (paper 2.1)

    def publish(
        self,
        event: bytes,
        predicate: Predicate = Predicate.NONE,
        argument: int = 0,
        stream: int | None = None,
    ) -> int:
        """Queue one event; return its number among the stream's requests. The next input sends it.

        stream: of any region; default: the first of the client's own region. With a predicate it is a garbage
        collection event. It is published once `published_requests` has reached its number, unless it is among
        the `rejections`. Raises LocalProtocolError for an unknown stream or too large an event.
        """
        stream = self.own_stream if stream is None else stream
        if stream is None or not 0 <= stream < len(self._homes):
            raise LocalProtocolError(f"there is no stream {stream}: known are 0 to {len(self._homes) - 1}")
        publisher = self.publishers.setdefault(stream, StreamPublisher(stream, self.parameters))
        publisher.collect(predicate, argument)
        return publisher.request(event)

    def get_events(self) -> Iterator[DeliveredEvent] | None:
        """Return an iterator over the events of the next batch; None if there is none now."""
        return iter(events_of(self._batches.popleft())) if self._batches else None

    @property
    def wants_reading(self) -> bool:
        """Return whether requests may continue, because the application has taken enough events; the next
        input resumes them.
        """
        return self.requests.paused and len(self._batches) < KEPT_BATCHES // 2

    def published_requests(self, stream: int) -> int:
        """Return the request number up to which everything is published on a stream."""
        return self.publishers[stream].acknowledged if stream in self.publishers else 0

    # --- Hooks

    def started(self) -> None:
        """Begin a session of the record of deliveries; listen to the neighbours."""
        self.begin_session(self.own_stream or 0)
        self.emit(m.Listen(self.parameters.port))
        self.emit(m.SetTimer(SWEEP, self.now_us + self._sweep_us))
        self.recv.keep(keeps=False)  # until there is a peer
        self.dissemination.start()

    def opened(self, channel: SprinklerChannel) -> None:
        """Register with the tail and repeat unacknowledged publications to the head."""
        super().opened(channel)
        if channel.role is Role.CLIENT:
            self.recv.keep(keeps=True)
        self.dissemination.opened(channel)
        if channel.name == self._tail:
            self._tail_opened(channel)
        self._rewind(channel.name)

    def lost(self, channel: SprinklerChannel, reason: str) -> None:
        """Request from the proxy the events that this peer was asked for."""
        self.dissemination.lost(channel)
        self.requests.lost(channel)
        if not any(peer.role is Role.CLIENT for peer in self.channels.values()):
            self.recv.keep(keeps=False)

    def writable(self, channel: SprinklerChannel) -> None:
        """Continue sending on this channel."""
        self.dissemination.writable(channel)

    def timer_fired(self, timer: m.Timer) -> None:
        """Check for overdue answers, repeat refused publications, or run a timer of dissemination."""
        if timer == SWEEP:
            self.emit(m.SetTimer(SWEEP, self.now_us + self._sweep_us))
            self.requests.sweep()
            self._forget_left()
        elif timer[0] == RETRY:
            self.publishers[int(timer[1])].rewind()
        else:
            self.dissemination.timer_fired(timer)

    def check(self) -> None:
        """See `node.core.machine.Machine`."""
        super().check()
        self.recv.check()
        self.requests.check()

    def settle(self) -> None:
        """Send notifications of deliveries, the application's publications, and requests as far as there is
        room.
        """
        self.dissemination.flush()
        if self._keeps_events:
            self._publish()
            if len(self._batches) >= KEPT_BATCHES:
                self.requests.paused = True
            elif self.wants_reading:
                self.requests.resume()

    def refused(self, channel: SprinklerChannel, message: Refused) -> None:
        """Report rejected publications to the application."""
        publisher = self.publishers.get(message.stream)
        if publisher is not None and (batch := self.reject_publication(message, publisher)):
            last = batch.first_request + batch.count - 1
            self.rejections.append(Rejection(batch.stream, batch.first_request, last, message.reason))

    def is_ready(self) -> bool:
        """Return whether this client is connected with its region's proxy."""
        return self._tail in self.channels

    def counters(self) -> Sequence[Counter]:
        """Return the last event delivered of each stream."""
        return [Counter(stream, each.cnt) for stream, each in self.requests.streams.items()]

    def progress(self) -> m.NodeProgress:
        """Return the last event delivered of each stream."""
        return m.NodeProgress(
            delivered={stream: progress.cnt for stream, progress in self.requests.streams.items()}
        )

    # --- For dissemination and requests

    def proxy_channel(self) -> SprinklerChannel | None:
        """Return the channel to the tail of the region's proxy, if connected."""
        return self.channels.get(self._tail) if self._tail is not None else None

    def view_changed(self) -> None:
        """Connect with the present neighbours; former ones stay connected for a request timeout."""
        neighbours = self._neighbours()
        for member in self._targets:
            if member not in neighbours:
                self._left.setdefault(member, self.now_us)
        for member in neighbours:
            self._left.pop(member, None)
        self._connect()

    def deliver(self, batch: Batch, cnt: int) -> None:
        """Execute deliverEvent (Fig. 3): add to Recv, record, and send a NOTIFY at the end of the input."""
        self.recv.add(batch, cnt)
        self.dissemination.grew(batch.stream)
        if self._keeps_events:
            self._batches.append(batch)
        self.emit(record_of(batch, cnt))

    # --- Its own parts

    @property
    def _sweep_us(self) -> int:
        return max(1, self.parameters.request_timeout_us // SWEEPS_A_TIMEOUT)

    def _neighbours(self) -> list[int]:
        return [member for member in self.dissemination.view.members if member != self.dissemination.proxy]

    def _connect(self) -> None:
        """Set the processes to be connected with."""
        known, port = self._targets, self.parameters.port
        self._targets = {
            member: known.get(member)
            or Target(self.dissemination.member(member).name, self.dissemination.member(member).address, port)
            for member in [*self._neighbours(), *self._left]
        }
        owners = dict.fromkeys(self._homes[stream] for stream in self.publishers)
        chain = self.chains.targets_for(self.name, owners)
        self.keep_connected([*chain, *self._targets.values()])

    def _forget_left(self) -> None:
        """Disconnect neighbours that left the view long enough ago."""
        before_us = self.now_us - self.parameters.request_timeout_us
        gone = [member for member, since_us in self._left.items() if since_us <= before_us]
        for member in gone:
            del self._left[member]
        if gone:
            self._connect()

    def _configured(self, channel: SprinklerChannel, message: Configuration) -> None:
        """Apply a change of a region's chain: another tail may serve, another head may take publications."""
        heads = {region: self.chains.head(region) for region in self.chains.regions}
        region = self.learned(channel, message)
        if region is None:
            return
        tail, self._tail = self._tail, self.chains.tail(self._region)
        if tail != self._tail and tail in self.channels:
            self.requests.lost(self.channels[tail])
        self._connect()
        if tail != self._tail and self._tail in self.channels:
            self._tail_opened(self.channels[self._tail])
        if heads[region] != self.chains.head(region):
            self._rewind(self.chains.head(region))

    def _tail_opened(self, channel: SprinklerChannel) -> None:
        self.dissemination.send_view(channel)
        self.requests.proxy_opened()

    def _proxy_advertised(self, channel: SprinklerChannel, message: Advertisement) -> None:
        if channel.name == self._tail:
            self.requests.advertised(message.counters)

    def _rewind(self, head: str | None) -> None:
        """Repeat unacknowledged publications to a new head or a restarted head process."""
        for stream, publisher in self.publishers.items():
            if head in self.channels and head == self.chains.head(self._homes[stream]):
                publisher.rewind()

    def _publish(self) -> None:
        """Send due publications to the heads, and connect with them from the first publication on."""
        for stream, publisher in self.publishers.items():
            publisher.flush()
            owner = self._homes[stream]
            head = self.chains.head(owner)
            channel = self.channels.get(head or "")
            if channel is not None:
                self.publish_unsent(channel, publisher)
            elif (head or self.chains.service(owner)) not in self.dialers:
                self._connect()

    def _published(self, channel: SprinklerChannel, message: Published) -> None:
        self.acknowledge(channel, message, self.publishers.get(message.stream))
