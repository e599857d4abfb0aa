"""A network without connections, in virtual time, for as many nodes as memory holds.

It runs machines that reach their peers by address (`node.core.peers.peer_pool`). A message is one entry on
the heap and arrives after the delay between two nodes, which is constant, so messages to one node arrive in
order. Nothing else takes time: there are no rates, queues or processors. Cut routes are silent; a sender to
a node that has ended receives Unreachable, as from the node's host. Storage is durable at once, without
Synced. `node.sim.sim_network` models TCP, for up to some thousand processes.

The same machines, seeds and faults give the same trace.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from node.core import machine as m
from node.core.peers.peer_pool import (
    Address,
    Forget,
    PeerInput,
    PeerMachine,
    ReceivedFrom,
    SendTo,
    Unreachable,
)
from node.sim.clock import VirtualClock
from node.sim.huge_pages import use_huge_pages
from node.sim.storage import SimulatedDisk

Delay = Callable[[Address, Address], int]
"""Microseconds from one address to another."""
Reaches = Callable[[Address, Address], bool]
"""Returns whether the route between two addresses is not cut."""
EffectObserver = Callable[[Address, int, m.Effect], None]
"""Receives a node's Record, Measure or Log: address, time, effect."""
SendObserver = Callable[[Address, Address, Sequence[Any]], None]
"""Observes messages as they are sent: sender, receiver, messages."""

HUGE_PAGES_EACH = 100
"""Nodes after whose start the new memory is moved to huge pages."""


def _ignore(_address: Address, _time_us: int, _effect: m.Effect) -> None:
    """Ignore the effect."""


@dataclass(slots=True, eq=False)
class FlatNode:
    """A node and its timers, by the serial number of their latest setting."""

    address: Address
    machine: PeerMachine
    timers: dict[m.Timer, int] = field(default_factory=dict)
    is_ready: bool = False
    is_finished: bool = False


class FlatNetwork:
    """All nodes. `sent` counts messages that were sent.

    `reaches` may be set at any time to cut routes, and `watch` to observe sent messages.
    """

    def __init__(self, delay_us: Delay, told: EffectObserver = _ignore) -> None:
        self.clock = VirtualClock()
        self.nodes: dict[Address, FlatNode] = {}
        self.reaches: Reaches | None = None
        self.watch: SendObserver | None = None
        self.sent = 0
        self.disks: dict[Address, SimulatedDisk] = {}
        self._delay_us = delay_us
        self._told = told
        self._serial = 0

    def start(self, address: Address, machine: PeerMachine) -> None:
        """Start a node now."""
        node = self._enter(FlatNode(address, machine))
        self.clock.at(self.clock.now_us, self._begin, node)

    def add(self, address: Address, machine: PeerMachine) -> None:
        """Add a node that has been running for long: it receives no Started."""
        self._enter(FlatNode(address, machine, is_ready=True))

    def _enter(self, node: FlatNode) -> FlatNode:
        self.nodes[node.address] = node
        if len(self.nodes) % HUGE_PAGES_EACH == 0:
            use_huge_pages()
        return node

    def kill(self, address: Address) -> None:
        """End the node at once, without a notification."""
        self.nodes.pop(address).is_finished = True

    def give(self, address: Address, given: PeerInput) -> None:
        """Give one node an input."""
        self._give(self.nodes[address], given)

    def call(self, address: Address, act: Callable[[Any, int], Sequence[Any]]) -> None:
        """Call `act` with a node's machine, and execute the effects that it returns."""
        node = self.nodes[address]
        self._execute(node, act(node.machine, self.clock.now_us))

    def act(self, address: Address, do: Callable[[Any], Any]) -> None:
        """Call `do` with a node of an overlay, as if by its application."""
        self.call(address, lambda node, now_us: node.act(now_us, lambda: do(node)))

    def run(self, until_us: int) -> None:
        """Advance virtual time."""
        self.clock.run_until(until_us)

    # --- Inputs

    def _begin(self, node: FlatNode) -> None:
        disk = self.disks.get(node.address)
        stored = disk.segments.items() if disk else ()
        self._give(node, m.Started(tuple(m.StoredSegment(number, tuple(each)) for number, each in stored)))

    def _give(self, node: FlatNode, given: PeerInput) -> None:
        if not node.is_finished:
            self._execute(node, node.machine.handle(given, self.clock.now_us))

    def _arrive(self, sent: tuple[Address, ReceivedFrom]) -> None:
        target, received = sent
        node = self.nodes.get(target)
        if node is None or node.is_finished:
            source = received.address
            if source in self.nodes and (self.reaches is None or self.reaches(target, source)):
                back_us = self._delay_us(target, source)
                self.clock.at(self.clock.now_us + back_us, self._refuse, (source, target))
            return
        self._execute(node, node.machine.handle(received, self.clock.now_us))

    def _refuse(self, between: tuple[Address, Address]) -> None:
        source, target = between
        if source in self.nodes:
            self._give(self.nodes[source], Unreachable(target, "refused", is_refused=True))

    def _fire(self, planned: tuple[FlatNode, m.Timer, int]) -> None:
        node, timer, serial = planned
        if node.timers.get(timer) == serial:
            del node.timers[timer]
            self._give(node, m.TimerFired(timer))

    # --- Effects

    def _execute(self, node: FlatNode, effects: Sequence[Any]) -> None:
        now_us, at, reaches = self.clock.now_us, self.clock.at, self.reaches
        for effect in effects:
            kind = type(effect)
            if kind is SendTo:
                target = effect.address
                self.sent += len(effect.messages)
                if self.watch is not None:
                    self.watch(node.address, target, effect.messages)
                if reaches is None or reaches(node.address, target):
                    delay_us = self._delay_us(node.address, target)
                    at(now_us + delay_us, self._arrive, (target, ReceivedFrom(node.address, effect.messages)))
            elif kind is m.SetTimer:
                self._serial += 1
                node.timers[effect.timer] = self._serial
                at(effect.at_us, self._fire, (node, effect.timer, self._serial))
            elif kind is m.CancelTimer:
                node.timers.pop(effect.timer, None)
            elif kind in {m.Record, m.Measure, m.Log}:
                self._told(node.address, now_us, effect)
            elif kind in {m.Append, m.Rewrite}:
                self.disks.setdefault(node.address, SimulatedDisk()).execute(effect)
            elif kind is m.Ready:
                node.is_ready = True
            elif kind is m.Finished:
                node.is_finished = True
            else:
                assert kind is Forget, f"a network without connections knows no {kind.__name__}"
