"""Dissemination within a region (paper 3.2, Fig. 3): what clients and the tail of the proxy do alike.

A node keeps a view of its region (`view`), tells F of its neighbours by NOTIFY how far it got (sendNotify),
and answers their REQUESTs from what it has (`answers`). A client draws its F neighbours anew each shuffle
time, if there is something to tell. NOTIFYs of one input are one message for all: of the streams that grew; a
neighbour that has said that it is as far is left out. When nothing was told for some shuffle times, one
neighbour who has not been told the latest is told all counters, so that the last event of a burst reaches
everyone; so on in each shuffle time, until there is none.

Reading: in such a quiet time one is told rather than F. F reach all but a few (e^-F of them); for these one a
shuffle time suffices, while F of them would double the messages of streams that are slower than the shuffle.

Reading: each gossip changes up to half of a view, and a connection for each change. A client whose view is
full gossips only in one of `SETTLED_PERIODS` periods, drawn by chance: in a region of a hundred making and
ending connections was more work than events. Members that cannot be reached are looked for in every period,
and a view that lost them is not full.

Reading: the paper has "each client" shuffle (3.2). The tail draws its F once in a gossip period instead. Who
is newly drawn lacks what is still on its way through the region, and asks for that, too; with a shuffle time
shorter than that way the tail gave each event 7 times rather than F = 4 times, more than its port carries
(simulated: 864k events/s a proxy).

Reading: the paper notifies along the views' directed graph. Ours does so in both directions, as Chainsaw
does: a client's neighbours are those in its view and those in whose view it is. Views leave some clients in
very few others' views for a while; with one direction such a client's latency was 0.2 s on average, a
thousandth of all deliveries came after 0.7 s, and with both after 0.09 s (300 clients, F = 4, V = 20).

Which neighbours the F are is in `fanout`. With a kept fanout others are told while news keep coming, too:
one, drawn by chance, each `KEPT_SHUFFLES` shuffle times.

What only clients do, asking for events, is in `requests`. How a proxy plugs this in (its Recv is Hist):

    self.dissemination = Dissemination(self, store, spec)   # self: see Surroundings; store: see Store
    self.takes |= self.dissemination.takes                  # (Role.CLIENT, Request) and (Role.CLIENT, View)
    start()                     when it becomes the tail (and at its start, if it is)
    stop()                      when it is the tail no more
    lost(channel), writable(channel), timer_fired(timer)    from its hooks of these names
    grew(stream)                whenever store.cnt(stream) has grown
    flush()                     in settle()

While it is stopped it notifies nobody, and refuses requests as those of another configuration.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Protocol

from node.core import machine as m
from node.core.specification import Member, NodeSpec
from node.protocols.sprinkler.chain.answers import Answers, Store
from node.protocols.sprinkler.messages import CODEC, Counter, Notify, Refusal, Request, Role
from node.protocols.sprinkler.messages import View as ViewMessage
from node.protocols.sprinkler.publishing.channel import Channel, Process
from node.protocols.sprinkler.region.fanout import Fanout, KeptFanout, ShuffledFanout
from node.protocols.sprinkler.region.neighbourhood import Neighbourhood, View

SHUFFLE: m.Timer = ("shuffle",)
GOSSIP: m.Timer = ("gossip",)
SETTLED_PERIODS = 30  # of them a client with a full view gossips in one
QUIET_SHUFFLES = 3  # after the last NOTIFY, before others than the F are told
PROXY_GOSSIP_SHARE = 0.1  # of a client's periods in which it gossips with the proxy, too ("occasionally")
UNREACHED_PERIODS = 3  # a neighbour that was not connected at so many ticks leaves the view
KEPT_SHUFFLES = 6  # of a kept fanout: from news on until one that was not told is, and between two of them
VIEW_ROWS = 256  # of a VIEW that are looked at


class Surroundings(Process, Protocol):
    """What is needed of the client or proxy."""

    def proxy_channel(self) -> Channel | None:
        """The channel to the tail of the region's proxy, if connected; a proxy has none."""

    def view_changed(self) -> None:
        """The view has changed: other neighbours are to be connected. Nothing to do for a proxy."""


class Dissemination:
    """What one client, or the tail of the proxy, disseminates: all streams of `store`."""

    def __init__(self, node: Surroundings, store: Store, spec: NodeSpec) -> None:
        self._node = node
        self._store = store
        self._streams = range(len(spec.homes))
        self._region = spec.region
        self._neighbourhood = Neighbourhood(spec)
        self._own, self.proxy = self._neighbourhood.own, self._neighbourhood.proxy
        self._is_proxy = node.role is Role.PROXY
        parameters = node.parameters
        self._shuffle_us = parameters.gossip_period_us if self._is_proxy else parameters.shuffle_time_us
        own = self.proxy if self._is_proxy else self._own
        self.view = View(own, self.proxy, node.parameters.view_size, node.rng)
        self._answers = Answers(store, node.send, node.drop)
        self._runs = False
        self._fanout = self._make_fanout()
        self._keeps = parameters.keep_fanout
        self._retell_us = self._shuffle_us * (KEPT_SHUFFLES if self._keeps else 1)
        self._tick_us: int | None = None  # for when the shuffle timer is set: some may not know the latest
        self._grown: dict[int, None] = {}  # streams, in the order in which they grew since the last flush
        self._step = 0  # flushes so far
        self._told: dict[Channel, int] = {}  # the flush up to which a neighbour was told everything
        self._everything: Notify | None = None  # all counters as of the last flush, if anyone was told them
        self._quiet_us = 0  # until then nobody is told who was not told at the last flush
        self._unreached: dict[int, int] = {}  # neighbours: ticks in a row without a connection
        self.takes: Mapping[tuple[Role | None, type], Callable[[Channel, Any], None]] = {
            (Role.CLIENT, Request): self.receive_request,
            (Role.CLIENT, ViewMessage): self.receive_view,
        }

    # --- The life of the node

    def start(self) -> None:
        """Notify, gossip and answer from now on; nodes tick at times of their own."""
        if self._runs:
            return
        self._runs = True
        now_us, random, parameters = self._node.now_us, self._node.rng.random, self._node.parameters
        self._node.emit(m.SetTimer(GOSSIP, now_us + int(random() * parameters.gossip_period_us)))
        self._tell_drawn(self._fanout.start(now_us))

    def stop(self) -> None:
        """Neither notify, gossip nor answer from now on."""
        self._runs = False
        self._tick_us = None
        self._fanout.stop()
        self._told.clear()
        self._answers.clear()
        self._node.emit(m.CancelTimer(SHUFFLE))
        self._node.emit(m.CancelTimer(GOSSIP))

    def opened(self, channel: Channel) -> None:
        """A neighbour is connected: it may be one of the F, if there are fewer, or lack the latest."""
        self._fill_targets()
        if not self._is_proxy:  # whose news reach everyone by clients, too
            self._tick()

    def lost(self, channel: Channel) -> None:
        """A channel is gone: drop its requests, and notify another neighbour in its place."""
        self._answers.forget(channel)
        self._told.pop(channel, None)
        if self._fanout.lost(channel):
            self._fill_targets()

    def writable(self, channel: Channel) -> None:
        """A channel takes more: go on with its answers, and tell it what it was not told meanwhile."""
        self._answers.serve(channel)
        if channel in self._fanout.targets:
            self._tell_all(channel)

    def timer_fired(self, timer: m.Timer) -> None:
        """A shuffle time or a gossip period is over; any other timer is not ours."""
        if timer == SHUFFLE and self._runs:
            self._tick_us = None
            if self._tell_one():
                self._tick()
        elif timer == GOSSIP and self._runs:
            self._node.emit(m.SetTimer(GOSSIP, self._node.now_us + self._node.parameters.gossip_period_us))
            self._forget_unreachable()
            periods = SETTLED_PERIODS if self.view.is_full and not self._is_proxy else 1
            if periods == 1 or periods * self._node.rng.random() < 1:
                self._gossip(PROXY_GOSSIP_SHARE * periods)

    # --- Dissemination

    def grew(self, stream: int) -> None:
        """The store has more of this stream; `flush` tells it."""
        self._grown[stream] = None

    def flush(self) -> None:
        """sendNotify: one NOTIFY for all that has grown."""
        if not self._grown:
            return
        grown, self._grown = self._grown, {}
        self._step += 1
        self._tell_drawn(self._fanout.renew(self._node.now_us))
        self._put_off()
        self._everything = None
        if not self._fanout.targets:
            return
        cnt = self._store.cnt
        news = Notify(tuple([Counter(stream, cnt(stream)) for stream in grown]))
        step, told, emit = self._step, self._told, self._node.emit
        size_bytes, messages, offer = CODEC.size_bytes(news), (news,), self._fanout.offer
        for channel in self._fanout.targets:
            if channel.awaiting:
                continue  # it takes nothing now, and is told when it does
            offer(channel)
            if told.get(channel) == step - 1:
                told[channel] = step
            if not lacks(channel, news.counters):
                continue
            if channel.room_bytes > size_bytes:  # as `send` does it, but the size is computed once for all
                channel.room_bytes -= size_bytes
                channel.sent_us = self._node.now_us
                emit(m.Send(channel.connection, messages, size_bytes))
            else:
                self._node.send(channel, news)

    def keeps(self, channel: Channel) -> bool:
        """Whether this neighbour stays one of the F because it takes events from us."""
        return self._keeps and channel in self._fanout.targets

    def receive_request(self, channel: Channel, request: Request) -> None:
        """receiveRequest of Fig. 3."""
        if not self._runs:
            reason = f"{self._node.name} does not disseminate now"
            self._node.refuse(channel, Refusal.STALE, reason, request.stream)
        elif request.stream not in self._streams:
            reason = f"stream {request.stream} is not known"
            self._node.refuse(channel, Refusal.UNKNOWN_STREAM, reason, request.stream)
        else:
            self._fanout.asked(channel)
            self._answers.take(channel, request)

    def _tick(self) -> None:
        """Look again in a while, or when it was quiet, for who may not know the latest."""
        if self._runs and self._tick_us is None:
            self._tick_at(max(self._node.now_us + self._retell_us, self._quiet_us))

    def _put_off(self) -> None:
        """There is news: look again when it was quiet, or with a kept fanout in a while.

        The timer is moved once in a shuffle time, at most. So it wakes nobody while news keep coming, which
        would be the most frequent reason for a node with slow streams to run, and costs little where they are
        fast; others are told `QUIET_SHUFFLES` to one more shuffle times after the last news.
        """
        if self._keeps:
            self._tick()
            return
        self._quiet_us = self._node.now_us + QUIET_SHUFFLES * self._shuffle_us
        put_off_us = self._quiet_us + self._shuffle_us
        if self._runs and (self._tick_us is None or put_off_us - self._tick_us >= self._shuffle_us):
            self._tick_at(put_off_us)

    def _tick_at(self, at_us: int) -> None:
        self._tick_us = at_us
        self._node.emit(m.SetTimer(SHUFFLE, at_us))

    def _tell_one(self) -> bool:
        """One of the neighbours that may not know the latest; false if there is none left."""
        left = [channel for channel in self._neighbours() if self._told.get(channel, 0) != self._step]
        busy = any(channel.awaiting for channel in left)
        while left:
            at = int(self._node.rng.random() * len(left))
            left[at], left[-1] = left[-1], left[at]
            if self._tell_all(left.pop()):
                return True
        return busy

    def _tell_all(self, channel: Channel) -> bool:
        """All counters, if it does not know the latest; whether it was told."""
        if self._told.get(channel, 0) == self._step or channel.awaiting:
            return False
        self._told[channel] = self._step
        if self._everything is None:
            cnt = self._store.cnt
            self._everything = Notify(tuple([Counter(stream, cnt(stream)) for stream in self._streams]))
        if not lacks(channel, self._everything.counters):
            return False
        self._node.send(channel, self._everything)
        return True

    # --- Membership

    def receive_view(self, channel: Channel, message: ViewMessage) -> None:
        """A neighbour gossips. Its first row is itself; the proxy answers with its own view."""
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
            self.tell_view(channel)
        self._node.view_changed()
        self._fill_targets()

    def tell_view(self, channel: Channel) -> None:
        """Gossip with this neighbour. Only members that are connected are passed on."""
        reached = [member for member in self.view.members if self._channel(member) is not None]
        rows = [self._neighbourhood.row(member) for member in (self._own, *reached)]
        self._node.send(channel, ViewMessage(tuple(rows)))

    def _gossip(self, proxy_share: float) -> None:
        """With one neighbour; a client now and then with the proxy, too, wherever it is."""
        partner = self.view.neighbour()
        channel = self._channel(partner) if partner is not None else None
        proxy = self._node.proxy_channel()
        if channel is not None:
            self.tell_view(channel)
        if proxy is None or proxy is channel:
            return
        if channel is None or self._node.rng.random() < proxy_share:
            self.tell_view(proxy)

    def _forget_unreachable(self) -> None:
        """Those not connected for long leave; in a region smaller than V nobody would be removed else."""
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

    def _channel(self, member: int) -> Channel | None:
        """To this neighbour, if connected."""
        if member == self.proxy:
            return self._node.proxy_channel()
        return self._node.channels.get(self.member(member).name)

    def member(self, member: int) -> Member:
        """The process at this place of the neighbourhood."""
        return self._neighbourhood.members[member]

    def _make_fanout(self) -> Fanout:
        parameters, rng = self._node.parameters, self._node.rng
        if parameters.keep_fanout:
            return KeptFanout(parameters.fanout, rng, self._neighbours, is_root=self._is_proxy)
        return ShuffledFanout(parameters.fanout, self._shuffle_us, rng, self._neighbours)

    def _fill_targets(self) -> None:
        """Draw as many as are missing."""
        if self._runs:
            self._tell_drawn(self._fanout.fill())

    def _tell_drawn(self, drawn: Iterable[Channel]) -> None:
        """Tell new targets of the proxy everything: after a failover it may be the only one that has it."""
        if self._is_proxy:
            for channel in drawn:
                self._tell_all(channel)

    def _neighbours(self) -> list[Channel]:
        """A client's are those that it is connected with, the proxy's those of its view; connected ones."""
        channels = self._node.channels
        if not self._is_proxy:
            return [channel for channel in channels.values() if channel.role is Role.CLIENT]
        names = [self.member(member).name for member in self.view.members]
        return [channels[name] for name in names if name in channels]


def lacks(channel: Channel, counters: Iterable[Counter]) -> bool:
    """Whether the peer has not said yet that it has all of these."""
    reached = channel.reached
    for counter in counters:  # noqa: SIM110 - any() costs three times as much, once for every neighbour told
        if reached.get(counter.stream, 0) < counter.cnt:
            return True
    return False
