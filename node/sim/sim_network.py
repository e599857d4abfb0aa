"""A simulated network: processes on hosts, connections between them, cuts, crashes; all in virtual time.

It executes the effects of the same machines that `node.tcp` runs. Everything follows from the machines, their
seeds and the injected faults, so the same seed gives the same trace. Messages travel as objects, with the
sizes that their frames would have; see `node.sim.pipe` for their transport and `node.sim.connections` for
opening and closing connections.

Not modelled: the computing time of processes.
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from random import Random
from typing import Any

from node.core import machine as m
from node.core.errors import NodeFailureError, failure_text
from node.core.specification import Member, NodeSpec
from node.core.wrong_clock import WrongClock
from node.sim.clock import VirtualClock
from node.sim.connections import Connections
from node.sim.process import RETAINING_OBSERVER, Node, Observer, TraceEntry
from node.sim.storage import Disks
from node.sim.wires import LinkLine, Region, Wires
from node.systems import build_machine, codecs

Build = Callable[[NodeSpec, m.Randomness], m.Machine]
Carry = Callable[[Node, Any], None]
Sent = Callable[[Node, Node, m.Send], None]
"""Observes messages as they are sent: sender, receiver, effect."""


class SimulatedNetwork:
    """All nodes and their connections.

    trace_limit: number of messages kept in `trace`. observer: receives records and logs; by default the nodes
    keep them. seed: of losses on links. uptimes_us: by process, how much longer than virtual time its host
    has been up, and so how far its clock is ahead. renewed: returns the specification for a start.
    """

    def __init__(
        self,
        specs: Iterable[NodeSpec],
        wires: Wires,
        *,
        build: Build = build_machine,
        start: bool = True,
        trace_limit: int = 0,
        observer: Observer = RETAINING_OBSERVER,
        seed: int = 0,
        uptimes_us: Mapping[str, int] | None = None,
        renewed: Callable[[NodeSpec], NodeSpec] = lambda spec: spec,
        sent: Sent | None = None,
    ) -> None:
        self.clock = VirtualClock()
        self._uptimes_us = uptimes_us or {}
        self._renewed = renewed
        self.nodes: dict[str, Node] = {}
        self._specs = {spec.name: spec for spec in specs}
        first = next(iter(self._specs.values()))
        known = {id(spec.members): spec.members for spec in self._specs.values()}
        self._members = {member.address: member for members in known.values() for member in members}
        self._members |= {spec.address: _member(spec) for spec in self._specs.values() if spec.address}
        self._build = build
        self._observer = observer
        self._starts: dict[str, int] = {}
        self._wrong: dict[str, WrongClock] = {}
        self._timer_serial = 0
        self._connections = Connections(self.clock, wires, codecs()[first.system], seed, self._give)
        self.trace: list[TraceEntry] = []
        self.disks = Disks(self.clock, self._give, seed)
        record, clock = observer.record, self.clock
        self._handlers: dict[type, Carry] = {
            m.Send: self._connections.send,
            m.SetTimer: self._set_timer,
            m.Record: lambda node, effect: record(node, clock.now_us, effect),
            m.Measure: lambda node, effect: self._observer.measure(node, self.clock.now_us, effect),
            m.Log: lambda node, effect: self._observer.log(node, self.clock.now_us, effect),
            m.AwaitWritable: lambda _, effect: self._connections.await_writable(effect.connection),
            m.Append: self.disks.take,
            m.Rewrite: self.disks.take,
            m.CancelTimer: _cancel_timer,
            m.Connect: self._connect,
            m.Close: self._close,
            m.Listen: _listen,
            m.Ready: self._ready,
            m.Finished: self._finished,
            m.PauseReading: lambda _, effect: self._connections.pause_reading(effect.connection),
            m.ResumeReading: lambda _, effect: self._connections.resume_reading(effect.connection),
        }
        for see in ((self._tracing(trace_limit),) if trace_limit else ()) + ((sent,) if sent else ()):
            self._handlers[m.Send] = self._observed(see, self._handlers[m.Send])
        for name in self._specs if start else ():
            self.start(name)

    # --- Faults and inputs of nodes

    def start(self, name: str) -> None:
        """Start a process, also again after its end. A running process is left unchanged."""
        if name in self.nodes and not self.nodes[name].finished:
            return
        before = self._starts.get(name, 0)
        self._starts[name] = before + 1
        spec = self._renewed(replace(self._specs[name], start=before))
        try:
            machine = self._build(spec, Random(spec.seed))  # noqa: S311 - simulation, not secrets
        except Exception as error:
            raise NodeFailureError(f"{name} failed: {failure_text(error)}") from error
        node = self.nodes[name] = Node(spec, machine, self._uptimes_us.get(name, 0), self._wrong.get(name))
        self.clock.at(self.clock.now_us, self._begin, node)

    def check(self) -> None:
        """Check the invariants of every machine. Raises NodeFailureError."""
        for name, node in self.nodes.items():
            try:
                node.machine.check()
            except Exception as error:
                raise NodeFailureError(f"{name} failed: {failure_text(error)}") from error

    def kill(self, name: str) -> None:
        """Kill the process; its host resets its connections."""
        node = self.nodes.pop(name)
        node.finished = True
        self.disks.crash(name)
        for end in list(node.ends.values()):
            self._connections.close(end, abort=True)

    def reset(self, name: str, peers: Collection[str] = ()) -> None:
        """Reset the process's established connections, or those with these peers; none if the process has
        ended.
        """
        node = self.nodes.get(name)
        for end in list(node.ends.values()) if node is not None else ():
            if not peers or end.other.node.spec.name in peers:
                self._connections.reset(end)

    def stop(self, name: str) -> None:
        """Stop the process (SIGSTOP): it does nothing, its host keeps its connections."""
        self.nodes[name].stopped = True

    def resume(self, name: str) -> None:
        """Resume a stopped process (SIGCONT) and deliver the inputs that arrived meanwhile."""
        node = self.nodes[name]
        node.stopped = False
        waiting, node.waiting = node.waiting, []
        for end, given, size_bytes in waiting:
            if end is None:
                self._give(node, given)
            else:
                end.other.outward.read(size_bytes)
                self._connections.arrived(end, given, size_bytes)

    def set_clock(self, name: str, clock: WrongClock) -> None:
        """Give a process this clock, for right clocks that show virtual time. Its timers follow the clock."""
        clock = self._wrong[name] = clock.moved(self._uptimes_us.get(name, 0))
        node = self.nodes.get(name)
        if node is None:
            return
        before, node.wrong = replace(node, wrong=node.wrong), clock
        for at_us, (owner, timer, serial) in list(self.clock.planned(self._fire)):
            if owner is node and node.timers.get(timer) == serial:
                self._set_timer(node, m.SetTimer(timer, before.shows_us(at_us)))

    def give(self, name: str, given: m.Input) -> None:
        """Give one node an input."""
        self._give(self.nodes[name], given)

    def go(self, name: str, start_us: int, late_us: int = 0) -> None:
        """Give one node a Go for this virtual time, converted to its own clock."""
        node = self.nodes[name]
        self._give(node, m.Go(node.shows_us(start_us), late_us))

    def broadcast(self, given: m.Input, role: str | None = None) -> None:
        """Give all nodes (of a role) an input, as the launcher does with StopDrivers and Finish."""
        for node in list(self.nodes.values()):
            if role in {None, node.spec.role}:
                self._give(node, given)

    def run(self, until_us: int) -> None:
        """Advance virtual time, up to and at `until_us`."""
        self.clock.run_until(until_us)

    # --- Faults of links between regions

    def cut(self, a: Region, b: Region, *, both: bool = True) -> None:
        """Cut the link from `a` to `b`; with `both` also the other direction. Cuts may overlap."""
        for hop in [(a, b), (b, a)] if both else [(a, b)]:
            self._connections.cut(hop)

    def heal(self, a: Region, b: Region, *, both: bool = True) -> None:
        """End one cut from `a` to `b`; with `both` also of the other direction."""
        for hop in [(a, b), (b, a)] if both else [(a, b)]:
            self._connections.heal(hop)

    def change(self, a: Region, b: Region, line: LinkLine) -> None:
        """Give the link from `a` to `b` these parameters from now on."""
        self._connections.change((a, b), line)

    def longest_wait(self) -> tuple[tuple[Region, Region], int] | None:
        """See `Connections.longest_wait`."""
        return self._connections.longest_wait()

    # --- Inputs and effects

    def _begin(self, node: Node) -> None:
        self._give(node, m.Started(self.disks.stored(node.spec.name)))

    def _give(self, node: Node, given: m.Input) -> None:
        if node.finished:
            return
        if node.stopped:
            node.waiting.append((None, given, 0))
            return
        carry = self._handlers
        try:
            now_us = self.clock.now_us  # a call for each input would cost time
            shown_us = now_us + node.ahead_us if node.wrong is None else node.shows_us(now_us)
            for effect in node.machine.handle(given, shown_us):
                carry[type(effect)](node, effect)
        except NodeFailureError:  # of another node, reached through this effect
            raise
        except Exception as error:
            text = failure_text(error, node.machine)
            raise NodeFailureError(f"{node.spec.name} failed: {text}") from error

    def _observed(self, sent: Sent, send: Carry) -> Carry:
        ends = self._connections.ends

        def show(node: Node, effect: m.Send) -> None:
            end = ends.get(effect.connection)
            if end is not None:
                sent(node, end.other.node, effect)
                send(node, effect)

        return show

    def _tracing(self, limit: int) -> Sent:
        def note(source: Node, target: Node, effect: m.Send) -> None:
            names = source.spec.name, target.spec.name
            if len(self.trace) < limit:
                self.trace += [TraceEntry(self.clock.now_us, *names, each) for each in effect.messages]

        return note

    def _connect(self, node: Node, effect: m.Connect) -> None:
        member = self._members[effect.address]
        place = (member.host, member.region)
        self._connections.dial(node, lambda: self.nodes.get(member.name), place, effect)

    def _close(self, node: Node, effect: m.Close) -> None:
        end = node.ends.get(effect.connection)
        if end is not None:
            self._connections.close(end, abort=effect.abort)

    def _set_timer(self, node: Node, effect: m.SetTimer) -> None:
        self._timer_serial += 1
        node.timers[effect.timer] = self._timer_serial
        self.clock.at(node.due_us(effect.at_us), self._fire, (node, effect.timer, self._timer_serial))

    def _fire(self, planned: tuple[Node, m.Timer, int]) -> None:
        node, timer, serial = planned
        if node.timers.get(timer) == serial:
            del node.timers[timer]
            self._give(node, m.TimerFired(timer))

    def _ready(self, node: Node, _: m.Ready) -> None:
        node.ready = True
        self._observer.ready(node)

    def _finished(self, node: Node, _: m.Finished) -> None:
        node.finished = True
        for end in list(node.ends.values()):
            self._connections.close(end, abort=False)
        self._observer.finished(node)


def _member(spec: NodeSpec) -> Member:
    return Member(spec.name, spec.host, spec.region, spec.role, spec.index, spec.address)


def _listen(node: Node, effect: m.Listen) -> None:
    node.listening = effect.port


def _cancel_timer(node: Node, effect: m.CancelTimer) -> None:
    node.timers.pop(effect.timer, None)
