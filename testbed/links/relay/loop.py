"""The relay's loop: send what is due, wait, take what came, obey orders. One thread, written for speed.

A frame is sent when the clock has passed its time, never before; how much later counts in the lane's
histogram. The kernel stamps frames as they arrive, so what comes can lie in the rings until shortly before it
may be due: while frames come often, the loop looks at the rings at intervals (`patience_ns`) instead of being
woken by each, and what falls due within `GAP_NS` leaves together, as network cards moderate their interrupts.
While few come it waits for them in `select` on one epoll descriptor: `select` knows microseconds where
`epoll_wait` knows only whole milliseconds, and epoll spares asking dozens of sockets each time.

What came is first taken out of all rings and then admitted, a portion at a time: the kernel's slots are free
again while a burst is worked on.
"""

import os
import select
import time
from collections.abc import Iterable, Sequence
from heapq import heappop
from typing import Any

from testbed.links.relay.backlog import PORTION_BYTES, Backlog
from testbed.links.relay.lan_switch import DESTINATION, SOURCE, LanSwitch
from testbed.links.relay.lane import Hold
from testbed.links.relay.lateness import CELL_NS, CELLS, percentile_us
from testbed.links.relay.orders import Line, shape_from_json
from testbed.links.relay.way import Way
from topologies.shape import Shape

SENDS_MAX = 64  # due frames sent before the rings are looked at again
TAKEN_MAX = 16_384  # frames of one port that are not admitted; more stay in its rings
GAP_NS = 100_000  # between wake-ups while frames come often
PATIENCE_NS_MAX = 1_000_000  # between looks at the rings, which have slots for several times as long
MARGIN_NS = 150_000  # by which a look comes before what it may find is due
WAIT_S_MAX = 1.0  # nothing depends on it: every event wakes the loop
NS_PER_S = 1_000_000_000


def patience_ns(shapes: Iterable[Shape]) -> int:
    """How long frames may lie in the rings of these lanes; 0 if some may be due as soon as they come."""
    shortest_us = min((shape.delay_us - shape.jitter_us for shape in shapes), default=0)
    return max(0, min(shortest_us * 1000 - MARGIN_NS, PATIENCE_NS_MAX))


class Loop:
    """Serves the ways of all links until told to stop."""

    def __init__(self, ways: Sequence[Way], switch: LanSwitch, hold: Hold, line: Line) -> None:
        self._switch = switch
        self._ways = {(way.link, way.direction): way for way in ways}
        self._by_descriptor = {descriptor: way for way in ways for descriptor in way.port.descriptors()}
        self._hold = hold
        self._line = line
        self._running = True
        self._backlog = Backlog()
        self._handed: dict[Way, None] = {}  # ways that got frames from other lanes since they were looked at
        self._patience_ns = patience_ns(way.lane.shape for way in ways)

    def run(self, poll: select.epoll) -> None:
        """Move frames, waiting with `poll`, until an order to stop or the end of the control socket."""
        for descriptor in (*self._by_descriptor, self._line.fileno()):
            poll.register(descriptor, select.EPOLLIN)
        self._serve(poll)

    def _serve(self, poll: select.epoll) -> None:
        heap, waitables, backlog = self._hold.heap, [poll.fileno()], self._backlog
        wait, sleep = select.select, time.sleep
        found_ns = look_ns = often_until_ns = 0  # last found something; looks next; frames come often until
        while self._running:
            now_ns = self._send_due()
            wait_ns = heap[0][0] - now_ns if heap else NS_PER_S
            if backlog:
                backlog.admit_portion()
            elif now_ns < often_until_ns:
                wait_ns = max(wait_ns, GAP_NS)
                if now_ns + wait_ns < look_ns:
                    sleep(wait_ns / NS_PER_S)
                    continue
                if look_ns > now_ns:
                    sleep((look_ns - now_ns) / NS_PER_S)
            elif wait_ns > 0 and not wait(waitables, (), (), min(wait_ns / NS_PER_S, WAIT_S_MAX))[0]:
                continue
            now_ns = time.monotonic_ns()
            if self._look(poll):
                if now_ns - found_ns < 2 * self._patience_ns:
                    often_until_ns = now_ns + 2 * self._patience_ns
                found_ns = now_ns
            look_ns = now_ns + self._patience_ns

    def _look(self, poll: select.epoll) -> bool:
        """Take what came in everywhere, admit a portion of it, and obey; whether there was anything."""
        ahead_ns = -time.time_ns() + time.monotonic_ns()  # so read, a hold-up between means late, not early
        ready = poll.poll(0)
        for descriptor, events in ready:
            way = self._by_descriptor.get(descriptor)
            if way is None:
                self._obey()
                continue
            if events & select.EPOLLERR:
                way.port.clear_errors()
            if len(way.taken) < TAKEN_MAX:
                way.take(ahead_ns)
                if way.taken:
                    self._backlog.add(way)
        self._backlog.admit_portion()
        return bool(ready)

    def _send_due(self) -> int:
        """Send frames whose time has come, at most `SENDS_MAX`; returns the time after the last."""
        heap, hold, handed = self._hold.heap, self._hold, self._handed
        monotonic_ns, write = time.monotonic_ns, os.write
        sent_bytes = 0
        now_ns = monotonic_ns()
        for _ in range(SENDS_MAX):
            if not heap or heap[0][0] > now_ns:
                break
            release_ns, _, lane, frame = heappop(heap)
            sent_bytes += len(frame)
            way: Way | None = lane.stations.get(frame[DESTINATION]) if lane.stations is not None else None
            if way is not None and frame[DESTINATION] != frame[SOURCE]:
                if way.is_idle:
                    way.lane.admit(frame, release_ns)
                else:
                    way.hand_over(release_ns, frame)
                    handed[way] = None
            else:
                try:
                    write(lane.out, frame)
                except OSError:
                    # An interface that is down (ENETDOWN, ENXIO) or has no room (ENOBUFS, EAGAIN) loses the
                    # frame, as a cable would; the count tells.
                    lane.dropped_send += lane.uncount(frame)
            now_ns = monotonic_ns()
            cell = (now_ns - release_ns) // CELL_NS
            lane.lateness[cell if cell < CELLS else -1] += 1
        hold.held_bytes -= sent_bytes
        if handed:
            self._take_handed()
        return now_ns

    def _take_handed(self) -> None:
        """Admit what was handed over, with what came in at the same port before it."""
        ahead_ns = -time.time_ns() + time.monotonic_ns()
        for way in self._handed:
            way.take(ahead_ns)
            self._backlog.add(way)
        self._handed.clear()
        self._backlog.admit_portion()

    def _obey(self) -> None:
        order = self._line.hear()
        if order is None:
            self._running = False
            return
        try:
            answer = self._answer(order)
        except (KeyError, TypeError, ValueError) as error:
            answer = {"error": str(error) if type(error) is ValueError else repr(error)}
        try:
            self._line.say(answer)
        except OSError:
            self._running = False  # the client is gone, as at the socket's end

    def _answer(self, order: dict[str, Any]) -> dict[str, Any]:
        match order["do"]:
            case "change":
                return {"did": "change", "applied_ns": self._change(order)}
            case "counters":
                return {"did": "counters", "rows": [_counters(way) for way in self._ways.values()]}
            case "stop":
                self._running = False
                return {"did": "stop"}
        raise ValueError(f"unknown order {order['do']!r}")

    def _change(self, order: dict[str, Any]) -> int:
        """Carry out a change; returns when it held, CLOCK_REALTIME ns."""
        way = self._ways.get((order["link"], order["direction"]))
        if way is None:
            raise ValueError(f"there is no link {order['link']}")
        shape = shape_from_json(order["shape"])
        self._settle(way)
        while self._hold.heap and self._hold.heap[0][0] <= time.monotonic_ns():
            self._send_due()  # what was due before the change leaves before it, however late we are
            self._settle(way)
        way.lane.change(shape, time.monotonic_ns(), blackhole=order["blackhole"])
        if way.lane.blackhole:
            self._switch.cut(way)
        self._patience_ns = patience_ns(each.lane.shape for each in self._ways.values())
        return time.time_ns()

    def _settle(self, way: Way) -> None:
        """Admit all that came: what came before a change is treated as before it."""
        way.take(-time.time_ns() + time.monotonic_ns())
        while way.taken:
            way.admit(PORTION_BYTES)


def _counters(way: Way) -> dict[str, Any]:
    lane, port = way.lane, way.port
    return {
        "link": way.link,
        "direction": way.direction,
        "frames": lane.frames,
        "bytes": lane.bytes,
        "dropped_loss": lane.dropped_loss,
        "dropped_queue": lane.dropped_queue,
        "dropped_blackhole": lane.dropped_blackhole,
        "dropped_kernel": port.dropped,
        "dropped_size": lane.dropped_size,
        "dropped_send": lane.dropped_send,
        "ring_peak": round(port.peak, 3),
        "lateness_p50_us": percentile_us(lane.lateness, 0.5),
        "lateness_p99_us": percentile_us(lane.lateness, 0.99),
    }
