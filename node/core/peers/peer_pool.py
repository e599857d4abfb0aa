"""Pool of connections to peers that are reached by address: opened on the first message, and shared.

For systems whose nodes come and go and need no connection of their own: their machine emits `SendTo` and
receives `ReceivedFrom` and `Unreachable`. `PeerPool` turns it into an ordinary machine of
`node.core.machine`; a network without connections (`node.sim.flat_network`) executes the same effects itself.

Messages to one address arrive at most once, and in order as long as no connection is lost in between. There
is no acknowledgement: `Unreachable` only reports that recent messages may be lost. On a link that is cut, a
connection may fail silently; the machine must detect that and `Forget` the connection.

Connections are bounded in number and closed when idle, and a peer that reads nothing has a bounded queue. Two
nodes that dial each other at the same time have two connections, and each continues to send on the one on
which it began: so order is kept.
"""

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address
from typing import Any, Protocol

from node.core import machine as m

Address = int
"""An IPv4 address as a number, as messages carry it."""

SWEEP: m.Timer = ("peer pool",)


@dataclass(frozen=True, slots=True)
class SendTo:
    """Effect: write these messages to the process at an address, in order, after all earlier ones."""

    address: Address
    messages: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Forget:
    """Effect: discard the connection to an address with all unsent messages.

    The next SendTo opens a new one.
    """

    address: Address


@dataclass(frozen=True, slots=True)
class ReceivedFrom:
    """Input: messages that arrived together, in order."""

    address: Address
    messages: Sequence[Any]


@dataclass(frozen=True, slots=True)
class Unreachable:
    """Input: recent messages to an address may be lost; nothing is retried.

    is_refused: its host answers, but no process listens there.
    """

    address: Address
    reason: str
    is_refused: bool = False


PeerInput = m.Input | ReceivedFrom | Unreachable
PeerEffect = m.Effect | SendTo | Forget


def gathered(effects: Sequence[PeerEffect]) -> list[PeerEffect]:
    """Merge the SendTo effects for each address into the first one, because each costs a write and a packet.

    Messages sent after a Forget stay after it.
    """
    found: list[PeerEffect] = []
    places: dict[Address, int] = {}
    for effect in effects:
        if isinstance(effect, SendTo):
            place = places.get(effect.address)
            if place is None:
                places[effect.address] = len(found)
                found.append(effect)
            else:
                before = found[place]
                assert isinstance(before, SendTo)
                found[place] = SendTo(effect.address, (*before.messages, *effect.messages))
        else:
            if isinstance(effect, Forget):
                places.pop(effect.address, None)
            found.append(effect)
    return found


class PeerMachine(Protocol):
    """A machine that reaches its peers by address."""

    frame_limit_bytes: int  # longer frames are neither sent nor accepted

    def handle(self, given: PeerInput, now_us: int) -> Sequence[PeerEffect]:
        """Process one input at time `now_us` and return the effects, in order."""

    def progress(self) -> m.NodeProgress:
        """Return the progress of this node."""

    def check(self) -> None:
        """See `node.core.machine.Machine`."""


@dataclass(frozen=True, slots=True)
class PoolLimits:
    """Limits of a pool."""

    connections: int = 256
    idle_us: int = 30_000_000  # without a message in either direction, until a connection is closed
    dial_timeout_us: int = 2_000_000
    burst: int = 64  # messages handed to a connection before Writable is awaited
    waiting: int = 4_096  # messages for one peer that has no room, or is being dialled


@dataclass(slots=True)
class _Peer:
    """State of one address. `connection` is the one used for sending."""

    address: Address
    used_us: int
    connection: int | None = None
    is_dialling: bool = False
    handed: int = 0  # messages since the connection last had room
    waiting: deque[Any] = field(default_factory=deque)


class PeerPool:
    """A machine of `node.core.machine` around one that reaches its peers by address, all at one port."""

    def __init__(self, machine: PeerMachine, port: int, limits: PoolLimits | None = None) -> None:
        self.machine = machine
        self.frame_limit_bytes = machine.frame_limit_bytes
        self._port = port
        self._limits = limits or PoolLimits()
        self._peers: dict[Address, _Peer] = {}
        self._addresses: dict[
            int, Address
        ] = {}  # of every open connection, including those that are only read
        self._effects: list[m.Effect] = []
        self._now_us = 0

    def progress(self) -> m.NodeProgress:
        """See `node.core.machine.Machine`."""
        return self.machine.progress()

    def check(self) -> None:
        """See `node.core.machine.Machine`."""
        assert len(self._addresses) <= self._limits.connections, "more connections than the pool may have"
        assert set(self._addresses.values()) <= set(self._peers), "a connection without a peer"
        for address, peer in self._peers.items():
            assert len(peer.waiting) <= self._limits.waiting, "more messages wait for a peer than the limit"
            assert peer.connection is None or self._addresses.get(peer.connection) == address, (
                "a peer with the wrong connection"
            )
        self.machine.check()

    def handle(self, given: m.Input, now_us: int) -> Sequence[m.Effect]:
        """See `node.core.machine.Machine`."""
        self._now_us, self._effects = now_us, []
        match given:
            case m.Received():
                self._received(given)
            case m.Connected():
                self._connected(given)
            case m.Writable():
                self._writable(given.connection)
            case m.ConnectFailed():
                peer = self._peers[int(given.peer)]
                peer.is_dialling = False
                if peer.connection is None:
                    self._lost(peer, given.reason, is_refused=given.is_refused)
            case m.Disconnected():
                self._disconnected(given.connection, given.reason)
            case m.Malformed():
                self._effects.append(m.Close(given.connection, abort=True))
                self._disconnected(given.connection, f"malformed: {given.problem}")
            case m.TimerFired(timer=timer) if timer == SWEEP:
                self._sweep()
            case m.Started():
                self._effects += (m.Listen(self._port), m.SetTimer(SWEEP, now_us + self._limits.idle_us))
                self._give(given)
            case _:
                self._give(given)
        return self._effects

    # --- Effects of the machine

    def _give(self, given: PeerInput) -> None:
        for effect in self.machine.handle(given, self._now_us):
            match effect:
                case SendTo():
                    self._send(effect)
                case Forget():
                    self._forget(effect.address)
                case m.Finished():
                    self._effects += (m.Close(number) for number in self._addresses)
                    self._effects.append(effect)
                case _:
                    self._effects.append(effect)

    def _send(self, effect: SendTo) -> None:
        peer = self._peers.get(effect.address)
        if peer is None:
            peer = self._peers[effect.address] = _Peer(effect.address, self._now_us)
        peer.used_us = self._now_us
        if peer.connection is None or peer.handed >= self._limits.burst:
            peer.waiting.extend(effect.messages)
            self._hold(peer)
        else:
            self._hand_over(peer, effect.messages)

    def _hand_over(self, peer: _Peer, messages: Sequence[Any]) -> None:
        assert peer.connection is not None
        self._effects.append(m.Send(peer.connection, messages))
        peer.handed += len(messages)
        if peer.handed >= self._limits.burst:
            self._effects.append(m.AwaitWritable(peer.connection))

    def _hold(self, peer: _Peer) -> None:
        """Dial a peer for which messages wait, or drop them if there are too many."""
        if len(peer.waiting) > self._limits.waiting:
            self._forget(peer.address)
            self._give(Unreachable(peer.address, f"more than {self._limits.waiting} messages wait for it"))
        elif peer.connection is None and not peer.is_dialling:
            peer.is_dialling = True
            address = str(IPv4Address(peer.address))
            self._effects.append(
                m.Connect(str(peer.address), address, self._port, self._limits.dial_timeout_us)
            )

    def _forget(self, address: Address) -> None:
        peer = self._peers.pop(address, None)
        if peer is not None and peer.is_dialling:  # its outcome still arrives, and finds nothing to send
            self._peers[address] = _Peer(address, self._now_us, is_dialling=True)
        for number in [number for number, other in self._addresses.items() if other == address]:
            self._close(number, abort=True)

    # --- Inputs from connections

    def _connected(self, given: m.Connected) -> None:
        dialled = given.peer is not None
        if not dialled and not given.address:  # lost before its address was read
            self._effects.append(m.Close(given.connection, abort=True))
            return
        address = int(given.peer) if given.peer is not None else int(IPv4Address(given.address))
        self._addresses[given.connection] = address
        peer = self._peers.get(address)
        if peer is None:
            peer = self._peers[address] = _Peer(address, self._now_us)
        peer.used_us = self._now_us
        if dialled:
            peer.is_dialling = False
        if peer.connection is None:
            peer.connection, peer.handed = given.connection, 0
            self._hand_over_waiting(peer)
        self._keep_within_limit(given.connection)

    def _writable(self, number: int) -> None:
        peer = self._peers.get(self._addresses.get(number, -1))
        if peer is not None and peer.connection == number:
            peer.handed = 0
            self._hand_over_waiting(peer)

    def _hand_over_waiting(self, peer: _Peer) -> None:
        count = min(len(peer.waiting), self._limits.burst)
        if count:
            self._hand_over(peer, [peer.waiting.popleft() for _ in range(count)])

    def _received(self, given: m.Received) -> None:
        address = self._addresses.get(given.connection)
        if address is not None:
            self._peers[address].used_us = self._now_us
            self._give(ReceivedFrom(address, given.messages))

    def _disconnected(self, number: int, reason: str) -> None:
        address = self._addresses.pop(number, None)
        if address is None:
            return
        peer = self._peers[address]
        if peer.connection == number:
            self._lost(peer, reason)
        else:
            self._drop_if_unused(peer)

    def _lost(self, peer: _Peer, reason: str, *, is_refused: bool = False) -> None:
        """Handle the loss of the sending connection. The machine is notified only if messages may be lost."""
        quiet_us = self._now_us - peer.used_us
        peer.connection = None
        is_news = bool(peer.waiting) or quiet_us < self._limits.idle_us // 2
        peer.waiting.clear()
        self._drop_if_unused(peer)
        if is_news:
            self._give(Unreachable(peer.address, reason, is_refused))

    # --- Bounds

    def _sweep(self) -> None:
        self._effects.append(m.SetTimer(SWEEP, self._now_us + self._limits.idle_us))
        for number in list(self._idle()):
            self._close(number)

    def _idle(self) -> Iterator[int]:
        for number, address in self._addresses.items():
            if self._now_us - self._peers[address].used_us >= self._limits.idle_us:
                yield number

    def _keep_within_limit(self, newest: int) -> None:
        if len(self._addresses) > self._limits.connections:
            others = (number for number in self._addresses if number != newest)
            self._close(min(others, key=lambda number: self._peers[self._addresses[number]].used_us))

    def _close(self, number: int, *, abort: bool = False) -> None:
        address = self._addresses.pop(number)
        self._effects.append(m.Close(number, abort=abort))
        peer = self._peers.get(address)
        if peer is not None and peer.connection == number:
            peer.connection = None
            if peer.waiting:
                self._hold(peer)
        if peer is not None:
            self._drop_if_unused(peer)

    def _drop_if_unused(self, peer: _Peer) -> None:
        is_read = peer.address in self._addresses.values()
        if not (is_read or peer.is_dialling or peer.waiting or peer.connection is not None):
            del self._peers[peer.address]
