"""The relay's loop: send what is due, wait, read what came, obey orders. One thread, written for speed.

It waits in `select` on one epoll descriptor, since `select` knows microseconds where `epoll_wait` knows
only whole milliseconds, and epoll spares asking dozens of sockets each time. A frame is sent when the
clock has passed its time, never before; how much later counts in the lane's histogram.
"""

import os
import select
import time
from collections.abc import Sequence
from heapq import heappop
from typing import Any

from testbed.links.relay.hold import Hold
from testbed.links.relay.lane import Lane
from testbed.links.relay.lateness import CELL_NS, CELLS, percentile_us
from testbed.links.relay.orders import Line, shape_from_json
from testbed.links.relay.port import Port

SENDS_MAX = 64  # due frames sent before the rings are looked at again
WAIT_S_MAX = 1.0  # nothing depends on it: every event wakes the loop
STAMP_AGE_NS_MAX = 1_000_000_000  # an older stamp, or one to come, means that the clock was set
NS_PER_S = 1_000_000_000


class Way:
    """A port and the lane that takes what is received there."""

    __slots__ = ("direction", "lane", "link", "port")

    def __init__(self, link: str, direction: str, port: Port, lane: Lane) -> None:
        self.link = link
        self.direction = direction
        self.port = port
        self.lane = lane

    def read(self, ahead_ns: int) -> None:
        """Admit everything that has arrived. CLOCK_MONOTONIC is ahead of CLOCK_REALTIME by `ahead_ns`."""
        admit, port = self.lane.admit, self.port
        frames = port.receive()
        while frames:
            if abs(time.time_ns() - frames[0][0]) > STAMP_AGE_NS_MAX:
                frames = [(time.time_ns(), frame) for _, frame in frames]
            for stamp_ns, frame in frames:
                admit(frame, stamp_ns + ahead_ns)
            frames = port.receive() if port.left else []


class Loop:
    """Serves the ways of all links until told to stop."""

    def __init__(self, ways: Sequence[Way], hold: Hold, line: Line) -> None:
        self._ways = {(way.link, way.direction): way for way in ways}
        self._by_descriptor = {descriptor: way for way in ways for descriptor in way.port.descriptors()}
        self._hold = hold
        self._line = line
        self._running = True

    def run(self, poll: select.epoll) -> None:
        """Move frames, waiting with `poll`, until an order to stop or the end of the control socket."""
        for descriptor in (*self._by_descriptor, self._line.fileno()):
            poll.register(descriptor, select.EPOLLIN)
        self._serve(poll)

    def _serve(self, poll: select.epoll) -> None:
        heap, waitables = self._hold.heap, [poll.fileno()]
        wait, monotonic_ns, real_ns = select.select, time.monotonic_ns, time.time_ns
        while self._running:
            now_ns = self._send_due()
            if heap:
                wait_ns = heap[0][0] - now_ns
                if wait_ns > 0 and not wait(waitables, (), (), min(wait_ns / NS_PER_S, WAIT_S_MAX))[0]:
                    continue
            else:
                wait(waitables, (), (), WAIT_S_MAX)
            ahead_ns = -real_ns() + monotonic_ns()  # so read, a hold-up between means late, not early
            for descriptor, events in poll.poll(0):
                way = self._by_descriptor.get(descriptor)
                if way is None:
                    self._obey()
                    continue
                if events & select.EPOLLERR:
                    way.port.clear_errors()
                way.read(ahead_ns)

    def _send_due(self) -> int:
        """Send frames whose time has come, at most `SENDS_MAX`; returns the time after the last."""
        heap, hold = self._hold.heap, self._hold
        monotonic_ns, write = time.monotonic_ns, os.write
        sent_bytes = 0
        now_ns = monotonic_ns()
        for _ in range(SENDS_MAX):
            if not heap or heap[0][0] > now_ns:
                break
            release_ns, _, lane, frame = heappop(heap)
            sent_bytes += len(frame)
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
        return now_ns

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
        way.read(-time.time_ns() + time.monotonic_ns())  # what came before the change is treated as before it
        while self._hold.heap and self._hold.heap[0][0] <= time.monotonic_ns():
            self._send_due()  # and what was due before it leaves before it, however late we are
        way.lane.change(shape, time.monotonic_ns(), blackhole=order["blackhole"])
        return time.time_ns()


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
        "dropped_kernel": port.dropped(),
        "dropped_size": lane.dropped_size,
        "dropped_send": lane.dropped_send,
        "lateness_p50_us": percentile_us(lane.lateness, 0.5),
        "lateness_p99_us": percentile_us(lane.lateness, 0.99),
    }
