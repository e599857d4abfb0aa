"""What proxies, drivers and clients have in common: connections, HELLO, heartbeats, silence.

Every connection starts with HELLO in both directions, then both sides advertise at once and from then on once
in a period; a peer that falls silent is taken for unreachable (`heartbeats`). Who is to be connected is said
with `keep_connected`, at any time: it is dialled, and dialled again (`node.core.dialing`), unless it has
dialled us. Two processes have one connection with each other, whatever they say over it. A second one from a
peer takes the place of the first, which is how a peer that closed a silent connection comes back while this
side still holds the old one; if each side dialled the other, both keep the one that was dialled by the
process whose name sorts first.

A participant is a machine (`node.core.machine`): `handle` looks up the input's method in a table, and a
message's in `takes`, the table of who may send what. Anything else is answered with REFUSED. Subclasses fill
in the hooks.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from node.core import machine as m
from node.core.dialing import Dialer, Event, Pauses, Target
from node.core.errors import RemoteProtocolError
from node.core.message_layout import wire_name
from node.protocols.sprinkler.channel import Channel
from node.protocols.sprinkler.heartbeats import Heartbeats
from node.protocols.sprinkler.messages import (
    CODEC,
    Advertisement,
    Counter,
    Hello,
    Publish,
    Published,
    Refusal,
    Refused,
    Role,
)
from node.protocols.sprinkler.parameters import Parameters
from node.protocols.sprinkler.publisher import Publisher

Taker = Callable[[Channel, Any], None]


class Participant:
    """A machine of Sprinkler, without its role's own part."""

    role: Role

    def __init__(
        self, name: str, parameters: Parameters, rng: m.Randomness, targets: Iterable[Target]
    ) -> None:
        self.name = name
        self.frame_limit_bytes = parameters.frame_limit_bytes
        self.parameters = parameters
        self.now_us = 0
        self.channels: dict[str, Channel] = {}  # those that said HELLO, by the peer's name
        self.rng = rng
        self._hello: Hello
        self._connections: dict[int, Channel] = {}  # all, by number
        self._effects: list[m.Effect] = []
        self._ready = False
        self._finished = False
        self._pauses = Pauses(
            parameters.reconnect_first_us, parameters.reconnect_last_us, parameters.connect_timeout_us
        )
        self.dialers: dict[str, Dialer] = {}  # of those to be connected
        self._runs = False
        self.keep_connected(targets)
        self.incarnation = 0  # of this process, once it runs
        self._heartbeats = Heartbeats(self, self._connections)
        self._inputs: dict[type, Callable[[Any], None]] = {
            m.Started: self._started,
            m.Connected: self._connected,
            m.ConnectFailed: self._connect_failed,
            m.Received: self._received,
            m.Malformed: self._malformed,
            m.Disconnected: self._disconnected,
            m.Writable: self._writable,
            m.TimerFired: self._timer_fired,
            m.Synced: lambda given: self.synced(given.appended),
            m.StorageFailed: self.storage_failed,
            m.Nudge: lambda given: None,  # `settle` follows on every input
            m.GiveUp: self.gave_up,
            m.Go: self.go,
            m.StopDrivers: self.stop_drivers,
            m.Finish: self._finish,
        }
        self.takes: Mapping[tuple[Role, type], Taker] = {}

    # --- The machine

    def handle(self, given: m.Input, now_us: int) -> Sequence[m.Effect]:
        """See `node.core.machine.Machine`."""
        self.now_us = now_us
        if not self._finished:
            self._inputs[type(given)](given)
            self.settle()
            if not self._ready and self.is_ready():
                self._ready = True
                self.emit(m.Ready())
        effects, self._effects = self._effects, []
        return effects

    def progress(self) -> m.Progress:
        """See `node.core.machine.Machine`."""
        return m.Progress()

    # --- Hooks of the roles

    def restored(self, stored: Iterable[m.StoredSegment]) -> None:
        """What an earlier process of this name left in its log; before `started`."""

    def started(self) -> None:
        """The process runs."""

    def opened(self, channel: Channel) -> None:
        """The peer has said HELLO, and both sides have been told to advertise."""

    def lost(self, channel: Channel, reason: str) -> None:
        """A channel that had been opened is gone."""

    def writable(self, channel: Channel) -> None:
        """The channel takes bulk data again."""

    def timer_fired(self, timer: m.Timer) -> None:
        """A timer of the role's own."""

    def synced(self, appended: int) -> None:
        """The first `appended` of all Append are on disk."""

    def storage_failed(self, given: m.StorageFailed) -> None:
        """The disk takes nothing for now."""
        self.log("storage_failed", "error", problem=given.problem)

    def gave_up(self, given: m.GiveUp) -> None:
        """The operator gave a process up."""

    def go(self, given: m.Go) -> None:
        """Drivers begin."""

    def stop_drivers(self, given: m.StopDrivers) -> None:
        """Drivers stop."""

    def settle(self) -> None:
        """After every input: send what has become sendable."""

    def is_ready(self) -> bool:
        """Whether the role's demands are met. By default: everyone to be dialled has spoken."""
        return all(peer in self.channels for peer in self.dialers)

    def counters(self) -> Iterable[Counter]:
        """What this node advertises."""
        return ()

    # --- For the roles

    def emit(self, effect: m.Effect) -> None:
        """Ask for an effect."""
        self._effects.append(effect)

    def log(self, event: str, level: str = "info", /, **fields: Any) -> None:
        """Ask for a line in the log."""
        self.emit(m.Log(event, fields, level))

    def send(self, channel: Channel, *messages: Any) -> None:
        """Send, and count it against the channel's room. Small messages may overdraw it, up to a limit."""
        self.emit(m.Send(channel.connection, messages))
        channel.sent_us = self.now_us
        channel.room_bytes -= sum(map(CODEC.size_bytes, messages))
        if channel.room_bytes > 0:
            return
        if not channel.awaiting:
            channel.awaiting = True
            self.emit(m.AwaitWritable(channel.connection))
        elif channel.room_bytes < -self.parameters.control_limit_bytes:
            self.drop(channel, "does not read")

    def keep_connected(self, targets: Iterable[Target]) -> None:
        """From now on be connected with these processes, and with no others of our own accord.

        Those that are no longer wanted are left: a connection that we dialled is closed when what was sent
        has gone; one that was dialled by the other is the other's.
        """
        wanted = {target.peer: target for target in targets}
        for peer in [peer for peer in self.dialers if peer not in wanted]:
            self.dialers.pop(peer).take(Event.STOP, self.now_us)
            for channel in [each for each in self._connections.values() if each.dialled == peer]:
                self.drop(channel, "no longer wanted", abort=False)
        for peer, target in wanted.items():
            if peer not in self.dialers:
                self.dialers[peer] = Dialer(target, self._pauses, self.rng, self.emit)
                if self._runs and peer not in self.channels:
                    self.dialers[peer].take(Event.START, self.now_us)

    def publish_unsent(self, channel: Channel, publisher: Publisher) -> None:
        """Send closed batches, as far as the channel has room."""
        while channel.open_for_bulk and (batches := publisher.take_unsent(channel.room_bytes)):
            self.send(channel, *batches)

    def acknowledge(
        self, channel: Channel, message: Published, publisher: Publisher | None
    ) -> Publish | None:
        """The batch that is published now; a peer that acknowledges what is not next is left."""
        problem = f"PUBLISHED on stream {message.stream}, to which nothing was sent"
        if publisher is not None:
            try:
                return publisher.acknowledge(message)
            except RemoteProtocolError as error:
                problem = str(error)
        self.refuse(channel, Refusal.UNEXPECTED, problem)
        self.drop(channel, "unexpected acknowledgement", abort=False)
        return None

    def refuse(self, channel: Channel, code: Refusal, reason: str, stream: int = 0, request: int = 0) -> None:
        """Tell the peer what was wrong, and log it."""
        self.log("refused_peer", "warning", peer=channel.name, code=code.name.lower(), reason=reason)
        self.send(channel, Refused(code, stream, request, reason))

    def pause_reading(self, channel: Channel) -> None:
        """Read no more from it; its silence is then our own doing."""
        channel.is_read = False
        self.emit(m.PauseReading(channel.connection))

    def resume_reading(self, channel: Channel) -> None:
        """Read on."""
        channel.is_read = True
        channel.heard_us = self.now_us
        self.emit(m.ResumeReading(channel.connection))

    def drop(self, channel: Channel, reason: str, *, abort: bool = True) -> None:
        """Close a channel from our side and deal with its loss."""
        if self._connections.pop(channel.connection, None) is None:
            return
        self.emit(m.Close(channel.connection, abort))
        self._forget(channel, reason)

    # --- Inputs

    def _started(self, given: m.Started) -> None:
        self.incarnation = self.now_us + 1
        self._hello = Hello(self.role, self.incarnation, self.name)
        self._heartbeats.start()
        self.restored(given.stored)
        self.started()
        self._runs = True
        for dialer in self.dialers.values():
            dialer.take(Event.START, self.now_us)

    def _connected(self, given: m.Connected) -> None:
        dialer = self.dialers.get(given.peer) if given.peer is not None else None
        if given.peer is not None and (dialer is None or not dialer.take(Event.CONNECTED, self.now_us)):
            self.emit(m.Close(given.connection))  # no longer wanted, or the peer was faster
            return
        channel = Channel(given.connection, given.peer, self.now_us, self.parameters.burst_limit_bytes)
        self._connections[given.connection] = channel
        self.send(channel, self._hello)

    def _connect_failed(self, given: m.ConnectFailed) -> None:
        dialer = self.dialers.get(given.peer)
        if dialer is not None:
            dialer.take(Event.FAILED, self.now_us)

    def _received(self, given: m.Received) -> None:
        channel = self._connections.get(given.connection)
        if channel is None:
            return  # closed by us while this was on its way
        channel.heard_us = self.now_us
        for message in given.messages:
            self._take(channel, message)
            if channel.connection not in self._connections:
                return

    def _take(self, channel: Channel, message: Any) -> None:
        if channel.role is None and type(message) is Hello:
            self._greeted(channel, message)
            return
        channel.has_answered = True
        if type(message) is Refused:
            self.log(
                "refused_by_peer", "warning", peer=channel.name, code=message.code, reason=message.reason
            )
            self.refused(channel, message)
        elif channel.role is not None and (take := self.takes.get((channel.role, type(message)))):
            take(channel, message)
        else:
            self.refuse(channel, Refusal.UNEXPECTED, f"unexpected {wire_name(type(message))}")
            self.drop(channel, "unexpected message", abort=False)

    def refused(self, channel: Channel, message: Refused) -> None:
        """A hook: the peer did not accept something."""

    def _greeted(self, channel: Channel, hello: Hello) -> None:
        if channel.dialled not in {None, hello.name}:
            self.refuse(channel, Refusal.UNEXPECTED, f"I dialled {channel.dialled}, not {hello.name}")
            self.drop(channel, "another process answered", abort=False)
            return
        channel.name, channel.role, channel.incarnation = hello.name, Role(hello.role), hello.incarnation
        older = self.channels.get(hello.name)
        if older is not None and self._is_better(older, channel):
            self.drop(channel, "there is a connection already", abort=False)
            return
        self.channels[hello.name] = channel
        if older is not None:
            self.drop(older, "replaced by a newer connection")
            self.log("peer_lost", peer=older.name, reason="replaced by a newer connection")
            self.lost(older, "replaced by a newer connection")
        if channel.dialled is not None:
            self.dialers[channel.dialled].settled()
        elif hello.name in self.dialers:
            self.dialers[hello.name].take(Event.STOP, self.now_us)
        self.log("peer_connected", peer=hello.name)
        self.send(channel, Advertisement(tuple(self.counters())))
        self.opened(channel)

    def _is_better(self, older: Channel, newer: Channel) -> bool:
        """Whether to keep `older`: each side dialled the other at once, and both must keep the same one."""
        crossed = (older.dialled is None) != (newer.dialled is None)
        ours_first = self.name < older.name
        return (
            crossed and older.incarnation == newer.incarnation and ours_first == (older.dialled is not None)
        )

    def _malformed(self, given: m.Malformed) -> None:
        channel = self._connections.get(given.connection)
        if channel is not None:
            self.refuse(channel, Refusal.MALFORMED, given.problem)
            self.drop(channel, f"malformed: {given.problem}", abort=False)

    def _disconnected(self, given: m.Disconnected) -> None:
        channel = self._connections.pop(given.connection, None)
        if channel is not None:
            self._forget(channel, given.reason)

    def _forget(self, channel: Channel, reason: str) -> None:
        """After the connection is gone: dial again, tell the role."""
        peer = channel.dialled or channel.name
        known = self.channels.get(channel.name) is channel
        if known:
            del self.channels[channel.name]
        dialer = self.dialers.get(peer)
        if dialer is not None and peer not in self.channels:
            _ = dialer.take(Event.LOST, self.now_us) or dialer.take(Event.START, self.now_us)
        if known:
            self.log("peer_lost", peer=channel.name, reason=reason)
            self.lost(channel, reason)

    def _writable(self, given: m.Writable) -> None:
        channel = self._connections.get(given.connection)
        if channel is not None:
            channel.room_bytes = self.parameters.burst_limit_bytes
            channel.awaiting = False
            self.writable(channel)

    def _timer_fired(self, given: m.TimerFired) -> None:
        if self._heartbeats.timer_fired(given.timer):
            return
        if given.timer[0] == "dial":
            if given.timer[1] in self.dialers:
                self.dialers[given.timer[1]].take(Event.RETRY, self.now_us)
        else:
            self.timer_fired(given.timer)

    def _finish(self, given: m.Finish) -> None:
        for dialer in self.dialers.values():
            dialer.take(Event.STOP, self.now_us)
        for channel in self._connections.values():
            self.emit(m.Close(channel.connection))
        self._heartbeats.stop()
        self.emit(m.Finished())
        self._finished = True
