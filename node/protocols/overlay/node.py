"""A node of a publish/subscribe system on an overlay: one process, as a machine without I/O.

Every process is a node of the overlay, whatever its role; the plan determines what it publishes and
subscribes to. Each system extends `OverlayNode` with its layers.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from ipaddress import IPv4Address
from typing import Any

from node.core import machine as m
from node.core.deliveries import RecordKind
from node.core.framing import FRAME_LIMIT_BYTES
from node.core.peers.peer_pool import Address, PeerEffect, PeerInput, ReceivedFrom, Unreachable
from node.core.schedule import Schedule
from node.core.specification import Member, NodeSpec
from node.protocols.reachability.carrier import RoutingNode

TICK: m.Timer = ("tick",)
NEVER_US = 1 << 62


class OverlayNode:
    """One process. The system sets `overlay` and overrides the methods below."""

    frame_limit_bytes = FRAME_LIMIT_BYTES
    overlay: RoutingNode[Any]

    def __init__(self, spec: NodeSpec, *, tick_interval_us: int, pause_us: int) -> None:
        """Create a node without layers.

        pause_us: lateness of a tick after which this process counts as not having run.
        """
        self._spec = spec
        self._effects: list[PeerEffect] = []
        self._schedule = Schedule(spec)
        self._is_ready = False
        self._published = 0
        self._tick_interval_us, self._pause_us = tick_interval_us, pause_us
        self._tick_us = 0  # time of the next tick
        self._pause_at_us = NEVER_US

    # --- Behaviour of a system

    def _start(self, given: m.Started, now_us: int) -> None:
        """Join the overlay."""
        raise NotImplementedError

    def _leave(self, now_us: int) -> None:
        """Leave the overlay and emit Finished, at once or later."""
        raise NotImplementedError

    def _work(self, now_us: int) -> None:
        """Execute due work, at each tick of an active node."""
        raise NotImplementedError

    def _timer(self, timer: m.Timer) -> None:
        """Process a timer that is not the overlay's."""
        raise NotImplementedError

    def _unreachable(self, given: Unreachable, now_us: int) -> None:
        """Process a connection that was lost or could not be opened."""
        self.overlay.unreachable(given, now_us)

    def _complete(self, now_us: int) -> None:
        """Extend the effects of an input before they are returned."""

    def progress(self) -> m.NodeProgress:
        """See `node.core.machine.Machine`."""
        raise NotImplementedError

    def check(self) -> None:
        """See `node.core.machine.Machine`."""
        raise NotImplementedError

    # --- The machine

    def _emit(self, effect: PeerEffect) -> None:
        self._effects.append(effect)

    def _set_time(self, now_us: int) -> None:
        self._effects = []
        self.overlay.reach.now_us = now_us

    def handle(self, given: PeerInput, now_us: int) -> Sequence[PeerEffect]:
        """See `node.core.peers.peer_pool.PeerMachine`."""
        self._set_time(now_us)
        if self._pause_at_us < now_us and self._has_paused(now_us):
            self._wake(now_us)
        match given:
            case ReceivedFrom():
                self.overlay.take(given.address, given.messages, now_us)
            case m.TimerFired():
                if given.timer == TICK:
                    self._tick_again(now_us)
                    if self.overlay.is_active:
                        self._work(now_us)
                elif not self.overlay.timer(given.timer, now_us):
                    self._timer(given.timer)
            case Unreachable():
                self._unreachable(given, now_us)
            case m.Started():
                self._emit(m.Record(RecordKind.SESSION, 0, self._spec.start, 0, 0))
                self._tick_again(now_us)
                self._start(given, now_us)
            case m.Go():
                self._schedule.begin(given)
            case m.StopDrivers():
                self._schedule.is_stopped = True
            case m.Finish():
                self._leave(now_us)
        self._complete(now_us)
        if not self._is_ready and self.overlay.is_active:
            self._is_ready = True
            self._emit(m.Ready())
        return self._effects

    def act(self, now_us: int, do: Callable[[], Any]) -> Sequence[PeerEffect]:
        """Call a function on this node from outside; return the resulting effects."""
        self._set_time(now_us)
        do()
        self._complete(now_us)
        return self._effects

    def _contacts(self) -> list[Address]:
        """Return the nodes to join through; none for the very first node."""
        return [int(IPv4Address(each.address)) for each in self._spec.members if each.name != self._spec.name]

    # --- Time

    def _tick_again(self, now_us: int) -> None:
        self._ticks_at(now_us + self._tick_interval_us)
        self._emit(m.SetTimer(TICK, self._tick_us))

    def _ticks_at(self, tick_us: int) -> None:
        """Set the time of the next tick, and the time after which this process counts as paused."""
        self._tick_us, self._pause_at_us = tick_us, tick_us + self._pause_us

    def _has_paused(self, now_us: int) -> bool:
        """Return whether a process that runs again only now, later than `_pause_at_us`, counts as paused."""
        return True

    def _wake(self, now_us: int) -> None:
        """Process a pause that is almost as long as the time after which other nodes consider this one
        failed.
        """
        self._ticks_at(now_us)


def unplanned_spec(
    system: str,
    role: str,
    name: str,
    address: Address | str,
    *,
    contacts: Iterable[Address | str] = (),
    parameters: Mapping[str, Any],
    **given: Any,
) -> NodeSpec:
    """Return the specification of a node outside of a run. contacts: existing nodes; none for the first."""
    texts = [str(IPv4Address(each)) for each in contacts]
    members = tuple(Member(each, each, "", role, 0, each) for each in texts)
    own = str(IPv4Address(address))
    return NodeSpec(name, name, "", role, 0, 0, system, members, own, parameters, **given)
