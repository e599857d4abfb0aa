"""A replica of a region's proxy: the machine, and which of its parts are active in the present configuration.

Its state is that of the paper's Fig. 1: pxID (`name`), streams (`own`), Hist and cnt (`history`), expects (in
the head's `sources`). Its parts:

- `chain`: messages from the predecessor and to the successor, and the commit point (3.3).
- `head`, if it is the head of the chain: publications, and the peers' events (3.1).
- `tail`: serves committed events. It is active if it is the tail of the chain, to which peers' heads and
  clients connect; then it advertises to the peers and takes part in the region-level protocol (3.2).
- `journal`: events on disk, if replicas are durable.
- `place`: which of them are active, decided by every configuration.

A replica without others is head and tail. Events of one input are forwarded at the end of that input
(`settle`). A replica of a region with a configuration service waits for it before it does anything.
"""

from collections.abc import Iterable, Mapping, Sequence

from node.core import machine as m
from node.core.epochs import SEQ_MAX
from node.core.specification import NodeSpec
from node.protocols.sprinkler.chain.chain import Replication
from node.protocols.sprinkler.chain.chain_position import ChainPosition
from node.protocols.sprinkler.chain.configurations import ReplicaChain
from node.protocols.sprinkler.chain.head import Head
from node.protocols.sprinkler.chain.participant import Participant
from node.protocols.sprinkler.chain.tail import Tail
from node.protocols.sprinkler.messages import (
    Advertisement,
    Configuration,
    Counter,
    DiskState,
    Events,
    Follow,
    Paths,
    Publication,
    Publish,
    Refusal,
    Refused,
    Role,
    SparseEvents,
    Status,
    Stored,
    Subscribe,
    Token,
    Unsubscribe,
    Whole,
)
from node.protocols.sprinkler.parameters import roles_problem
from node.protocols.sprinkler.paths import RegionPaths, paths_of
from node.protocols.sprinkler.printed_rule import PrintedSources
from node.protocols.sprinkler.publishing.channel import SprinklerChannel
from node.protocols.sprinkler.publishing.publications import Publications
from node.protocols.sprinkler.sources import StreamSources, Switch
from node.protocols.sprinkler.storage.batches import PLACEHOLDERS, cut_before, last_seq
from node.protocols.sprinkler.storage.history import EventHistory
from node.protocols.sprinkler.storage.history_samples import HistorySamples
from node.protocols.sprinkler.storage.journal import Journal, Volatile
from node.protocols.sprinkler.stream_clock import StreamClock

Batch = Events | SparseEvents


RULES: Mapping[str, type[StreamSources]] = {"paths": StreamSources, "paper": PrintedSources}


class Proxy(Participant):
    """One replica of a region's proxy."""

    role = Role.PROXY

    def __init__(
        self,
        spec: NodeSpec,
        rng: m.Randomness,
        *,
        sources: type[StreamSources] | None = None,
    ) -> None:
        super().__init__(spec, rng)
        replicas, service = self.chains.replicas(spec.region), self.chains.service(spec.region)
        if problem := roles_problem({"proxy": len(replicas), "configuration": int(service is not None)}):
            raise ValueError(f"{spec.name}: {problem}")
        self.region = spec.region
        self._streams = range(len(spec.homes))
        self.own: Sequence[int] = spec.owned_by(spec.region)
        self.history = self.empty_history()
        self._ours = frozenset(each.name for each in spec.members if each.region == spec.region)
        self.stream_clocks: Mapping[int, StreamClock] = {stream: StreamClock() for stream in self.own}
        self.publications = Publications(self.parameters.window_batches, self.parameters.publishers_limit)
        self.journal = self._journal(spec)
        self._unread: list[SprinklerChannel] = []  # until the disk has caught up
        self.chain = Replication(self, ReplicaChain(0, 0))
        self.head: Head | None = None
        # by stream, the first temporarily refused publication
        self._put_off: dict[tuple[SprinklerChannel, int], Publish] = {}
        self.tail = Tail(self, spec)
        self._position = ChainPosition(self, spec, sources or RULES[self.parameters.subscription_rule])
        self._paths = RegionPaths(self)
        self._samples = HistorySamples()
        self.takes = {
            (Role.PROXY, Advertisement): self.receive_advertisement,
            (Role.PROXY, Paths): self._receive_paths,
            (Role.PROXY, Events): self._receive_events,
            (Role.PROXY, SparseEvents): self._receive_events,
            (Role.PROXY, Subscribe): self._subscribe,
            (Role.PROXY, Unsubscribe): self.tail.unsubscribe,
            (Role.PROXY, Follow): self.chain.receive_follow,
            (Role.PROXY, Publication): self._receive_publication,
            (Role.PROXY, Stored): self.chain.receive_stored,
            (Role.PROXY, Token): self.chain.receive_token,
            (Role.PROXY, Whole): self._receive_whole,
            (Role.CLIENT, Advertisement): self._note_advertisement,
            (Role.CLIENT, Subscribe): self._subscribe,
            (Role.CLIENT, Unsubscribe): self.tail.unsubscribe,
            (Role.CLIENT, Publish): self._publish,
            (Role.DRIVER, Advertisement): self._note_advertisement,
            (Role.DRIVER, Publish): self._publish,
            (Role.CONFIGURATION, Configuration): self._configured,
            **self.tail.dissemination.takes,
        }

    def is_ours(self, name: str) -> bool:
        """Return whether this process belongs to the own region."""
        return name in self._ours

    @property
    def others(self) -> int:
        """Number of other regions."""
        return len(self.chains.regions) - 1

    def _journal(self, spec: NodeSpec) -> Volatile:
        if not self.parameters.durable:
            return Volatile(self.history)
        if spec.storage is None:
            raise ValueError(f"{spec.name}: durable replicas need a directory for their storage")
        return Journal(self.history, self.publications, self.emit, self.parameters)

    def empty_history(self) -> EventHistory:
        """Return an empty Hist."""
        return EventHistory(self._streams, self.parameters.history_limit_bytes)

    # --- Configurations

    def _configured(self, channel: SprinklerChannel, message: Configuration) -> None:
        """Apply the chain of a region, sent by its service."""
        region = self.chains.served_by(channel.name)
        if self.learned(channel, message):
            if region == self.region:
                self._position.take()
            self._connect()
        if region == self.region:
            self._send_status()

    def _connect(self) -> None:
        """Connect with the processes that the present configurations require."""
        self.keep_connected(self.chains.targets_for(self.name))

    def begin_anew(self) -> None:
        """Drop the whole Hist: the chain continued without this replica, and may have other events."""
        self.history = self.empty_history()
        self.tail.start_over(self.history)
        self._samples = HistorySamples()
        self.journal.start_over(self.history)

    # --- Publications

    def _publish(self, channel: SprinklerChannel, message: Publish) -> None:
        """Pass a publication to the head; refuse those that follow a temporarily refused one."""
        first = self._put_off.get((channel, message.stream))
        if first is not None and message.first_request > first.first_request:
            refused = Refused(Refusal.STALE, message.stream, message.first_request, "follows a refused one")
            self.send(channel, refused)
            return
        self._put_off.pop((channel, message.stream), None)
        if self.head is not None:
            self.head.add_local_event(channel, message)
        else:
            self.put_off(channel, message, Refusal.NOT_HEAD, f"{self.name} is not the head of its chain")

    def put_off(self, channel: SprinklerChannel, message: Publish, code: Refusal, reason: str) -> None:
        """Refuse a publication that may be repeated later, and those that follow it until then."""
        self._put_off[channel, message.stream] = message
        self.refuse(channel, code, reason, message.stream, message.first_request)

    def publication_taken(self, publication: Publication) -> None:
        """Store the publisher of the next events."""
        forgotten = self.publications.forgotten
        if self.publications.add(publication):
            self.journal.write(publication)
        if not forgotten and self.publications.forgotten:
            self.log("publisher_forgotten", "warning", publishers_limit=self.parameters.publishers_limit)

    def taken_back(self) -> None:
        """Record that the region's streams are complete, on disk, too."""
        self._position.taken_back()

    def _receive_publication(self, channel: SprinklerChannel, message: Publication) -> None:
        if self.chain.receive_publication(channel, message):
            self.journal.write(message)

    def whole_at(self) -> Mapping[int, int] | None:
        """Return the counters of the region's streams when they became complete; None: not known to be
        complete.
        """
        return self._position.whole_at()

    def _receive_whole(self, channel: SprinklerChannel, message: Whole) -> None:
        """Handle WHOLE: the predecessor has sent everything that the region's streams had when they became
        complete.
        """
        chain = self.chain.chain
        if self.chain.comes_from_predecessor(channel) and message.configuration == chain.number:
            self.taken_back()

    # --- Events and subscriptions

    def _receive_events(self, channel: SprinklerChannel, batch: Batch) -> None:
        """Handle events from the predecessor or a peer's tail; stop reading while the disk is behind."""
        if not self.journal.has_room and channel.is_read:
            self.pause_reading(channel)
            self._unread.append(channel)
        if not self.is_ours(channel.name):
            if self.head is not None:
                self.head.add_remote_event(channel, batch)
            return
        stream = self.history.streams.get(batch.stream)
        if stream is None or not self.chain.comes_from_predecessor(channel):
            return  # of an earlier configuration
        if batch.first_seq <= stream.cnt + 1 <= last_seq(batch):
            self.store(batch if batch.first_seq > stream.cnt else cut_before(batch, stream.cnt))

    def receive_advertisement(self, channel: SprinklerChannel, message: Advertisement) -> None:
        """Handle a peer tail's advertisement (rcvAdvertisement); within the region it is a heartbeat."""
        region = self.chains.region_of(channel.name)
        if self.head is None or region is None or region == self.region or not message.counters:
            return
        self.head.counters_reported(region, message.counters)
        self.head.sources.advertised(channel.name, message.counters, self.now_us)

    def _receive_paths(self, channel: SprinklerChannel, message: Paths) -> None:
        """Handle paths from a peer's tail, or from the predecessor: those by which the own head gets the
        streams.
        """
        if self.chain.comes_from_predecessor(channel):
            self._paths.learn(message)
        elif self.head is not None and not self.is_ours(channel.name):
            self.head.sources.told_paths(channel.name, paths_of(message))

    def _note_advertisement(self, channel: SprinklerChannel, message: Advertisement) -> None:
        if self.head is not None:
            self.head.counters_reported(channel.name, message.counters)

    def _subscribe(self, channel: SprinklerChannel, message: Subscribe) -> None:
        if self.tail.subscribe(channel, message) and self.head is not None and message.stream in self.own:
            self.head.counters_reported("", (Counter(message.stream, message.cnt),))

    def subscribe(self, proxy: str, stream: int, cnt: int) -> None:
        """Send Subscribe(p', s, cnt) of Fig. 1, for `sources`."""
        if proxy in self.channels:
            self.send(self.channels[proxy], Subscribe(stream, cnt))

    def unsubscribe(self, proxy: str, stream: int) -> None:
        """Send Unsubscribe(source, s) of Fig. 1, for `sources`."""
        if proxy in self.channels:
            self.send(self.channels[proxy], Unsubscribe(stream))

    def source_switched(self, switch: Switch) -> None:
        """Log a change of source."""
        way = {"from": switch.before, "to": switch.after}  # `from` cannot be a keyword argument
        self.log("source_switched", stream=switch.stream, cnt=switch.cnt, why=switch.why, **way)

    # --- Hooks

    def restored(self, stored: Iterable[m.StoredSegment]) -> None:
        """Restore Hist and publications from disk."""
        self.journal.restore(stored)
        self._position.restored()

    def synced(self, appended: int) -> None:
        """Handle that more events are durable."""
        had_failed = self.journal.has_failed
        for stream in self.journal.note_synced(appended):
            self.chain.grew(stream)
        if had_failed:
            self._send_status()

    def storage_failed(self, given: m.StorageFailed) -> None:
        """Handle a full disk: this replica accepts nothing, and the chain continues without it if it can."""
        self.journal.note_failed()
        self._send_status()

    def started(self) -> None:
        """Listen; without a service, take the position in the chain at once."""
        self.emit(m.Listen(self.parameters.port))
        if self.chains.service(self.region) is None:
            self._position.take()

    def opened(self, channel: SprinklerChannel) -> None:
        """Handle a new connection; disconnect proxies that do not belong to the run."""
        super().opened(channel)
        region = self.chains.region_of(channel.name)
        if channel.role is Role.PROXY and channel.name not in self.chains.replicas(region or ""):
            self.refuse(channel, Refusal.UNEXPECTED, f"no proxy {channel.name} belongs to this run")
            self.drop(channel, "unknown proxy", abort=False)
            return
        if channel.role is Role.CONFIGURATION and channel is self.service_channel():
            self._report_to_service(channel)
        self.chain.opened(channel)
        self.tail.dissemination.opened(channel)
        if channel.role is Role.PROXY and self.tail.is_active and not self.is_ours(channel.name):
            self._paths.send_to(channel)

    def lost(self, channel: SprinklerChannel, reason: str) -> None:
        """Forget the subscriptions of a lost channel, and find other sources for its streams."""
        self.tail.lost(channel)
        self.chain.lost(channel)
        for key in [key for key in self._put_off if key[0] is channel]:
            del self._put_off[key]
        if self.head is not None:
            self.head.lost(channel)
            if channel.role is Role.PROXY:
                why = "silence" if reason == "silent" else "lost"
                self.head.sources.lost(channel.name, why, self.now_us)

    def writable(self, channel: SprinklerChannel) -> None:
        """Continue sending on a channel with room."""
        self.tail.writable(channel)

    def timer_fired(self, timer: m.Timer) -> None:
        """Run a timer of dissemination; the end of a recovery's wait is handled by `settle`."""
        self.tail.dissemination.timer_fired(timer)

    def check(self) -> None:
        """See `node.core.machine.Machine`."""
        super().check()
        self.history.check()
        self.publications.check()
        self.journal.check()

    def settle(self) -> None:
        """Forward the results of this input."""
        head, tail, members = self.head, self.tail, self.chain.chain.members
        assert head is None or members[0] == self.name, "a head other than the chain's"
        assert not tail.is_active or members[-1] == self.name, "a tail other than the chain's"
        if head is not None:
            if head.is_restoring:
                head.settle()
            if head.sources.paths_changed:
                self._paths.set(head.paths())
        self._paths.flush(self.chain.successor, is_tail=tail.is_active)
        self.chain.advance()
        self.journal.flush()
        if self._unread and self.journal.has_room:
            unread, self._unread = self._unread, []
            for channel in unread:
                if self.channels.get(channel.name) is channel:
                    self.resume_reading(channel)
        tail.flush()
        self.history.collect_some()
        if self.history.grown:
            for row in self._samples.due(self.history):
                self.log("hist", **row)

    def is_ready(self) -> bool:
        """Return whether it is in the chain, and connected with all processes that its position requires."""
        chain = self.chains.chain(self.region)
        if self.name not in chain.members or not chain.has(self.name, self.incarnation):
            return False
        if self.head is None and not self.chain.follows:
            return False
        return all(name in self.channels for name in self._demanded(chain))

    def _demanded(self, chain: ReplicaChain) -> Iterable[str]:
        for region in self.chains.regions:
            if region != self.region and chain.head == self.name:
                yield self.chains.tail(region) or "nobody"
            if region != self.region and chain.tail == self.name:
                yield self.chains.head(region) or "nobody"

    def counters(self) -> Iterable[Counter]:
        """Return the counters that the tail advertises."""
        return self.tail.counters()

    # --- For its parts

    def store(self, batch: Batch) -> None:
        """Store a batch in Hist; the end of this input sends it down the chain, or commits it."""
        assert self.head is not None or self.chain.follows, "events without a predecessor"
        if batch.stream in self.own and batch.kind not in PLACEHOLDERS:
            self.stream_clocks[batch.stream].observe(batch.time_us, self.now_us)
        self.history.append(batch)
        self.journal.write(batch)
        self.chain.grew(batch.stream)

    def stored(self, stream: int) -> int:
        """Return the last event of a stream that this replica has stored durably."""
        return self.journal.stored(stream)

    def followed(self, channel: SprinklerChannel) -> None:
        """Send the paths to a new successor."""
        self._paths.send_to(channel)

    def committed(self, stream: int) -> None:
        """Handle that the whole chain has more of this stream."""
        state = self.history.streams[stream]
        assert state.committed <= self.stored(stream) <= state.cnt, (
            "committed events that are not stored here"
        )
        self.journal.note_committed()
        if self.head is not None and stream in self.own:
            self.head.committed(stream)
        self.tail.grew(stream)

    def service_channel(self) -> SprinklerChannel | None:
        """Return the channel to the region's configuration service, if connected."""
        return self.channels.get(self.chains.service(self.region) or "")

    def proxy_channel(self) -> SprinklerChannel | None:
        """Return None: this is the proxy (see `dissemination.DisseminationContext`)."""
        return None

    def view_changed(self) -> None:
        """Do nothing: clients connect to the proxy by themselves."""

    def _report_to_service(self, channel: SprinklerChannel) -> None:
        """Send the last known configuration, for a service that lost its disk, and then the status."""
        known = self.chains.configuration(self.region)
        self.send(channel, known if known.number else self.journal.configuration or known)
        self._send_status()

    def _send_status(self) -> None:
        service = self.service_channel()
        if service is not None:
            cnt = min(sum([self.history.streams[stream].committed for stream in self.own]), SEQ_MAX)
            disk = DiskState.FULL if self.journal.has_failed else DiskState.WORKS
            self.send(service, Status(self._position.belonged, cnt, disk))
