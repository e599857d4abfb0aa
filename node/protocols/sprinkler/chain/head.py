"""The head of a region's chain (paper 3.3): it accepts publications, and the peers' events (3.1).

`add_local_event` numbers the publications of drivers and clients and stamps them with the stream's time; the
acknowledgement is sent when the whole chain has the events. `publications` identifies repetitions, also for a
new head: it has the publications of all events that it stores. `sources` selects the peer for each other
stream; a new head starts without sources, with its own counters.

A head that does not know whether its region's streams are complete first recovers them from others
(`crossing`): all replicas have lost their state, or none had any yet. After such a loss each stream continues
in a new epoch, greater than any before; likewise if a process has more of a stream than its owner. Events
that only failed processes had may be lost, but no number may have two contents.
"""

from collections import OrderedDict, deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from node.core import machine as m
from node.core.deliveries import RecordKind
from node.core.epochs import epoch_of
from node.protocols.sprinkler.chain.crossing import Restoration
from node.protocols.sprinkler.messages import (
    Counter,
    EventKind,
    Events,
    Publication,
    Publish,
    Published,
    Refusal,
    SparseEvents,
)
from node.protocols.sprinkler.publishing.channel import Process, SprinklerChannel
from node.protocols.sprinkler.publishing.publications import Publications, Publisher, publisher_of
from node.protocols.sprinkler.region.expects import Path
from node.protocols.sprinkler.sources import SourcesContext, StreamSources
from node.protocols.sprinkler.storage.batches import cut_before, epoch_mark, last_seq
from node.protocols.sprinkler.storage.history import EventHistory
from node.protocols.sprinkler.storage.journal import FULL_REASON, Volatile
from node.protocols.sprinkler.stream_clock import StreamClock

RESTORE: m.Timer = ("restore",)
HELD_LIMIT_BYTES = 67_108_864  # of publications during a recovery
HELD_LIMIT = 16_384  # number of publications during a recovery
Batch = Events | SparseEvents
Pending = OrderedDict[tuple[Publisher, int], tuple[int, SprinklerChannel | None, Published]]
"""Uncommitted publications of a stream, by publisher and request: last number, channel, acknowledgement."""


class HeadContext(Process, SourcesContext, Protocol):
    """Methods and state of the replica that its head uses."""

    history: EventHistory
    publications: Publications
    journal: Volatile
    stream_clocks: Mapping[int, StreamClock]

    def put_off(self, channel: SprinklerChannel, message: Publish, code: Refusal, reason: str) -> None:
        """Refuse a publication that may be repeated, and those sent after it."""

    def store(self, batch: Batch) -> None:
        """Store a batch in Hist, and forward it down the chain."""

    def publication_taken(self, publication: Publication) -> None:
        """Forward a publication down the chain, before its events."""

    def taken_back(self) -> None:
        """Handle the completion of the region's streams."""


class Head:
    """The head's part of a replica. `own`: its region's streams; `region`: its number in paths."""

    def __init__(self, node: HeadContext, sources: StreamSources, own: Sequence[int], region: int) -> None:
        self._node = node
        self._own = own
        self._region = region
        self.sources = sources
        for stream in node.history.streams:
            if stream not in own:
                self.sources.add(stream)
        self._restoration: Restoration | None = None
        self.is_restoring = False  # publications have to wait
        self._next_epoch = 0  # minimum epoch after the present recovery; 0: no state was lost
        # by stream: since when another process has more, and its counter
        self._surpassed: dict[int, tuple[int, int]] = {}
        self._held: list[tuple[SprinklerChannel, Publish]] = []  # PUBLISH received during the recovery
        self._held_bytes = 0
        self._full = False  # history's limit has been logged
        self._pending: dict[int, Pending] = {stream: OrderedDict() for stream in own}
        self._begun: dict[int, dict[str, Any]] = {}  # by stream, the epoch that is not committed yet
        for stream in own:
            self._take_over(stream)

    def _take_over(self, stream: int) -> None:
        """Continue a stream of the region from the stored events; publications beyond them are void."""
        state = self._node.history.streams[stream]
        self._node.publications.forget_beyond(stream, state.cnt)
        for known in self._node.publications.beyond(stream, state.committed):
            self._await(known, None)
        if epoch_of(state.cnt) > epoch_of(state.committed):
            fields = {"epoch": epoch_of(state.cnt), "cnt": state.committed, "why": "an earlier head began it"}
            self._begun[stream] = fields
        self._remember_time(stream)

    def _remember_time(self, stream: int) -> None:
        """Restore the stream's time from the newest event, if it comes from a disk: later events are not
        earlier.
        """
        state = self._node.history.streams[stream]
        for batch in state.after(state.cnt - 1, 1) if state.cnt else []:
            self._node.stream_clocks[stream].observe(batch.time_us, self._node.now_us)

    def restore(self, regions: Iterable[str], served: Iterable[str], until_us: int, next_epoch: int) -> None:
        """Recover the region's streams from others before anything is published.

        regions, served: see `Restoration`. next_epoch: the minimum epoch in which they continue; 0: they are
        new, and stay in their first epoch, unless another process has events of them.
        """
        self._restoration, self.is_restoring = Restoration(regions, served, until_us), True
        self._next_epoch = next_epoch
        for stream in self._own:
            self.sources.add(stream, returns=True)
        self._node.emit(m.SetTimer(RESTORE, until_us))

    def leave(self) -> None:
        """Void uncommitted publications. Their publishers reconnect and repeat them."""
        pending = [each for pending in self._pending.values() for each in pending.values()]
        waiting = [channel for _, channel, _ in pending if channel is not None]
        for channel in dict.fromkeys([*waiting, *(channel for channel, _ in self._held)]):
            self._node.drop(channel, "the chain was re-formed")

    # --- Transitions of Fig. 1

    def add_local_event(self, channel: SprinklerChannel, message: Publish) -> None:
        """Store a batch under its sequence numbers (addLocalEvent). A repetition is only acknowledged."""
        node = self._node
        if message.stream not in self._own:
            unknown = message.stream not in node.history.streams
            code = Refusal.UNKNOWN_STREAM if unknown else Refusal.NOT_OWNER
            reason = f"{node.name} does not own stream {message.stream}"
            node.refuse(channel, code, reason, message.stream, message.first_request)
            return
        if self._restoration is not None:
            self._hold(channel, message)
            return
        publisher = message.stream, channel.name, channel.incarnation
        known = node.publications.known(publisher, message.first_request)
        if known is not None:
            self._repeated(channel, known)
        elif not node.history.has_room(message):
            self._log_full()
            reason = f"history is full ({node.history.limit_bytes} bytes)"
            node.put_off(channel, message, Refusal.HISTORY_FULL, reason)
        elif not node.journal.has_room:
            node.put_off(channel, message, Refusal.HISTORY_FULL, FULL_REASON)
        elif (undone := node.history.refusal(message)) is not None:
            node.refuse(channel, Refusal.UNDOES, undone, message.stream, message.first_request)
        else:
            self._number(channel, message)

    def _hold(self, channel: SprinklerChannel, message: Publish) -> None:
        """Hold a publication until the recovery ends, up to a limit."""
        if self._held_bytes + len(message.payload) > HELD_LIMIT_BYTES or len(self._held) >= HELD_LIMIT:
            reason = f"{self._node.name} is recovering its streams"
            self._node.put_off(channel, message, Refusal.HISTORY_FULL, reason)
            return
        self._held.append((channel, message))
        self._held_bytes += len(message.payload)

    def add_remote_event(self, channel: SprinklerChannel, batch: Batch) -> None:
        """Store a batch of a peer (addRemoteEvent). Requires seq - range <= cnt < seq of each event
        (checklist).
        """
        stream = self._node.history.streams.get(batch.stream)
        if stream is None or (batch.stream in self._own and self._restoration is None):
            code = Refusal.UNKNOWN_STREAM if stream is None else Refusal.UNEXPECTED
            reason = f"{self._node.name} does not take stream {batch.stream}"
            self._node.refuse(channel, code, reason, batch.stream)
        elif last_seq(batch) <= stream.cnt:
            return  # a duplicate: in flight from an earlier source at the switch
        elif batch.first_seq > stream.cnt + 1:
            if self.sources.resume(batch.stream, self._node.now_us):
                cnt, first_seq = stream.cnt, batch.first_seq
                self._node.log("hole", "warning", stream=batch.stream, cnt=cnt, first_seq=first_seq)
        elif not self._node.history.has_room(batch):
            self._log_full()
            self.sources.stop(batch.stream, batch)
        else:
            if batch.kind == EventKind.EPOCH:
                if not self.sources.may_cross(batch.stream, self._node.now_us):
                    return
                self._log_epoch_taken(channel, batch, stream.cnt)
            self._node.store(batch if batch.first_seq > stream.cnt else cut_before(batch, stream.cnt))

    def _log_epoch_taken(self, channel: SprinklerChannel, batch: Batch, cnt: int) -> None:
        """Log that events after `cnt` and before the epoch are lost; an error unless there were none."""
        fields = {"stream": batch.stream, "epoch": batch.argument, "cnt": cnt, "from": channel.name}
        self._node.log("epoch_taken", "error" if cnt else "info", **fields)

    def paths(self) -> dict[int, Path]:
        """Return the path by which this region gets each stream: its own directly, once recovered."""
        own = {} if self.is_restoring else dict.fromkeys(self._own, (self._region,))
        return self.sources.paths() | own

    # --- Acknowledgements

    def committed(self, stream: int) -> None:
        """Acknowledge the publications that the whole chain has."""
        committed = self._node.history.streams[stream].committed
        if self._begun:
            self._log_epoch_began(stream, committed)
        messages: deque[Published] = deque()
        receiver: SprinklerChannel | None = None
        pending = self._pending[stream]
        while pending:
            last, channel, published = next(iter(pending.values()))
            if last > committed:
                break
            pending.popitem(last=False)
            if channel is not receiver and messages and receiver is not None:
                self._node.send(receiver, *messages)
                messages.clear()
            receiver = channel
            if channel is not None and self._node.channels.get(channel.name) is channel:
                messages.append(published)
        if messages and receiver is not None:
            self._node.send(receiver, *messages)

    def _repeated(self, channel: SprinklerChannel, known: Publication) -> None:
        last = known.first_seq + known.count - 1
        if last > self._node.history.streams[known.stream].committed:
            self._await(known, channel)
        else:
            self._node.send(channel, acknowledgement(known))

    def _await(self, known: Publication, channel: SprinklerChannel | None) -> None:
        """Acknowledge a publication on this channel when it is committed. The order of acknowledgements
        stays.
        """
        last = known.first_seq + known.count - 1
        key, pending = (publisher_of(known), known.first_request), self._pending[known.stream]
        assert key in pending or not pending or pending[next(reversed(pending))][0] < last, (
            "a publication out of order"
        )
        pending[key] = (last, channel, acknowledgement(known))

    def _number(self, channel: SprinklerChannel, message: Publish) -> None:
        assert self._restoration is None, "numbered before the recovery ended"
        first_seq = self._node.history.streams[message.stream].cnt + 1
        count, publisher = message.count, (channel.incarnation, channel.name)
        publication = Publication(message.stream, first_seq, count, message.first_request, *publisher)
        self._node.emit(m.Record(RecordKind.PUBLISHED, message.stream, first_seq, count, count))
        self._node.publication_taken(publication)
        self._await(publication, channel)
        stamp_us = self._node.stream_clocks[message.stream].stamp_us(self._node.now_us)
        head = (message.kind, message.predicate, message.stream, first_seq, count, message.event_bytes)
        self._node.store(Events(*head, message.argument, stamp_us, message.payload))

    # --- Recovery

    def counters_reported(self, name: str, counters: Iterable[Counter]) -> None:
        """Note the counters that `name` (a region, or a process) has of the own streams."""
        own_counters: dict[int, int] = {}
        for counter in counters:
            if counter.stream in self._own:
                own_counters[counter.stream] = max(counter.cnt, own_counters.get(counter.stream, 0))
        if self._restoration is not None:
            self._restoration.counters_reported(name, own_counters)
            return
        for stream, cnt in own_counters.items():
            if cnt > self._node.history.streams[stream].cnt:
                self._note_surplus(name, stream, cnt)

    def _note_surplus(self, name: str, stream: int, cnt: int) -> None:
        """Begin an epoch if another process keeps reporting more than the owner has.

        A replaced head that has not been notified yet also reports more, but learns of it within two periods.
        """
        now_us = self._node.now_us
        since_us, before = self._surpassed.get(stream, (now_us, 0))
        if before <= self._node.history.streams[stream].cnt:
            self._surpassed[stream] = now_us, cnt
        elif now_us - since_us >= 2 * self._node.parameters.advertisement_period_us:
            del self._surpassed[stream]
            self._begin_epoch(stream, epoch_of(cnt) + 1, cnt, f"{name} has more of it than its owner")

    def lost(self, channel: SprinklerChannel) -> None:
        """Drop a lost publisher's held publications: it will repeat them."""
        self._held = [(held, message) for held, message in self._held if held is not channel]
        self._held_bytes = sum([len(message.payload) for _, message in self._held])
        assert self._restoration is not None or not self._held, "publications held outside of a recovery"

    def settle(self) -> None:
        """End the recovery if nothing more will arrive, and then publish the held batches."""
        restoration = self._restoration
        if restoration is None:
            return
        for stream in self._own:
            cnt = self._node.history.streams[stream].cnt
            if not restoration.is_over(cnt, self.sources.furthest(stream), self._node.now_us):
                return
        self._restoration, self.is_restoring = None, False
        self._node.emit(m.CancelTimer(RESTORE))
        for stream in self._own:
            self._recovered(stream, restoration)
        self._node.taken_back()
        held, self._held, self._held_bytes = self._held, [], 0
        for channel, message in held:
            self.add_local_event(channel, message)

    def _recovered(self, stream: int, restoration: Restoration) -> None:
        assert self._node.history.streams[stream].cnt >= self.sources.furthest(stream), "others have more"
        self.sources.remove(stream)
        self._remember_time(stream)
        cnt, seen = self._node.history.streams[stream].cnt, restoration.seen[stream]
        self._node.log("stream_taken", stream=stream, cnt=max(cnt, seen))
        if cnt < seen:
            self._node.log("events_lost", "error", stream=stream, first_seq=cnt + 1, last_seq=seen)
        if self._next_epoch or seen or cnt:
            epoch = max(self._next_epoch, epoch_of(max(cnt, seen)) + 1)
            unheard = f"; not heard: {', '.join(restoration.unheard)}" if restoration.unheard else ""
            self._begin_epoch(stream, epoch, seen, f"memory was lost{unheard}")

    def _begin_epoch(self, stream: int, epoch: int, seen: int, why: str) -> None:
        """Continue in this epoch. Other processes may still supply missing events of former epochs."""
        cnt = self._node.history.streams[stream].cnt
        assert epoch > epoch_of(max(cnt, seen)), "an epoch that another process may have had"
        assert stream in self._own, "an epoch of another region's stream"
        self._begun[stream] = {"epoch": epoch, "cnt": cnt, "seen": seen, "why": why}
        self._node.store(epoch_mark(stream, cnt + 1, epoch))

    def _log_epoch_began(self, stream: int, committed: int) -> None:
        """Log an epoch as an error once the whole chain has it: a deposed head's epoch is never committed."""
        begun = self._begun.get(stream)
        if begun is not None and epoch_of(committed) >= begun["epoch"]:
            del self._begun[stream]
            self._node.log("epoch_began", "error", stream=stream, **begun)

    def _log_full(self) -> None:
        if not self._full:
            self._full = True
            self._node.log("history_full", "error", limit_bytes=self._node.history.limit_bytes)


def acknowledgement(known: Publication) -> Published:
    """Return the acknowledgement of a publication."""
    return Published(known.stream, known.first_request, known.first_seq, known.count)
