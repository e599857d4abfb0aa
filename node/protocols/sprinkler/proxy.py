"""A proxy: the proxy-level protocol of the paper (3.1, Fig. 1), and the service to its region's drivers and
clients.

Its state is that of Fig. 1: pxID (`name`), streams (`own`), Hist and cnt (`history`), expects (in
`sources`). Its transitions have the paper's names: `add_local_event` for a driver's PUBLISH,
`add_remote_event` for another proxy's EVENTS, `receive_advertisement`. Events move in batches; a batch that
came in one input goes out to all its subscribers at the end of that input. Clients subscribe like proxies,
as in the paper's prototype (4).

Not here: replication (3.3), collection (3.4), the region-level protocol (3.2).
"""

from collections.abc import Iterable

from node.core import machine as m
from node.core.specification import NodeSpec
from node.protocols.sprinkler.batches import cut_before, last_seq, tombstone
from node.protocols.sprinkler.channel import Channel
from node.protocols.sprinkler.expects import SubscriptionRule
from node.protocols.sprinkler.history import History
from node.protocols.sprinkler.membership import owners, peers_to_dial, proxies, served
from node.protocols.sprinkler.messages import (
    Advertisement,
    Counter,
    Events,
    Publish,
    Refusal,
    Role,
    Subscribe,
    Unsubscribe,
)
from node.protocols.sprinkler.parameters import Parameters
from node.protocols.sprinkler.participant import Participant
from node.protocols.sprinkler.publications import Publications
from node.protocols.sprinkler.restoration import Restoration
from node.protocols.sprinkler.sources import Rule, Sources, Switch
from node.protocols.sprinkler.subscribers import Subscribers

RESTORE: m.Timer = ("restore",)
KEPT_PUBLISHERS = 4096  # whose latest requests are remembered


class Proxy(Participant):
    """One proxy without replicas."""

    role = Role.PROXY

    def __init__(self, spec: NodeSpec, rng: m.Randomness, *, rule: Rule | None = None) -> None:
        parameters = Parameters(**spec.parameters)
        super().__init__(spec.name, parameters, rng, peers_to_dial(spec, parameters))
        self.history = History(sorted(spec.streams.values()), parameters.history_limit_bytes)
        self._peers = [proxy.name for proxy in proxies(spec) if proxy.name != spec.name]
        self._region = [member.name for member in served(spec)]
        period_us = parameters.advertisement_period_us
        self.sources = Sources(
            self.history, rule or SubscriptionRule(period_us, parameters.rate_factor), period_us, self
        )
        owner_of = owners(spec)
        self.own = [stream for stream, owner in owner_of.items() if owner == spec.name]
        for stream in self.history.streams:
            self.sources.add(stream, owner_of.get(stream) if stream not in self.own else None)
        self.subscribers = Subscribers(self.history, self.send)
        self._publications = Publications(parameters.window_batches, KEPT_PUBLISHERS)
        self._restoration: Restoration | None = None
        self._held: list[tuple[Channel, Publish]] = []  # PUBLISH that came while restoring
        self._full = False  # history's limit has been logged
        self.takes = {
            (Role.PROXY, Advertisement): self.receive_advertisement,
            (Role.PROXY, Events): self.add_remote_event,
            (Role.PROXY, Subscribe): self._subscribe,
            (Role.PROXY, Unsubscribe): self._unsubscribe,
            (Role.CLIENT, Advertisement): self._note_advertisement,
            (Role.CLIENT, Subscribe): self._subscribe,
            (Role.CLIENT, Unsubscribe): self._unsubscribe,
            (Role.CLIENT, Publish): self.add_local_event,
            (Role.DRIVER, Advertisement): self._note_advertisement,
            (Role.DRIVER, Publish): self.add_local_event,
        }

    # --- Transitions of Fig. 1

    def add_local_event(self, channel: Channel, message: Publish) -> None:
        """addLocalEvent, for a batch: number, store, acknowledge it. A repetition is acknowledged only."""
        if message.stream not in self.own:
            code = Refusal.NOT_OWNER if message.stream in self.history.streams else Refusal.UNKNOWN_STREAM
            reason = f"{self.name} does not own stream {message.stream}"
            self.refuse(channel, code, reason, message.stream, message.first_request)
        elif self._restoration is not None:
            self._held.append((channel, message))
        elif not self.history.has_room(message.payload):
            self._log_full()
            reason = f"history is full ({self.history.limit_bytes} bytes)"
            self.refuse(channel, Refusal.HISTORY_FULL, reason, message.stream, message.first_request)
        else:
            publisher = (channel.name, channel.incarnation)
            self.send(channel, self._publications.take(publisher, message, lambda: self._number(message)))

    def add_remote_event(self, channel: Channel, batch: Events) -> None:
        """addRemoteEvent, for a batch. Wants seq - range <= cnt < seq of each event (checklist's reading)."""
        stream = self.history.streams.get(batch.stream)
        if stream is None or (batch.stream in self.own and self._restoration is None):
            code = Refusal.UNKNOWN_STREAM if stream is None else Refusal.UNEXPECTED
            self.refuse(channel, code, f"{self.name} does not take stream {batch.stream}", batch.stream)
        elif last_seq(batch) <= stream.cnt:
            return  # seen before: in flight from an earlier source when we switched
        elif batch.first_seq > stream.cnt + 1:
            if self.sources.resume(batch.stream, self.now_us):
                self.log("hole", "warning", stream=batch.stream, cnt=stream.cnt, first_seq=batch.first_seq)
        elif not self.history.has_room(batch.payload):
            self._log_full()
            self.sources.stop(batch.stream)
        else:
            self._store(batch if batch.first_seq > stream.cnt else cut_before(batch, stream.cnt))

    def receive_advertisement(self, channel: Channel, message: Advertisement) -> None:
        """rcvAdvertisement. An unknown stream in it is another configuration's, and left alone."""
        self._note_advertisement(channel, message)
        self.sources.advertised(channel.name, message.counters, self.now_us)

    # --- Subscriptions

    def _subscribe(self, channel: Channel, message: Subscribe) -> None:
        if message.stream not in self.history.streams:
            reason = f"stream {message.stream} is not known"
            self.refuse(channel, Refusal.UNKNOWN_STREAM, reason, message.stream)
            return
        if self._restoration is not None and message.stream in self.own:
            self._restoration.heard("", message.cnt)
        self.subscribers.subscribe(channel, message.stream, message.cnt)

    def _unsubscribe(self, channel: Channel, message: Unsubscribe) -> None:
        self.subscribers.unsubscribe(channel, message.stream)

    def subscribe(self, proxy: str, stream: int, cnt: int) -> None:
        """Subscribe(p', s, cnt) of Fig. 1, for `sources`."""
        if proxy in self.channels:
            self.send(self.channels[proxy], Subscribe(stream, cnt))

    def unsubscribe(self, proxy: str, stream: int) -> None:
        """Unsubscribe(source, s) of Fig. 1, for `sources`."""
        if proxy in self.channels:
            self.send(self.channels[proxy], Unsubscribe(stream))

    def source_switched(self, switch: Switch) -> None:
        """Log a change of source."""
        way = {"from": switch.before, "to": switch.after}  # `from` is no name for a keyword argument
        self.log("source_switched", stream=switch.stream, cnt=switch.cnt, why=switch.why, **way)

    # --- Hooks

    def started(self) -> None:
        """Listen, and take the own stream back."""
        self.emit(m.Listen(self.parameters.port))
        if self.own:
            until_us = self.now_us + self.parameters.restore_wait_us
            self._restoration = Restoration(self._peers + self._region, until_us)
            self.emit(m.SetTimer(RESTORE, until_us))

    def opened(self, channel: Channel) -> None:
        """Only the proxies of the run may speak as such."""
        if channel.role is Role.PROXY and channel.name not in self._peers:
            self.refuse(channel, Refusal.UNEXPECTED, f"no proxy {channel.name} belongs to this run")
            self.drop(channel, "unknown proxy", abort=False)

    def lost(self, channel: Channel, reason: str) -> None:
        """Forget its subscriptions, and find other sources for what came through it."""
        self.subscribers.forget(channel)
        self._held = [(held, message) for held, message in self._held if held is not channel]
        if channel.role is Role.PROXY:
            self.sources.lost(channel.name, "silence" if reason == "silent" else "lost", self.now_us)

    def writable(self, channel: Channel) -> None:
        """Go on where its cursors stand."""
        self.subscribers.serve(channel)

    def settle(self) -> None:
        """Pass on what came with this input."""
        if self._restoration is not None:
            self._restore(self._restoration)
        self.subscribers.flush()

    def is_ready(self) -> bool:
        """Connected with every other proxy, whoever dialled."""
        return all(name in self.channels for name in self._peers)

    def counters(self) -> Iterable[Counter]:
        """cnt of every stream."""
        return [Counter(number, stream.cnt) for number, stream in self.history.streams.items()]

    # --- Its own parts

    def _number(self, message: Publish) -> int:
        first_seq = self.history.streams[message.stream].cnt + 1
        self._store(
            Events(
                message.kind,
                message.predicate,
                message.stream,
                first_seq,
                message.count,
                message.event_bytes,
                message.argument,
                self.now_us,
                message.payload,
            )
        )
        return first_seq

    def _store(self, batch: Events) -> None:
        self.history.append(batch)
        self.subscribers.grew(batch.stream)

    def _note_advertisement(self, channel: Channel, message: Advertisement) -> None:
        if self._restoration is not None:
            told = {counter.stream: counter.cnt for counter in message.counters}
            self._restoration.heard(
                channel.name, max((told.get(stream, 0) for stream in self.own), default=0)
            )

    def _restore(self, restoration: Restoration) -> None:
        """End the restoration if nothing more will come, and then publish what was held."""
        for stream in self.own:
            cnt = self.history.streams[stream].cnt
            if not restoration.is_over(cnt, self.sources.furthest(stream), self.now_us):
                return
        self._restoration = None
        self.emit(m.CancelTimer(RESTORE))
        for stream in self.own:
            self.sources.remove(stream)
            cnt = self.history.streams[stream].cnt
            self.log("stream_taken", stream=stream, cnt=max(cnt, restoration.seen))
            if cnt < restoration.seen:
                self.log("events_lost", "error", stream=stream, first_seq=cnt + 1, last_seq=restoration.seen)
                self._store(tombstone(stream, cnt + 1, restoration.seen))
        held, self._held = self._held, []
        for channel, message in held:
            self.add_local_event(channel, message)

    def _log_full(self) -> None:
        if not self._full:
            self._full = True
            self.log("history_full", "error", limit_bytes=self.history.limit_bytes)
