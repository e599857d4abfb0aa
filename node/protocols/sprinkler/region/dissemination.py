"""Dissemination within a region (paper 3.2, Fig. 3): the part that clients and the tail of the proxy share.

A node keeps a view of its region (`view`), sends F of its neighbours its progress by NOTIFY (sendNotify), and
answers their REQUESTs from its events (`answers`). A client draws new F neighbours each shuffle time, if
there is something to notify. The NOTIFYs of one input are one message: of the streams that grew; a neighbour
that has reported the same progress is left out. After a shuffle time in which nothing grew, F neighbours that
lack the latest counters receive all of them, so that an event that no other follows reaches all; this repeats
in each shuffle time, until no such neighbour is left.

Interpretation: newly drawn neighbours are also notified of streams that grew before, up to `DRAWS` draws ago.
A node that no other has drawn, one in e^F, would get an event of a slow stream only with the stream's next
one: beside a fast stream no shuffle time is quiet. With 40 clients, F = 4 and two events/s beside 2,000/s,
the slowest hundredth of all deliveries would take 540 ms, not 60 ms (simulated).

Interpretation: the node first waits until it has answered nothing for a shuffle time, and neighbours that
still wait for answers count among the F. Otherwise its load would exceed that of F neighbours: with events
that come in large batches, its port still carries the last one when others are notified. In a region of 100
clients whose proxy has 77 % load, batches of 0.1 s would delay clients by 2.4 s, not 0.4 s (simulated).

Interpretation: each gossip changes up to half of a view, and one connection per change. A client with a full
view gossips only in one of `SETTLED_PERIODS` periods, at random: in a region of a hundred, opening and
closing connections cost more than events. If it gossiped in each period, 100 clients would open four times
as many connections; the mean latency would be 154 ms, not 190 ms (simulated, 100,000 events/s). Unreachable
members are removed in every period, and a view that lost them is not full.

Interpretation: the paper notifies along the views' directed graph. This implementation uses both directions,
as Chainsaw does: a client's neighbours are those in its view and those in whose view it is. For some time,
some clients are in very few views; with one direction such a client's latency was 0.2 s on average, and a
thousandth of all deliveries took more than 0.7 s; with both, 0.09 s (300 clients, F = 4, V = 20).

`fanout` selects the F neighbours.

Requests for events, which only clients send, are in `requests`. Use in a proxy (its Recv is Hist):

  self.dissemination = Dissemination(self, store, spec)   # DisseminationContext, EventStore
  self.takes |= self.dissemination.takes                  # (Role.CLIENT, Request) and (Role.CLIENT, View)
  start()                     when it becomes the tail (and at its start, if it is)
  stop()                      when it is no longer the tail
  lost(channel), writable(channel), timer_fired(timer)    from its hooks of these names
  grew(stream)                whenever store.cnt(stream) has grown
  flush()                     in settle()

While stopped it sends no notifications, and refuses requests as those of another configuration.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from node.core import machine as m
from node.core.specification import Member, NodeSpec
from node.protocols.sprinkler.chain.answers import Answers, EventStore
from node.protocols.sprinkler.messages import CODEC, Counter, Notify, Refusal, Request, Role
from node.protocols.sprinkler.messages import View as ViewMessage
from node.protocols.sprinkler.publishing.channel import Process, SprinklerChannel
from node.protocols.sprinkler.region.fanout import ShuffledFanout
from node.protocols.sprinkler.region.neighbourhood import MembershipView, Neighbourhood

SHUFFLE: m.Timer = ("shuffle",)
GOSSIP: m.Timer = ("gossip",)
SETTLED_PERIODS = 30  # a client with a full view gossips in one of this number
# share of a client's periods in which it also gossips with the proxy ("occasionally")
PROXY_GOSSIP_SHARE = 0.1
UNREACHED_PERIODS = 3  # a neighbour that is not connected at this number of ticks leaves the view
VIEW_ROWS = 256  # rows of a VIEW that are processed
DRAWS = 4  # a stream that grew is notified to the neighbours of this number of draws


class DisseminationContext(Process, Protocol):
    """Methods and state of the client or proxy that dissemination uses."""

    def proxy_channel(self) -> SprinklerChannel | None:
        """Return the channel to the tail of the region's proxy, if connected; a proxy has none."""

    def view_changed(self) -> None:
        """Handle a changed view: connect with its neighbours. A proxy does nothing."""


class Dissemination:
    """Dissemination of all streams of `store` by one client, or by the tail of the proxy."""

    def __init__(self, node: DisseminationContext, store: EventStore, spec: NodeSpec) -> None:
        self._node = node
        self._store = store
        self._streams = range(len(spec.homes))
        self._region = spec.region
        self._neighbourhood = Neighbourhood(spec)
        self._own, self.proxy = self._neighbourhood.own, self._neighbourhood.proxy
        self._is_proxy = node.role is Role.PROXY
        parameters = node.parameters
        self._shuffle_us = parameters.shuffle_time_us
        own = self.proxy if self._is_proxy else self._own
        self.view = MembershipView(own, self.proxy, node.parameters.view_size, node.rng)
        self._answers = Answers(store, node.send, node.drop)
        self._runs = False
        self._fanout = ShuffledFanout(
            parameters.fanout, self._shuffle_us, node.rng, self._neighbours, self._answers.is_awaited
        )
        # when the shuffle timer fires; None: all neighbours have the latest counters
        self._tick_us: int | None = None
        self._grown: dict[int, None] = {}  # streams, in the order in which they grew since the last flush
        self._recent: dict[int, int] = {}  # streams that grew, and the number of draws left
        self._step = 0  # flushes so far
        self._notified: dict[SprinklerChannel, int] = {}  # the flush up to which a neighbour has all counters
        self._everything: Notify | None = None  # all counters as of the last flush, if they were sent
        self._unreached: dict[int, int] = {}  # neighbours: consecutive ticks without a connection
        self.takes: Mapping[tuple[Role | None, type], Callable[[SprinklerChannel, Any], None]] = {
            (Role.CLIENT, Request): self.receive_request,
            (Role.CLIENT, ViewMessage): self.receive_view,
        }

    # --- Start, stop and connections

    def start(self) -> None:
        """Start to notify, gossip and answer; nodes tick at random offsets."""
        if self._runs:
            return
        self._runs = True
        now_us, random, parameters = self._node.now_us, self._node.rng.random, self._node.parameters
        self._node.emit(m.SetTimer(GOSSIP, now_us + int(random() * parameters.gossip_period_us)))
        self._notify_drawn(self._fanout.start(now_us))

    def stop(self) -> None:
        """Stop notifying, gossiping and answering."""
        self._runs = False
        self._tick_us = None
        self._recent.clear()
        self._fanout.stop()
        self._notified.clear()
        self._answers.clear()
        self._node.emit(m.CancelTimer(SHUFFLE))
        self._node.emit(m.CancelTimer(GOSSIP))

    def opened(self, channel: SprinklerChannel) -> None:
        """Handle a new neighbour: it may become one of the F, or lack the latest counters."""
        self._fill_targets()
        if not self._is_proxy:  # the proxy's events reach all through clients, too
            self._tick()

    def lost(self, channel: SprinklerChannel) -> None:
        """Drop a lost channel's requests, and notify another neighbour in its place."""
        self._answers.forget(channel)
        self._notified.pop(channel, None)
        if self._fanout.lost(channel):
            self._fill_targets()

    def writable(self, channel: SprinklerChannel) -> None:
        """Continue a channel's answers, and send it the counters that it missed meanwhile."""
        if self._answers.serve(channel):
            self._postpone_tick()
        if channel in self._fanout.targets:
            self._notify_all(channel)

    def timer_fired(self, timer: m.Timer) -> None:
        """Handle the end of a shuffle time or a gossip period; ignore other timers."""
        if timer == SHUFFLE and self._runs:
            self._tick_us = None
            if self._notify_missing():
                self._tick()
        elif timer == GOSSIP and self._runs:
            self._node.emit(m.SetTimer(GOSSIP, self._node.now_us + self._node.parameters.gossip_period_us))
            self._forget_unreachable()
            periods = SETTLED_PERIODS if self.view.is_full and not self._is_proxy else 1
            if periods == 1 or periods * self._node.rng.random() < 1:
                self._gossip(PROXY_GOSSIP_SHARE * periods)

    # --- Dissemination

    def grew(self, stream: int) -> None:
        """Note that the store has more of this stream; `flush` notifies it."""
        self._grown[stream] = None

    def flush(self) -> None:
        """Send one NOTIFY for all streams that have grown (sendNotify)."""
        if not self._grown:
            return
        grown, self._grown = self._grown, {}
        self._step += 1
        self._everything = None
        self._recent |= dict.fromkeys(grown, DRAWS)
        drawn, targets = self._fanout.renew(self._node.now_us), self._fanout.targets
        self._postpone_tick()
        if drawn:
            self._notify_drawn(drawn)
            if not self._is_proxy:
                self._notify_of(self._recent, drawn)
            self._recent = {stream: draws - 1 for stream, draws in self._recent.items() if draws > 1}
            targets = [channel for channel in targets if channel not in drawn]
        if targets:
            self._notify_of(grown, targets)

    def _notify_of(self, streams: Iterable[int], targets: Iterable[SprinklerChannel]) -> None:
        """Send the latest counters of these streams to the targets that lack any of them."""
        cnt = self._store.cnt
        notify = Notify(tuple([Counter(stream, cnt(stream)) for stream in streams]))
        step, notified, emit = self._step, self._notified, self._node.emit
        size_bytes, messages = CODEC.size_bytes(notify), (notify,)
        for channel in targets:
            if channel.awaiting:
                continue  # it has no room now, and is notified when it has
            if notified.get(channel) == step - 1:
                notified[channel] = step
            if not lacks(channel, notify.counters):
                continue
            if channel.room_bytes > size_bytes:  # as `send` does, but the size is computed once for all
                channel.room_bytes -= size_bytes
                channel.sent_us = self._node.now_us
                emit(m.Send(channel.connection, messages, size_bytes))
            else:
                self._node.send(channel, notify)

    def receive_request(self, channel: SprinklerChannel, request: Request) -> None:
        """Handle a REQUEST (receiveRequest of Fig. 3)."""
        if not self._runs:
            reason = f"{self._node.name} does not disseminate now"
            self._node.refuse(channel, Refusal.STALE, reason, request.stream)
        elif request.stream not in self._streams:
            reason = f"stream {request.stream} is not known"
            self._node.refuse(channel, Refusal.UNKNOWN_STREAM, reason, request.stream)
        else:
            self._answers.take(channel, request)
            self._postpone_tick()

    def _tick(self) -> None:
        """Schedule the next check for neighbours that lack the latest counters."""
        if self._runs and self._tick_us is None:
            self._tick_at(self._node.now_us + self._shuffle_us)

    def _postpone_tick(self) -> None:
        """Postpone that check: it is made one to two shuffle times after the last event or answer.

        The timer is moved once in a shuffle time, at most. So it costs little with fast streams, and does not
        fire during continuous traffic.
        """
        put_off_us = self._node.now_us + 2 * self._shuffle_us
        if self._runs and (self._tick_us is None or put_off_us - self._tick_us >= self._shuffle_us):
            self._tick_at(put_off_us)

    def _tick_at(self, at_us: int) -> None:
        self._tick_us = at_us
        self._node.emit(m.SetTimer(SHUFFLE, at_us))

    def _notify_missing(self) -> bool:
        """Notify neighbours that may lack the latest counters: F, less those that wait for answers.

        Return False if there is none left.
        """
        neighbours, notified = self._neighbours(), False
        left = [channel for channel in neighbours if self._notified.get(channel, 0) != self._step]
        busy = any(channel.awaiting for channel in left)
        free = self._node.parameters.fanout - sum(map(self._answers.is_awaited, neighbours))
        while left and free > 0:
            at = int(self._node.rng.random() * len(left))
            left[at], left[-1] = left[-1], left[at]
            if self._notify_all(left.pop()):
                notified = True
                free -= 1
        return busy or notified or bool(left)

    def _notify_all(self, channel: SprinklerChannel) -> bool:
        """Send all counters to a neighbour that lacks the latest ones; return whether they were sent."""
        if self._notified.get(channel, 0) == self._step or channel.awaiting:
            return False
        self._notified[channel] = self._step
        if self._everything is None:
            cnt = self._store.cnt
            self._everything = Notify(tuple([Counter(stream, cnt(stream)) for stream in self._streams]))
        if not lacks(channel, self._everything.counters):
            return False
        self._node.send(channel, self._everything)
        return True

    # --- Membership

    def receive_view(self, channel: SprinklerChannel, message: ViewMessage) -> None:
        """Handle a neighbour's gossip. Its first row is the sender; the proxy answers with its own view."""
        rows = message.neighbours[:VIEW_ROWS]
        sender = self._neighbourhood.sender(rows[0], channel.name) if rows else None
        if sender is None:
            self._node.refuse(channel, Refusal.UNEXPECTED, "VIEW does not begin with its sender")
            return
        if not self._runs:
            return
        theirs = [self._neighbourhood.known(row) for row in rows[1:]]
        if self._is_proxy:
            theirs = [member for member in theirs if member is not None and self._channel(member)]
        self.view.received(sender, [member for member in theirs if member is not None])
        self._unreached.pop(sender, None)
        if self._is_proxy:
            self.send_view(channel)
        self._node.view_changed()
        self._fill_targets()

    def send_view(self, channel: SprinklerChannel) -> None:
        """Send the view to this neighbour. Only connected members are included."""
        reached = [member for member in self.view.members if self._channel(member) is not None]
        rows = [self._neighbourhood.row(member) for member in (self._own, *reached)]
        self._node.send(channel, ViewMessage(tuple(rows)))

    def _gossip(self, proxy_share: float) -> None:
        """Gossip with one neighbour; a client sometimes gossips with the proxy, too."""
        partner = self.view.neighbour()
        channel = self._channel(partner) if partner is not None else None
        proxy = self._node.proxy_channel()
        if channel is not None:
            self.send_view(channel)
        if proxy is None or proxy is channel:
            return
        if channel is None or self._node.rng.random() < proxy_share:
            self.send_view(proxy)

    def _forget_unreachable(self) -> None:
        """Remove members without a connection; in a region smaller than V nothing else would remove them."""
        unreached = self._unreached
        self._unreached = {
            member: unreached.get(member, 0) + 1
            for member in self.view.members
            if member != self.proxy and self._channel(member) is None
        }
        limit = 0 if self._is_proxy else UNREACHED_PERIODS
        gone = [member for member, periods in self._unreached.items() if periods > limit]
        for member in gone:
            self.view.remove(member)
        if gone:
            self._node.view_changed()

    def _channel(self, member: int) -> SprinklerChannel | None:
        """Return the channel to this neighbour, if connected."""
        if member == self.proxy:
            return self._node.proxy_channel()
        return self._node.channels.get(self.member(member).name)

    def member(self, member: int) -> Member:
        """Return the process at this position of the neighbourhood."""
        return self._neighbourhood.members[member]

    def _fill_targets(self) -> None:
        """Draw the missing targets."""
        if self._runs:
            self._notify_drawn(self._fanout.fill())

    def _notify_drawn(self, drawn: Iterable[SprinklerChannel]) -> None:
        """Send all counters to new targets of the proxy: after a failover only it may have them."""
        if self._is_proxy:
            for channel in drawn:
                self._notify_all(channel)

    def _neighbours(self) -> list[SprinklerChannel]:
        """Return the connected neighbours: a client's are its client connections, the proxy's those of its
        view.
        """
        channels = self._node.channels
        if not self._is_proxy:
            return [channel for channel in channels.values() if channel.role is Role.CLIENT]
        names = [self.member(member).name for member in self.view.members]
        return [channels[name] for name in names if name in channels]


def lacks(channel: SprinklerChannel, counters: Iterable[Counter]) -> bool:
    """Return whether the peer has not yet reported all of these counters."""
    reached = channel.reached
    for counter in counters:  # noqa: SIM110 - any() costs three times as much, once for every neighbour told
        if reached.get(counter.stream, 0) < counter.cnt:
            return True
    return False
