"""One direction of a simulated connection: FIFO, delayed, limited by the rates of ports and links, and silent
while a link that it crosses is cut.

To a machine it behaves like TCP: nothing is lost or reordered while the connection exists. Within a region a
message occupies its sender's port and its receiver's; between regions it occupies the links from one to the
other, which all traffic through them shares. The model tracks a message's last bit. Messages of a single
segment do not wait for long messages of other connections at a port, because packets of several connections
alternate there.

Interpretation of the Sprinkler paper (5.2: 1 Gbit/s inside a region, 10 Gbit/s between regions): traffic that
leaves a region does not share the rate of its host's port. Otherwise the tail's port alone, with the peers'
share, would exceed its rate at the fanout of 4 that the paper finds best. In emulated networks it does share
it.

Data in flight when a link is cut, and data sent during the cut, arrives after the cut ends, `RETRANSMIT_US`
later. If only the other direction is cut, data in flight still arrives, but nothing new is sent, because
acknowledgements are missing. A lost segment arrives a round trip later, the last one of a message
`RETRANSMIT_US` later. During a long message, the other end is notified of its parts. Not modelled: congestion
windows and slow start, the bytes of acknowledgements, queues that overflow.
"""

from collections import deque
from collections.abc import Callable
from typing import Any

from node.core import machine as m
from node.sim.clock import VirtualClock
from node.sim.wires import SEGMENT_BYTES, SimulatedLinkDirection, SimulatedPort, wire_bytes

RETRANSMIT_US = 200_000  # the kernel's minimum retransmission timeout
LOW_WATER_BYTES = 65_536  # a pipe with less unsent data than this can take more
PROGRESS_US = 100_000  # interval of notifications about parts of a message
WINDOW_BYTES = 4 << 20  # unread data of a process that its kernel accepts

Parcel = tuple[int, int, m.Input]
"""A message in transit: its bytes, its bytes on the wire with headers, and the input."""
Progress = tuple[int, int, tuple[int, m.Input]]
"""Times of the next and the last notification about parts, and the flight and the message."""
Step = tuple[int, int, Parcel]
"""A parcel between regions: its flight, the index of its next link, the parcel."""
Deliver = Callable[[Any, m.Input, int], None]
"""Takes the end, the input and its size in bytes."""


class Pipe:
    """Carries inputs from one end of a connection to the other, within a region. `target` is that end.

    deliver: called at the other end.
    """

    def __init__(
        self, clock: VirtualClock, ports: tuple[SimulatedPort, SimulatedPort], target: Any, deliver: Deliver
    ) -> None:
        self.target = target
        self._clock = clock
        self._out, self._in = ports
        self.delay_us = self._out.delay_us + self._in.delay_us
        self._deliver = deliver
        self._left_us = 0.0  # when the last bit sent so far has left the port
        self._arrived_us = 0.0  # keeps the order of arrival
        self._pending = 0  # deliveries that wait for the receiver's port
        self._flight = 0  # events planned for an earlier flight are void
        self._progress_until_us = 0  # until when the other end is notified of parts
        self._unread = 0  # bytes that arrived and were not read
        self._awaited: Callable[[Any], None] | None = None
        self._discarded = False

    def send(self, size_bytes: int, given: m.Input) -> None:
        """Send an input of this size, which arrives at the other end."""
        port = self._out
        now_us = float(self._clock.now_us)
        on_wire = wire_bytes(size_bytes)
        takes_us = on_wire * port.us_per_byte
        waits_us = self._left_us if size_bytes <= SEGMENT_BYTES else port.free_us
        left_us = (waits_us if waits_us > now_us else now_us) + takes_us
        port.free_us = (port.free_us if port.free_us > now_us else now_us) + takes_us
        if left_us > self._left_us:  # noqa: PLR1730 - as in `Clock.at`
            self._left_us = left_us
        at_us = int(self._left_us) + self.delay_us
        if takes_us > PROGRESS_US:
            self._schedule_progress(self._left_us, self.delay_us, (0, given))
        self._clock.at(at_us, self._reach, (size_bytes, on_wire, given))

    def when_room(self, action: Callable[[Any], None]) -> None:
        """Call `action(None)` once, when little unsent data is left and the receiver's window is open."""
        self._awaited = action
        self._check_room(None)

    def read(self, size_bytes: int) -> None:
        """Note that the receiver has read this much of its unread data."""
        self._unread -= size_bytes
        self._check_room(None)

    def leave_unread(self, size_bytes: int) -> None:
        """Note that the receiver leaves this much unread for now."""
        self._unread += size_bytes

    def discard(self) -> None:
        """Drop everything that is in flight."""
        self._discarded = True
        self._awaited = None

    def close(self) -> None:
        """Stop waiting for room: nothing more will be sent."""
        self._awaited = None

    def hurry(self, given: m.Input) -> None:
        """Deliver this to the other end as soon as possible; used after `discard`."""
        self._clock.at(self._clock.now_us + self.delay_us, self._hurried, given)

    def _schedule_progress(self, sent_us: float, delay_us: int, part: tuple[int, m.Input]) -> None:
        """Notify the other end of parts until a message is sent, and `delay_us` longer.

        Notifications for earlier messages count, too. part: the message's flight, and the message.
        """
        at_us = max(self._progress_until_us, self._clock.now_us + delay_us) + PROGRESS_US
        end_us = int(sent_us) + delay_us
        if at_us < end_us:
            self._progress_until_us = end_us
            self._clock.at(at_us, self._progressed, (at_us, end_us, part))

    def _progressed(self, progress: Progress) -> None:
        at_us, end_us, part = progress
        if self._discarded or part[0] != self._flight:
            return
        if isinstance(part[1], m.Received):
            self._deliver(self.target, m.Received(part[1].connection, ()), 0)
        at_us += PROGRESS_US
        if at_us < end_us:
            self._clock.at(at_us, self._progressed, (at_us, end_us, part))

    def _reach(self, parcel: Parcel) -> None:
        """Handle the arrival of the last bit at the receiver's port, which other traffic may still occupy."""
        size_bytes, on_wire, given = parcel
        port = self._in
        now_us = float(self._clock.now_us)
        done_us = port.free_us + on_wire * port.us_per_byte
        port.free_us = done_us if done_us > now_us else now_us
        if size_bytes <= SEGMENT_BYTES or done_us < now_us:
            done_us = now_us
        if self._pending:
            done_us = max(done_us, self._arrived_us)
        elif done_us < now_us + 1:
            if not self._discarded:
                self._deliver(self.target, given, size_bytes)
            return
        self._arrived_us = done_us
        self._pending += 1
        self._clock.at(int(done_us), self._arrive_late, parcel)

    def _arrive_late(self, parcel: Parcel) -> None:
        self._pending -= 1
        if not self._discarded:
            self._deliver(self.target, parcel[2], parcel[0])

    def _hurried(self, given: m.Input) -> None:
        self._deliver(self.target, given, 0)

    def _check_room(self, _: Any) -> None:
        if self._awaited is None or self._unread >= WINDOW_BYTES:
            return
        room_us = int(self._left_us - LOW_WATER_BYTES * self._out.us_per_byte)
        if room_us > self._clock.now_us:
            self._clock.at(room_us, self._check_room, None)
            return
        self._offer_room()

    def _offer_room(self) -> None:
        if self._awaited is not None:
            action, self._awaited = self._awaited, None
            self._clock.at(self._clock.now_us, action, None)


class WidePipe(Pipe):
    """A pipe between regions: over links that can be cut, slow and lossy.

    links: those that it crosses, and those of the other direction.
    """

    def __init__(
        self,
        clock: VirtualClock,
        ports: tuple[SimulatedPort, SimulatedPort],
        target: Any,
        deliver: Deliver,
        links: tuple[tuple[SimulatedLinkDirection, ...], tuple[SimulatedLinkDirection, ...]],
    ) -> None:
        super().__init__(clock, ports, target, deliver)
        self._links, self._back = links
        self._flying: deque[Parcel] = deque()  # in flight, in order
        self._held: deque[Parcel] = deque()  # sent later, waiting for the links
        self._queued_bytes = 0  # not yet through the first link
        self._passed_us = [0.0] * len(self._links)  # keeps the order into a link,
        self._reached_us = [0] * len(self._links)  # and out of it
        self._cut_links = 0  # number of its links that are cut, in either direction
        for link in (*self._links, *self._back):
            link.pipes[self] = None
            self._cut_links += link.cuts > 0

    def delay_us_now(self) -> int:
        """Return the current one-way delay."""
        return self.delay_us + sum(link.delay_at_us(self._clock.now_us) for link in self._links)

    def send(self, size_bytes: int, given: m.Input) -> None:
        """See `Pipe`."""
        self._queued_bytes += size_bytes
        parcel = (size_bytes, wire_bytes(size_bytes), given)
        if self._cut_links:
            self._held.append(parcel)
        else:
            self._fly(parcel)

    def note_cut(self, link: SimulatedLinkDirection) -> None:
        """Handle a cut of a link of this pipe: data in flight must be sent again."""
        self._cut_links += 1
        if link in self._links:
            self._flight += 1
            self._progress_until_us = 0
            self._held.extendleft(reversed(self._flying))
            self._flying.clear()
            self._queued_bytes = sum(parcel[0] for parcel in self._held)

    def note_heal(self) -> None:
        """Handle the end of a cut: after the last one, all waiting data is sent."""
        self._cut_links -= 1
        if self._cut_links:
            return
        self._left_us = max(self._left_us, float(self._clock.now_us + RETRANSMIT_US))
        held, self._held = self._held, deque()
        for parcel in held:
            self._fly(parcel)

    def discard(self) -> None:
        """See `Pipe`."""
        super().discard()
        self._flight += 1
        self._flying.clear()
        self._held.clear()
        self._queued_bytes = 0

    def hurry(self, given: m.Input) -> None:
        """Deliver this as soon as possible. A reset does not cross a cut link and is not repeated: a later
        message of the other end triggers another one.
        """
        if self._cut_links:
            self._discarded = False
            self.send(0, given)
        else:
            self._clock.at(self._clock.now_us + self.delay_us_now(), self._hurried, given)

    def leave_links(self) -> None:
        """Detach a closed connection from its links."""
        for link in (*self._links, *self._back):
            link.pipes.pop(self, None)

    def _fly(self, parcel: Parcel) -> None:
        """Leave the host, whose port's rate is not shared with the LAN; after a cut not before it is over."""
        self._flying.append(parcel)
        now_us, left_us = self._clock.now_us, int(self._left_us)
        at_us = (left_us if left_us > now_us else now_us) + self._out.delay_us
        self._clock.at(at_us, self._enter, (self._flight, 0, parcel))

    def _enter(self, step: Step) -> None:
        """Handle the arrival of the last bit at the beginning of a link."""
        flight, stage, parcel = step
        if flight != self._flight:
            return
        link, now_us = self._links[stage], self._clock.now_us
        came_us_per_byte = self._links[stage - 1].us_per_byte if stage else 0.0
        done_us = link.take(now_us, parcel[1], came_us_per_byte)
        if link.loss or link.corrupt:
            done_us += self._lost_us(link, parcel[0])
        if done_us < self._passed_us[stage]:  # noqa: PLR1730
            done_us = self._passed_us[stage]
        self._passed_us[stage] = done_us
        if done_us > now_us + PROGRESS_US:
            further_us = sum(each.delay_us for each in self._links[stage:]) + self._in.delay_us
            self._schedule_progress(done_us, further_us, (flight, parcel[2]))
        self._clock.at(int(done_us), self._through, step)

    def _through(self, step: Step) -> None:
        """Handle that the last bit has entered the link: its propagation begins."""
        flight, stage, parcel = step
        if flight != self._flight:
            return
        if stage == 0:
            self._queued_bytes -= parcel[0]
            if self._awaited is not None:
                self._check_room(None)
        now_us = self._clock.now_us
        at_us = now_us + self._links[stage].travels_us(now_us)
        if at_us < self._reached_us[stage]:  # noqa: PLR1730
            at_us = self._reached_us[stage]
        self._reached_us[stage] = at_us
        stage += 1
        if stage < len(self._links):
            self._clock.at(at_us, self._enter, (flight, stage, parcel))
        else:
            self._clock.at(at_us + self._in.delay_us, self._land, step)

    def _land(self, step: Step) -> None:
        """Handle the arrival of the last bit at the receiver."""
        flight, _, parcel = step
        if flight == self._flight:
            self._flying.popleft()
            self._deliver(self.target, parcel[2], parcel[0])

    def _lost_us(self, link: SimulatedLinkDirection, size_bytes: int) -> int:
        """Return the additional delay of a message due to lost segments."""
        segments = 1 + size_bytes // SEGMENT_BYTES
        late_us = 0
        while link.loses(segments):
            is_last = link.random() < 1 / segments
            late_us += RETRANSMIT_US if is_last else 2 * self.delay_us_now()
            segments = 1
            if late_us > 60 * RETRANSMIT_US:
                break  # a link that loses everything: the peer's silence is noticed earlier
        return late_us

    def _check_room(self, _: Any) -> None:
        if self._awaited is not None and self._unread < WINDOW_BYTES and self._queued_bytes < LOW_WATER_BYTES:
            self._offer_room()
