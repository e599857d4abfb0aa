"""Machine for small systems: connections kept by the peer's name, a tick, an orderly end.

A role of a small system extends `SmallMachine` and overrides its behaviour: `begin`, `tick`, `take`,
`joined`, `progress`. Connections to peers that it names with `keep` are opened again when they are lost. All
other effects of `node.core.machine` are available through `emit`.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from node.core import machine as m
from node.core.content import content_measures
from node.core.deliveries import RecordKind
from node.core.schedule import Schedule
from node.core.specification import Member, NodeSpec, PlannedSubscription

AGAIN_US = 200_000  # pause before a lost connection is opened again
TIMEOUT_US = 3_000_000  # of one attempt: longer than any round trip
TICK = ("tick",)


class SmallMachine:
    """One node. `peers` has the open connections that this one keeps, by name; `ready` reports Ready once.

    `schedule` has the time at which publishers begin, and whether they publish nothing new. port: on which
    peers listen. tick_us: between two calls of `tick`.
    """

    frame_limit_bytes = 1 << 20

    def __init__(self, spec: NodeSpec, rng: m.Randomness, *, port: int, tick_us: int) -> None:
        self.spec, self.rng = spec, rng
        self.now_us = 0
        self.schedule = Schedule(spec)
        self.peers: dict[str, int] = {}
        self._kept: dict[str, Member] = {}
        self._port, self._tick_us = port, tick_us
        self._effects: list[m.Effect] = []
        self._is_ready = False

    @property
    def stopped(self) -> bool:
        """Whether publishers publish nothing new."""
        return self.schedule.is_stopped

    # --- Behaviour of a role

    def begin(self) -> None:
        """Start the process: listen, open connections."""

    def tick(self) -> None:
        """Act after `tick_us` since the last tick."""

    def take(self, connection: int, message: Any) -> None:
        """Handle a message that arrived on this connection."""

    def joined(self, connection: int, peer: str | None) -> None:
        """Handle an open connection: to a peer that is kept, or accepted (None)."""

    def left(self, connection: int) -> None:
        """Handle the loss of a connection, kept or accepted."""

    def progress(self) -> m.NodeProgress:
        """Return the progress of this node."""
        return m.NodeProgress()

    def check(self) -> None:
        """See `node.core.machine.Machine`."""

    # --- Methods for a role

    def emit(self, *effects: m.Effect) -> None:
        """Add these effects, after all earlier ones."""
        self._effects += effects

    def send(self, connection: int, *messages: Any) -> None:
        """Send messages, in order."""
        self.emit(m.Send(connection, messages))

    def record(
        self, kind: RecordKind, stream: int, seq: int = 0, count: int = 0, payload: bytes = b""
    ) -> None:
        """Record what was published, delivered or subscribed: `count` events from `seq` on."""
        self.emit(m.Record(kind, stream, seq, count, count, payload))

    def interest(self, kind: RecordKind, subscription: PlannedSubscription) -> None:
        """Record a change of a subscription by content."""
        self.emit(content_measures.interest(kind, self.spec.start, subscription))

    def measure(self, name: str, **values: float) -> None:
        """Record a measure of this system."""
        self.emit(m.Measure(name, values))

    def keep(self, member: Member) -> None:
        """Open a connection to another node, and again whenever it is lost."""
        self._kept[member.name] = member
        self.emit(m.Connect(member.name, member.address, self._port, TIMEOUT_US))

    def drop(self, peer: str) -> None:
        """Discard a connection with all unsent data; it is opened again."""
        self.emit(m.Close(self.peers.pop(peer), abort=True))
        self._open_again(peer)

    def due_events(self) -> int:
        """Return how many events a publisher should have published by now, at the workload's rate."""
        return self.schedule.due_events(self.now_us)

    def due_subscriptions(self) -> Iterator[PlannedSubscription]:
        """Yield the changes of subscriptions that are due; see `node.core.schedule`."""
        return self.schedule.due_subscriptions(self.now_us)

    def ready(self) -> None:
        """Report that this node fulfils its role."""
        if not self._is_ready:
            self._is_ready = True
            self.emit(m.Ready())

    # --- The machine

    def handle(self, given: m.Input, now_us: int) -> Sequence[m.Effect]:
        """See `node.core.machine.Machine`."""
        self.now_us, self._effects = now_us, []
        match given:
            case m.Started():
                self.record(RecordKind.SESSION, 0, self.spec.start)
                self.emit(m.SetTimer(TICK, now_us + self._tick_us))
                self.begin()
            case m.Connected():
                if given.peer is not None:
                    self.peers[given.peer] = given.connection
                self.joined(given.connection, given.peer)
            case m.ConnectFailed():
                self._open_again(given.peer)
            case m.Disconnected() | m.Malformed():
                self._lost(given.connection)
            case m.Received():
                for message in given.messages:
                    self.take(given.connection, message)
            case m.TimerFired():
                self._timer(given.timer)
            case m.Go():
                self.schedule.begin(given)
            case m.StopDrivers():
                self.schedule.is_stopped = True
            case m.Finish():
                self.emit(*(m.Close(connection) for connection in self.peers.values()), m.Finished())
        return self._effects

    def _lost(self, connection: int) -> None:
        for peer in [peer for peer, known in self.peers.items() if known == connection]:
            del self.peers[peer]
            self._open_again(peer)
        self.left(connection)

    def _open_again(self, peer: str) -> None:
        self.emit(m.SetTimer(("keep", peer), self.now_us + AGAIN_US))

    def _timer(self, timer: m.Timer) -> None:
        if timer == TICK:
            self.emit(m.SetTimer(TICK, self.now_us + self._tick_us))
            self.tick()
        elif timer[0] == "keep" and timer[1] not in self.peers:
            self.keep(self._kept[timer[1]])
