"""Connections between simulated processes, and the ports and links that they cross.

Opening a connection takes one round trip and needs both directions. The other end is notified of a close in
order, of an abort as soon as possible. A cut affects one direction between two regions, or between two hosts
of a region.
"""

from collections.abc import Callable
from random import Random
from typing import Any

from node.core import machine as m
from node.core.message_layout import Codec
from node.sim.clock import VirtualClock
from node.sim.pipe import Pipe, WidePipe
from node.sim.process import End, Node
from node.sim.wires import Hop, LinkLine, Region, SimulatedLinkDirection, SimulatedPort, Wires

CLOSED = "closed by peer"
REFUSED = "refused"
RESET = "reset"
HostAndRegion = tuple[str, Region]  # a host and its region
Give = Callable[[Node, m.Input], None]


class Connections:
    """All connections of a network. give: hands an input to a node."""

    def __init__(self, clock: VirtualClock, wires: Wires, codec: Codec, seed: int, give: Give) -> None:
        self.ends: dict[int, End] = {}
        self._clock = clock
        self._wires = wires
        self._size_bytes = codec.size_bytes
        self._give = give
        self._random = Random(seed).random  # noqa: S311 - simulation, not secrets
        self._numbers = 0
        self._ports: dict[str, tuple[SimulatedPort, SimulatedPort]] = {}  # outward and inward, by host
        self._links: dict[Hop, SimulatedLinkDirection] = {}

    # --- Faults of links

    def cut(self, hop: Hop) -> None:
        """Cut one direction of a link; several cuts may hold at once."""
        link = self.link(hop)
        link.cuts += 1
        if link.cuts == 1:
            for pipe in list(link.pipes):
                pipe.note_cut(link)

    def heal(self, hop: Hop) -> None:
        """End one of the cuts of this direction."""
        link = self.link(hop)
        link.cuts -= 1
        if link.cuts == 0:
            for pipe in list(link.pipes):
                pipe.note_heal()

    def change(self, hop: Hop, line: LinkLine) -> None:
        """Change a link's parameters for traffic that enters it from now on."""
        self.link(hop).change(line)

    def link(self, hop: Hop) -> SimulatedLinkDirection:
        """Return the direction of a hop. Raises ValueError if no link joins its ends."""
        link = self._links.get(hop)
        if link is None:
            link = self._links[hop] = SimulatedLinkDirection(hop, self._wires.line(hop), self._random)
        return link

    def longest_wait(self) -> tuple[Hop, int] | None:
        """Return the link with the longest queueing delay and that delay in microseconds, if any link has
        one.
        """
        waits = {hop: round(link.free_us - self._clock.now_us) for hop, link in self._links.items()}
        waiting = [(hop, wait_us) for hop, wait_us in waits.items() if wait_us > 0]
        return max(waiting, key=lambda each: each[1], default=None)

    # --- Opening

    def dial(self, node: Node, target: Callable[[], Node | None], place: HostAndRegion, given: Any) -> None:
        """Open a connection to the process that runs at `place` when the request arrives.

        given: the Connect.
        """
        ends_us = self._clock.now_us + given.timeout_us
        here = (node.spec.host, node.spec.region)
        links = self._route(here, place)
        delay_us = self._outward(node.spec.host, node.spec.region).delay_us
        delay_us += self._inward(*place).delay_us + sum(link.delay_us for link in links)

        def arrive(_: Any) -> None:
            other = target()
            if any(link.cuts for link in (*links, *self._route(place, here))):
                self._clock.at(ends_us, fail, "timed out")
            elif other is None or other.finished or other.listening != given.port:
                self._clock.at(self._clock.now_us + delay_us, fail, REFUSED)
            else:
                self._open(node, other, given.peer, ends_us)

        def fail(reason: str) -> None:
            self._give(node, m.ConnectFailed(given.peer, reason, is_refused=reason == REFUSED))

        self._clock.at(self._clock.now_us + delay_us, arrive)

    def _open(self, node: Node, other: Node, peer: str, ends_us: int) -> None:
        """Process the SYN: the accepting end opens now, the dialling end when the answer arrives."""
        near, far = self._joined(node, other)
        near.dialled = peer
        far.outward.send(0, m.Connected(near.number, peer))

        def give_up(_: Any) -> None:
            if near.open and near.dialled is not None:
                self.close(near, abort=True)
                self._give(node, m.ConnectFailed(peer, "timed out"))

        self._clock.at(ends_us, give_up)
        self._give(other, m.Connected(far.number, address=node.spec.address))

    def _joined(self, node: Node, other: Node) -> tuple[End, End]:
        near, far = End(node, self._numbers + 1), End(other, self._numbers + 2)
        near.other, far.other = far, near
        self._numbers += 2
        near.outward, far.outward = self._pipe(near, far), self._pipe(far, near)
        for end in (near, far):
            self.ends[end.number] = end.node.ends[end.number] = end
        return near, far

    def _pipe(self, source: End, target: End) -> Pipe:
        here, there = source.node.spec, target.node.spec
        ports = (self._outward(here.host, here.region), self._inward(there.host, there.region))
        ends = (here.host, here.region), (there.host, there.region)
        links, back = self._route(*ends), self._route(*reversed(ends))
        if not links:
            return Pipe(self._clock, ports, target, self.arrived)
        return WidePipe(self._clock, ports, target, self.arrived, (links, back))

    # --- While it is open

    def send(self, node: Node, effect: m.Send) -> None:
        """Execute a Send; on a closed connection it has no effect."""
        end = self.ends.get(effect.connection)
        if end is None:
            return
        size_bytes = effect.size_bytes
        if size_bytes is None:
            size_bytes = sum(map(self._size_bytes, effect.messages))
        end.outward.send(size_bytes, m.Received(end.other.number, effect.messages))

    def await_writable(self, number: int) -> None:
        """Give the node Writable, once, when the connection has room."""
        end = self.ends.get(number)
        if end is not None and end.open:

            def tell(_: Any) -> None:
                if end.open:
                    self._give(end.node, m.Writable(number))

            end.outward.when_room(tell)

    def arrived(self, end: End, given: m.Input, size_bytes: int) -> None:
        """Deliver an input at this end; if the end is not read, the input waits and occupies the window."""
        if not end.open:
            return
        node = end.node
        if node.stopped:
            end.other.outward.leave_unread(size_bytes)
            node.waiting.append((end, given, size_bytes))
        elif end.held is not None:
            end.other.outward.leave_unread(size_bytes)
            end.held.append((given, size_bytes))
        elif type(given) is m.Received:  # nearly all
            self._give(node, given)
        else:
            self.hand_over(end, given)

    def hand_over(self, end: End, given: m.Input) -> None:
        """Give the node an input that arrived at this end."""
        if not end.open:
            return
        kind = type(given)
        if kind is m.Disconnected:
            self._forget(end)
            if end.dialled is not None:  # reset before the answer arrived
                given = m.ConnectFailed(end.dialled, "reset")
        elif kind is m.Connected:
            end.dialled = None
        self._give(end.node, given)

    def pause_reading(self, number: int) -> None:
        """Hold back inputs at this end until `resume_reading`."""
        end = self.ends.get(number)
        if end is not None and end.held is None:
            end.held = []

    def resume_reading(self, number: int) -> None:
        """Deliver the inputs that wait at this end, and resume reading."""
        end = self.ends.get(number)
        if end is not None and end.held is not None:
            self._clock.at(self._clock.now_us, self._read_on, end)

    def _read_on(self, end: End) -> None:
        held, end.held = end.held or [], None
        for at, (given, size_bytes) in enumerate(held):
            if end.held is not None:  # paused again
                end.held += held[at:]
                return
            end.other.outward.read(size_bytes)
            self.hand_over(end, given)

    # --- Closing

    def close(self, end: End, *, abort: bool) -> None:
        """Close from this side; the other side is notified in order, of an abort as soon as possible."""
        if not end.open:
            return
        self._forget(end)
        disconnected = m.Disconnected(end.other.number, CLOSED)
        if abort:
            end.outward.discard()
            end.outward.hurry(disconnected)
        else:
            end.outward.close()
            end.outward.send(0, disconnected)

    def reset(self, end: End) -> None:
        """Abort an established connection, as if both ends had received a RST."""
        if end.open and end.dialled is None:
            self.close(end, abort=True)
            self._give(end.node, m.Disconnected(end.number, RESET))

    def _forget(self, end: End) -> None:
        end.open = False
        end.held = None
        self.ends.pop(end.number, None)
        end.node.ends.pop(end.number, None)
        if not end.other.open:
            for each in (end, end.other):
                if isinstance(each.outward, WidePipe):
                    each.outward.leave_links()

    # --- Places

    def _outward(self, host: str, region: Region) -> SimulatedPort:
        return self._ports_of(host, region)[0]

    def _inward(self, host: str, region: Region) -> SimulatedPort:
        return self._ports_of(host, region)[1]

    def _ports_of(self, host: str, region: Region) -> tuple[SimulatedPort, SimulatedPort]:
        ports = self._ports.get(host)
        if ports is None:
            lan = self._wires.lan(region)
            ports = self._ports[host] = (SimulatedPort(lan.outward), SimulatedPort(lan.inward))
        return ports

    def _route(self, here: HostAndRegion, there: HostAndRegion) -> tuple[SimulatedLinkDirection, ...]:
        """Return the links between two hosts; none within a region, unless the two hosts may be separated."""
        if (here[0], there[0]) in self._wires.apart:
            return (self.link((here[0], there[0])),)
        hosts, wires = (here[0], there[0]), self._wires
        return tuple(self.link(wires.hop_of(hop, hosts)) for hop in wires.route(here[1], there[1]))
