"""Peering: connections with processes that are known by name, for machines whose peers come and go.

Every connection starts with a *greeting* in both directions: the protocol's first message, which names its
sender. A peer's name is not trusted before its greeting. `keep_connected` sets the peers to connect, at any
time: each is dialled, and dialled again after a loss (`node.core.peers.dialing`), unless it has dialled this
process. Any other process may dial and greet, too.

Two processes have one connection with each other. A second one from a peer replaces the first: that is how a
peer that closed a silent connection returns while this side still holds the old one. If each side dials the
other at once, both keep the connection that was dialled by the process whose name sorts first.

A peer that is not heard for `silence_us` is considered unreachable and its connection is aborted: TCP alone
would notice only after its own, much longer, back-off. Time during which this process did not run or did not
read the connection does not count. The protocol decides which messages peers send as keep-alives, what else a
greeting contains, and what is sent to a peer before it is disconnected (`reject`).

Unsent data is bounded (`node.core.peers.peer_channel`): a peer that does not read is disconnected.

`PeeringMachine` is a `node.core.machine.Machine` whose subclasses implement the hooks. It logs
`peer_connected`, `peer_silent` and `peer_lost`, each with the peer's name.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from mypy_extensions import mypyc_attr

from node.core import machine as m
from node.core.framing import FRAME_LIMIT_BYTES
from node.core.message_layout import Codec
from node.core.peers.dialing import DIAL, Dialer, DialEvent, Pauses, Target
from node.core.peers.peer_channel import Greeting, PeerChannel

SILENCE: m.Timer = ("silence",)


@dataclass(frozen=True, slots=True)
class PeeringLimits:
    """Limits of dialing, silence and sending.

    silence_us: the shortest limit of any peer, and the longest interval between checks. burst_bytes: handed
    to one connection before it must report that it can take more. overdraft_bytes: of small messages beyond
    that.
    """

    pauses: Pauses
    silence_us: int
    burst_bytes: int
    overdraft_bytes: int


C = TypeVar("C", bound=PeerChannel)


@mypyc_attr(allow_interpreted_subclasses=True)
class PeeringMachine(Generic[C]):
    """A machine with peers.

    `channels` has those that greeted, by name; `connections` all, by number; `dialers` those of the peers to
    be connected. `timers` maps the machine's own timers to their handlers; others go to `timer_fired`.
    """

    frame_limit_bytes = FRAME_LIMIT_BYTES

    def __init__(
        self,
        name: str,
        rng: m.Randomness,
        codec: Codec,
        limits: PeeringLimits,
        channel: Callable[[int, str | None, int, int], C],
    ) -> None:
        """Create a peer. name: by which others dial this process. codec: of its messages. channel: creates a
        channel from the arguments of `PeerChannel`.
        """
        self.name = name
        self.rng = rng
        self.now_us = 0
        self.incarnation = 0  # of this process, set when it starts
        self.channels: dict[str, C] = {}
        self.connections: dict[int, C] = {}
        self.dialers: dict[str, Dialer] = {}
        self.timers: dict[m.Timer, Callable[[], None]] = {SILENCE: self._check_silence}
        self._greeting: Greeting
        self._sizes_bytes = codec.sizes_bytes
        self._limits = limits
        self._channel = channel
        self._silence_at_us = 0  # when the next check for silence is due
        self._effects: list[m.Effect] = []
        self._runs = self._is_ready = self._has_finished = False
        self._inputs: dict[type, Callable[[Any], None]] = {
            m.Started: self.begin,
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

    # --- The machine

    def handle(self, given: m.Input, now_us: int) -> Sequence[m.Effect]:
        """See `node.core.machine.Machine`."""
        self.now_us = now_us
        if not self._has_finished:
            self._inputs[type(given)](given)
            self.settle()
            if not self._is_ready and self.is_ready():
                self._is_ready = True
                self.emit(m.Ready())
        effects, self._effects = self._effects, []
        return effects

    def progress(self) -> m.NodeProgress:
        """See `node.core.machine.Machine`."""
        return m.NodeProgress()

    # --- Hooks that a protocol must implement

    def greeting(self) -> Greeting:
        """Return the first message on every connection; called once, when `incarnation` is known."""
        raise NotImplementedError

    def take(self, channel: C, message: Any) -> None:
        """Handle a message that is not a greeting. It may precede one: see `channel.has_greeted`."""
        raise NotImplementedError

    # --- Hooks that a protocol may implement

    def restored(self, stored: Iterable[m.StoredSegment]) -> None:
        """Restore the log that an earlier process of this name left; called before `started`."""

    def started(self) -> None:
        """Handle the start of the process. Dialing begins when this returns."""

    def opened(self, channel: C) -> None:
        """Handle the greeting of a peer; `channels` has it."""

    def lost(self, channel: C, reason: str) -> None:
        """Handle the loss of a channel that had been opened."""

    def writable(self, channel: C) -> None:
        """Handle that the channel takes bulk data again."""

    def timer_fired(self, timer: m.Timer) -> None:
        """Handle a timer that is not among `timers`."""

    def synced(self, appended: int) -> None:
        """Handle that the first `appended` Append effects are on disk."""

    def storage_failed(self, given: m.StorageFailed) -> None:
        """Handle that the disk accepts nothing for now."""
        self.log("storage_failed", "error", problem=given.problem)

    def gave_up(self, given: m.GiveUp) -> None:
        """Handle that the operator gave a process up."""

    def go(self, given: m.Go) -> None:
        """Handle that publishers begin at `given.start_us`."""

    def stop_drivers(self, given: m.StopDrivers) -> None:
        """Handle that publishers publish nothing new."""

    def settle(self) -> None:
        """Send what has become sendable; called after every input."""

    def is_ready(self) -> bool:
        """Return whether the role is fulfilled. Default: all peers to be dialled have greeted."""
        return all(peer in self.channels for peer in self.dialers)

    def silence_us(self, channel: C) -> int:
        """Return how long this peer may be silent; at least `PeeringLimits.silence_us`."""
        return self._limits.silence_us

    def reject(self, channel: C, problem: str, *, is_malformed: bool) -> None:
        """Send the peer the reason, if the protocol can, before its connection is closed.

        is_malformed: it sent bytes that are not a message; else another process than the dialled one
        answered.
        """
        self.log("peer_rejected", "warning", peer=channel.name, problem=problem)

    # --- Methods for the protocol

    def emit(self, effect: m.Effect) -> None:
        """Add an effect to those of this input."""
        self._effects.append(effect)

    def log(self, event: str, level: str = "info", /, **fields: Any) -> None:
        """Write a line to the log."""
        self.emit(m.Log(event, fields, level))

    def send(self, channel: C, *messages: Any) -> None:
        """Send messages and subtract their size from the channel's room.

        Small messages may overdraw it, up to a limit; the overdraft of the last bulk message does not count.
        """
        size_bytes = 0
        for message in messages:
            size_bytes += self._sizes_bytes[type(message)](message)
        self._effects.append(m.Send(channel.connection, messages, size_bytes))
        channel.sent_us = self.now_us
        channel.room_bytes -= size_bytes
        if channel.room_bytes > 0:
            return
        if not channel.awaiting:
            channel.awaiting, channel.room_bytes = True, 0
            self.emit(m.AwaitWritable(channel.connection))
        elif channel.room_bytes < -self._limits.overdraft_bytes:
            self.drop(channel, "does not read")

    def check(self) -> None:
        """See `node.core.machine.Machine`."""
        for name, channel in self.channels.items():
            assert self.connections.get(channel.connection) is channel, "a channel without its connection"
            assert channel.name == name, "a channel under another name"
        for channel in self.connections.values():
            assert channel.room_bytes > 0 or channel.awaiting, "no room, and no AwaitWritable is pending"

    def keep_connected(self, targets: Iterable[Target]) -> None:
        """Keep connections with exactly these processes among those that this side dials.

        Connections to others that this side dialled are closed once all data is sent; those that the peer
        dialled stay open.
        """
        wanted = {target.peer: target for target in targets}
        for peer in [peer for peer in self.dialers if peer not in wanted]:
            self.dialers.pop(peer).take(DialEvent.STOP, self.now_us)
            for channel in [each for each in self.connections.values() if each.dialled == peer]:
                self.drop(channel, "no longer wanted", abort=False)
        for peer, target in wanted.items():
            if peer not in self.dialers:
                self.dialers[peer] = Dialer(target, self._limits.pauses, self.rng, self.emit)
                if self._runs and peer not in self.channels:
                    self.dialers[peer].take(DialEvent.START, self.now_us)

    def pause_reading(self, channel: C) -> None:
        """Stop reading from it; until `resume_reading` its silence does not count."""
        channel.is_read = False
        self.emit(m.PauseReading(channel.connection))

    def resume_reading(self, channel: C) -> None:
        """Read from it again; its silence counts from now on."""
        channel.is_read = True
        channel.heard_us = self.now_us
        self.emit(m.ResumeReading(channel.connection))

    def drop(self, channel: C, reason: str, *, abort: bool = True) -> None:
        """Close a channel from this side and handle its loss."""
        if self.connections.pop(channel.connection, None) is None:
            return
        self.emit(m.Close(channel.connection, abort))
        self._forget(channel, reason)

    # --- Inputs

    def begin(self, given: m.Started) -> None:
        """Start the process. Extend this for work that must precede everything else."""
        self.incarnation = self.now_us + 1
        self._greeting = self.greeting()
        self._watch_silence(self.now_us + self._limits.silence_us)
        self.restored(given.stored)
        self.started()
        self._runs = True
        for dialer in self.dialers.values():
            dialer.take(DialEvent.START, self.now_us)

    def _connected(self, given: m.Connected) -> None:
        dialer = self.dialers.get(given.peer) if given.peer is not None else None
        if given.peer is not None and (dialer is None or not dialer.take(DialEvent.CONNECTED, self.now_us)):
            self.emit(m.Close(given.connection))  # no longer wanted, or the peer was faster
            return
        channel = self._channel(given.connection, given.peer, self.now_us, self._limits.burst_bytes)
        self.connections[given.connection] = channel
        self.send(channel, self._greeting)

    def _connect_failed(self, given: m.ConnectFailed) -> None:
        dialer = self.dialers.get(given.peer)
        if dialer is not None:
            dialer.take(DialEvent.FAILED, self.now_us)

    def _received(self, given: m.Received) -> None:
        channel = self.connections.get(given.connection)
        if channel is None:
            return  # closed by this side while this was in transit
        channel.heard_us = self.now_us
        take, connections = self.take, self.connections
        for message in given.messages:
            if channel.has_greeted or type(message) is not type(self._greeting):
                channel.has_answered = True
                take(channel, message)
            else:
                self._greeted(channel, message)
            if given.connection not in connections:
                return

    def _greeted(self, channel: C, greeting: Greeting) -> None:
        if channel.dialled not in {None, greeting.name}:
            self.reject(
                channel, f"dialled {channel.dialled}, but {greeting.name} answered", is_malformed=False
            )
            self.drop(channel, "another process answered", abort=False)
            return
        channel.greeted(greeting)
        older = self.channels.get(channel.name)
        if older is not None and self._is_better(older, channel):
            self.drop(channel, "there is a connection already", abort=False)
            return
        self.channels[channel.name] = channel
        if older is not None:
            self.drop(older, "replaced by a newer connection")
            self.log("peer_lost", peer=older.name, reason="replaced by a newer connection")
            self.lost(older, "replaced by a newer connection")
        if channel.dialled is not None:
            self.dialers[channel.dialled].settled()
        elif channel.name in self.dialers:
            self.dialers[channel.name].take(DialEvent.STOP, self.now_us)
        self.log("peer_connected", peer=channel.name)
        self.opened(channel)

    def _is_better(self, older: C, newer: C) -> bool:
        """Return whether to keep `older`: if both sides dialled at once, both must keep the same one."""
        crossed = (older.dialled is None) != (newer.dialled is None)
        ours_first = self.name < older.name
        return (
            crossed and older.incarnation == newer.incarnation and ours_first == (older.dialled is not None)
        )

    def _malformed(self, given: m.Malformed) -> None:
        channel = self.connections.get(given.connection)
        if channel is not None:
            self.reject(channel, given.problem, is_malformed=True)
            self.drop(channel, f"malformed: {given.problem}", abort=False)

    def _disconnected(self, given: m.Disconnected) -> None:
        channel = self.connections.pop(given.connection, None)
        if channel is not None:
            self._forget(channel, given.reason)

    def _forget(self, channel: C, reason: str) -> None:
        """Dial again after a lost connection and notify the protocol."""
        peer = channel.dialled or channel.name
        known = self.channels.get(channel.name) is channel
        if known:
            del self.channels[channel.name]
        dialer = self.dialers.get(peer)
        if dialer is not None and peer not in self.channels:
            _ = dialer.take(DialEvent.LOST, self.now_us) or dialer.take(DialEvent.START, self.now_us)
        if known:
            self.log("peer_lost", peer=channel.name, reason=reason)
            self.lost(channel, reason)

    def _writable(self, given: m.Writable) -> None:
        channel = self.connections.get(given.connection)
        if channel is not None:
            channel.room_bytes = self._limits.burst_bytes
            channel.awaiting = False
            self.writable(channel)

    def _timer_fired(self, given: m.TimerFired) -> None:
        word, *rest = given.timer
        if given.timer in self.timers:
            self.timers[given.timer]()
        elif word != DIAL:
            self.timer_fired(given.timer)
        elif rest[0] in self.dialers:
            self.dialers[rest[0]].take(DialEvent.RETRY, self.now_us)

    def _finish(self, given: m.Finish) -> None:
        for dialer in self.dialers.values():
            dialer.take(DialEvent.STOP, self.now_us)
        for connection in self.connections:
            self.emit(m.Close(connection))
        for timer in self.timers:
            self.emit(m.CancelTimer(timer))
        self.emit(m.Finished())
        self._has_finished = True

    # --- Silence

    def _check_silence(self) -> None:
        """Abort connections whose peer has been silent for too long; schedule the next check.

        If this runs late, this process was not reading: that time does not count as the peers' silence.
        """
        late_us = max(0, self.now_us - self._silence_at_us)
        for channel in list(self.connections.values()):
            channel.heard_us = channel.heard_us + late_us if channel.is_read else self.now_us
            silent_us = self.now_us - channel.heard_us
            if silent_us >= self._silence_limit_us(channel):
                self.log("peer_silent", "warning", peer=channel.name, silent_ms=silent_us // 1000)
                self.drop(channel, "silent")
        ends_us = [
            channel.heard_us + self._silence_limit_us(channel) for channel in self.connections.values()
        ]
        self._watch_silence(min([*ends_us, self.now_us + self._limits.silence_us]))

    def _silence_limit_us(self, channel: C) -> int:
        """Return the longest silence of a peer; before it answers the greeting, at least a dial timeout."""
        silence_us = self.silence_us(channel)
        return silence_us if channel.has_answered else max(silence_us, self._limits.pauses.timeout_us)

    def _watch_silence(self, at_us: int) -> None:
        self._silence_at_us = at_us
        self.emit(m.SetTimer(SILENCE, at_us))
