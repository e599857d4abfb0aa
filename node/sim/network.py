"""A simulated network: machines, connections between them, cuts, crashes; all in virtual time.

It carries out the effects of the very machines that `node.tcp` runs. Everything that happens follows from
the machines, their seeds and what is done to the network, so the same seed gives the same trace. Messages
travel as objects, with the sizes that their frames would have. `Wires` says how regions are joined; a cut
is between two regions, in one direction or both, and works on connections as `node.sim.pipe` says. Opening
a connection takes one round trip and needs both directions.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from node.core import machine as m
from node.core.layout import Codec
from node.core.specification import NodeSpec
from node.protocols.building import CODECS, build_machine
from node.sim.clock import Clock
from node.sim.pipe import Pipe
from node.sim.wires import Region, Wires

TRACE_LIMIT = 5_000_000  # entries


@dataclass(frozen=True, slots=True)
class Sent:
    """One line of the trace: a message handed to a connection."""

    time_us: int
    source: str
    target: str
    message: Any


@dataclass(slots=True)
class Node:
    """A simulated process. A stopped one takes nothing until it continues; its inputs wait in order."""

    spec: NodeSpec
    machine: m.Machine
    ready: bool = False
    finished: bool = False
    listening: int | None = None
    stopped: bool = False
    waiting: list[m.Input] = field(default_factory=list)
    timers: dict[m.Timer, int] = field(default_factory=dict)  # name -> serial of its latest setting
    logs: list[tuple[int, m.Log]] = field(default_factory=list)
    records: list[tuple[int, m.Record]] = field(default_factory=list)


@dataclass(slots=True)
class End:
    """One end of a connection. `open` until it was closed from this side, or the other's close arrived."""

    node: Node
    number: int
    outward: Pipe
    open: bool = True
    other: "End | None" = None


class Network:
    """All nodes and their connections."""

    def __init__(
        self,
        specs: Iterable[NodeSpec],
        wires: Wires,
        *,
        build: Callable[[NodeSpec, m.Randomness], m.Machine] = build_machine,
        start: bool = True,
    ) -> None:
        self.clock = Clock()
        self.trace: list[Sent] = []
        self.nodes: dict[str, Node] = {}
        self._specs = {spec.name: spec for spec in specs}
        self._wires = wires
        self._build = build
        self._ends: dict[int, End] = {}
        self._numbers = 0
        self._cut: dict[tuple[Region, Region], int] = {}  # directed; how many cuts hold it
        self._addresses = {
            member.address: member.name for spec in self._specs.values() for member in spec.members
        }
        for name in self._specs if start else ():
            self.start(name)

    # --- What is done to the nodes

    def start(self, name: str) -> None:
        """Start a process, or start it again."""
        spec = self._specs[name]
        machine = self._build(spec, Random(spec.seed))  # noqa: S311 - simulation, not secrets
        node = self.nodes[name] = Node(spec, machine)
        self.clock.at(self.clock.now_us, lambda: self._give(node, m.Started()))

    def kill(self, name: str) -> None:
        """The process dies; its host resets its connections."""
        node = self.nodes.pop(name)
        node.finished = True
        for end in [end for end in self._ends.values() if end.node is node]:
            self._close(end, abort=True)

    def stop(self, name: str) -> None:
        """SIGSTOP: the process does nothing, its host keeps its connections."""
        self.nodes[name].stopped = True

    def resume(self, name: str) -> None:
        """SIGCONT."""
        node = self.nodes[name]
        node.stopped = False
        waiting, node.waiting = node.waiting, []
        for given in waiting:
            self._give(node, given)

    def give(self, name: str, given: m.Input) -> None:
        """Give one node an input."""
        self._give(self.nodes[name], given)

    def tell(self, given: m.Input, role: str | None = None) -> None:
        """Give all nodes (of a role) an input, as the launcher does with Go, StopDrivers and Finish."""
        for node in list(self.nodes.values()):
            if role in {None, node.spec.role}:
                self._give(node, given)

    def run(self, until_us: int) -> None:
        """Let virtual time pass."""
        self.clock.run_until(until_us)

    # --- What is done to the ways between regions

    def cut(self, a: Region, b: Region, *, both: bool = True) -> None:
        """Cut the way from `a` to `b`, and back. Cuts may overlap."""
        for way in [(a, b), (b, a)] if both else [(a, b)]:
            self._cut[way] = self._cut.get(way, 0) + 1
            if self._cut[way] == 1:
                for end in self._ends_between(*way):
                    end.outward.cut(itself=True)
                for end in self._ends_between(way[1], way[0]):
                    end.outward.cut(itself=False)

    def heal(self, a: Region, b: Region, *, both: bool = True) -> None:
        """End one cut."""
        for way in [(a, b), (b, a)] if both else [(a, b)]:
            self._cut[way] -= 1
        if not self._is_cut(a, b):
            for end in self._ends_between(a, b) + self._ends_between(b, a):
                end.outward.heal()

    def _is_cut(self, a: Region, b: Region) -> bool:
        return bool(self._cut.get((a, b)) or self._cut.get((b, a)))

    def _ends_between(self, a: Region, b: Region) -> list[End]:
        """Ends in `a` whose other end is in `b`."""
        return [
            end
            for end in self._ends.values()
            if end.node.spec.region == a and end.other is not None and end.other.node.spec.region == b
        ]

    # --- Inputs and effects

    def _give(self, node: Node, given: m.Input) -> None:
        if node.finished:
            return
        if node.stopped:
            node.waiting.append(given)
            return
        for effect in node.machine.handle(given, self.clock.now_us):
            self._carry_out(node, effect)

    def _carry_out(self, node: Node, effect: m.Effect) -> None:
        match effect:
            case m.Send(number, messages):
                self._send(self._ends[number], messages)
            case m.SetTimer(timer, at_us):
                self._set_timer(node, timer, at_us)
            case m.CancelTimer(timer):
                node.timers.pop(timer, None)
            case m.AwaitWritable(number):
                self._ends[number].outward.when_room(lambda: self._to_end(number, m.Writable(number)))
            case m.Connect(peer, address, port, timeout_us):
                self._connect(node, self._addresses[address], peer, port, timeout_us)
            case m.Close(number, abort):
                self._close(self._ends[number], abort=abort)
            case m.Record():
                node.records.append((self.clock.now_us, effect))
            case m.Log():
                node.logs.append((self.clock.now_us, effect))
            case m.Listen(port):
                node.listening = port
            case m.Ready():
                node.ready = True
            case m.Finished():
                node.finished = True
            case m.PauseReading() | m.ResumeReading():
                raise NotImplementedError("the simulator has no applications that fall behind")

    def _set_timer(self, node: Node, timer: m.Timer, at_us: int) -> None:
        self._numbers += 1
        serial = node.timers[timer] = self._numbers

        def fire() -> None:
            if node.timers.get(timer) == serial:
                del node.timers[timer]
                self._give(node, m.TimerFired(timer))

        self.clock.at(at_us, fire)

    # --- Connections

    def _connect(self, node: Node, target: str, peer: str, port: int, timeout_us: int) -> None:
        delay_us = self._wires.delay_us(node.spec.region, self._specs[target].region)
        ends_us = self.clock.now_us + timeout_us

        def arrive() -> None:
            other = self.nodes.get(target)
            if self._is_cut(node.spec.region, self._specs[target].region):
                self.clock.at(ends_us, lambda: self._give(node, m.ConnectFailed(peer, "timed out")))
            elif other is None or other.listening != port:
                answered_us = self.clock.now_us + delay_us
                self.clock.at(answered_us, lambda: self._give(node, m.ConnectFailed(peer, "refused")))
            else:
                self._open(node, other, peer, ends_us)

        self.clock.at(self.clock.now_us + delay_us, arrive)

    def _open(self, node: Node, other: Node, peer: str, ends_us: int) -> None:
        """The SYN has arrived: the accepting end is open, the dialling one when the answer is there."""
        near, far = self._new_end(node, other), self._new_end(other, node)
        near.other, far.other = far, near
        answered = False

        def answer() -> None:
            nonlocal answered
            answered = True
            self._to_end(near.number, m.Connected(near.number, peer))

        def give_up() -> None:
            if not answered and near.open:
                self._close(near, abort=True)
                self._give(node, m.ConnectFailed(peer, "timed out"))

        far.outward.send(0, answer)
        self.clock.at(ends_us, give_up)
        self._give(other, m.Connected(far.number))

    def _new_end(self, node: Node, other: Node) -> End:
        self._numbers += 1
        here, there = node.spec.region, other.spec.region
        pipe = Pipe(self.clock, lambda: self._wires.delay_us(here, there), self._wires.rate_bits_per_s)
        end = self._ends[self._numbers] = End(node, self._numbers, pipe)
        return end

    def _send(self, end: End, messages: Sequence[Any]) -> None:
        codec: Codec = CODECS[end.node.spec.system]
        other = end.other
        if not end.open or other is None:
            return
        for message in messages:
            if len(self.trace) < TRACE_LIMIT:
                self.trace.append(Sent(self.clock.now_us, end.node.spec.name, other.node.spec.name, message))
        size_bytes = sum(map(codec.size_bytes, messages))
        end.outward.send(size_bytes, lambda: self._to_end(other.number, m.Received(other.number, messages)))

    def _to_end(self, number: int, given: m.Input) -> None:
        end = self._ends[number]
        if end.open:
            self._give(end.node, given)

    def _close(self, end: End, *, abort: bool) -> None:
        """Close from this side; the other side hears of it in order, or of an abort as soon as possible."""
        if not end.open:
            return
        end.open = False
        if abort:
            end.outward.discard()
        other = end.other
        if other is not None:
            end.outward.send(0, lambda: self._closed_by_peer(other))

    def _closed_by_peer(self, end: End) -> None:
        if end.open:
            end.open = False
            self._give(end.node, m.Disconnected(end.number, "closed by peer"))
