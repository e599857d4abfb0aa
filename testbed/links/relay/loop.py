"""The relay's event loop: send due frames, wait, receive, handle orders. One thread, written for speed.

A frame is sent when the clock has passed its release time, never before; its lateness is counted in the link
direction's histogram. The kernel timestamps frames on arrival, so they may stay in the rings until shortly
before they could be due. Under load the loop polls the rings at intervals (`poll_interval_ns`) instead of
being woken by each frame, and frames that become due within `GAP_NS` leave together, like interrupt
moderation of network cards. Otherwise it waits for frames in `select` on one epoll descriptor: `select` waits
with a resolution of microseconds, `epoll_wait` of milliseconds, and epoll avoids querying dozens of sockets
each time.

Frames are first read from all rings and then admitted, a portion at a time, so that the kernel's slots are
free again while a burst is processed.
"""

import os
import select
import time
from collections.abc import Iterable, Sequence
from heapq import heappop
from typing import Any

from testbed.links.relay.control_socket import ControlSocket
from testbed.links.relay.ingress import PORTION_BYTES, Ingress, IngressBacklog
from testbed.links.relay.lan_switch import DESTINATION, SOURCE, LanSwitch
from testbed.links.relay.link_direction import CELL_NS, CELLS, DelayQueue, percentile_us
from topologies.link_parameters import LinkParameters

SENDS_MAX = 64  # due frames sent before the rings are polled again
PENDING_MAX = 16_384  # frames of one port that wait to be admitted; more stay in its rings
GAP_NS = 100_000  # between wake-ups while frames arrive often
POLL_INTERVAL_NS_MAX = 1_000_000  # the rings have slots for several times as long
MARGIN_NS = 150_000  # by which rings are polled before their frames may be due
NS_PER_S = 1_000_000_000
COUNTED = (
    "frames", "bytes", "dropped_loss", "dropped_queue", "dropped_blackhole", "dropped_size", "dropped_send"
)  # fmt: skip


def poll_interval_ns(parameters_of: Iterable[LinkParameters]) -> int:
    """Return how long frames may stay in these link directions' rings; 0 if any may be due on arrival."""
    shortest_us = min((parameters.delay_us - parameters.jitter_us for parameters in parameters_of), default=0)
    return max(0, min(shortest_us * 1000 - MARGIN_NS, POLL_INTERVAL_NS_MAX))


class Loop:
    """The event loop, which serves all link directions until a stop order."""

    def __init__(
        self, ingresses: Sequence[Ingress], switch: LanSwitch, delay_queue: DelayQueue, control: ControlSocket
    ) -> None:
        self._switch = switch
        self._ingresses = {(ingress.link, ingress.direction): ingress for ingress in ingresses}
        self._by_descriptor = {
            descriptor: ingress for ingress in ingresses for descriptor in ingress.port.descriptors()
        }
        self._delay_queue = delay_queue
        self._control = control
        self._running = True
        self._backlog = IngressBacklog()
        self._handed_over: dict[Ingress, None] = {}  # those to which frames were handed over
        self._poll_interval_ns = poll_interval_ns(ingress.link_direction.soonest for ingress in ingresses)

    def run(self, poll: select.epoll) -> None:
        """Move frames, waiting with `poll`, until a stop order or the end of the control socket."""
        for descriptor in (*self._by_descriptor, self._control.fileno()):
            poll.register(descriptor, select.EPOLLIN)
        self._serve(poll)

    def _serve(self, poll: select.epoll) -> None:
        heap, waitables, backlog = self._delay_queue.heap, [poll.fileno()], self._backlog
        wait, sleep = select.select, time.sleep
        found_ns = look_ns = often_until_ns = (
            0  # last work found; next poll; end of a phase of frequent frames
        )
        while self._running:
            now_ns = self._send_due()
            due_ns = heap[0][0] if heap else now_ns + NS_PER_S
            if backlog:
                backlog.admit_portion()
            elif due_ns > now_ns:  # else more frames are due than are sent at once: poll without waiting
                if now_ns < often_until_ns:
                    wake_ns = max(min(due_ns, look_ns), now_ns + GAP_NS)
                    sleep((wake_ns - now_ns) / NS_PER_S)
                    if wake_ns < look_ns:
                        continue
                elif not wait(waitables, (), (), (due_ns - now_ns) / NS_PER_S)[0]:
                    continue
            now_ns = time.monotonic_ns()
            if self._look(poll):
                often_ns = 2 * max(self._poll_interval_ns, GAP_NS)
                if now_ns - found_ns < often_ns:
                    often_until_ns = now_ns + often_ns
                found_ns = now_ns
            look_ns = now_ns + self._poll_interval_ns

    def _look(self, poll: select.epoll) -> bool:
        """Read all rings, admit a portion, and handle orders; returns whether there was work."""
        # In this order, an interruption between the two readings makes frames late, not early.
        ahead_ns = -time.time_ns() + time.monotonic_ns()
        ready = poll.poll(0)
        for descriptor, events in ready:
            ingress = self._by_descriptor.get(descriptor)
            if ingress is None:
                self._handle_order()
                continue
            if events & select.EPOLLERR:
                ingress.port.clear_errors()
            if len(ingress.pending) < PENDING_MAX:
                ingress.take(ahead_ns)
                if ingress.pending:
                    self._backlog.add(ingress)
        self._backlog.admit_portion()
        return bool(ready)

    def _send_due(self) -> int:
        """Send due frames, at most `SENDS_MAX`; returns the time after the last one."""
        heap, delay_queue, handed_over = self._delay_queue.heap, self._delay_queue, self._handed_over
        monotonic_ns, write = time.monotonic_ns, os.write
        sent_bytes = 0
        now_ns = monotonic_ns()
        for _ in range(SENDS_MAX):
            if not heap or heap[0][0] > now_ns:
                break
            release_ns, _, link_direction, frame = heappop(heap)
            sent_bytes += len(frame)
            lan_table = link_direction.lan_table
            ingress = lan_table.get(frame[DESTINATION]) if lan_table is not None else None
            if ingress is not None and frame[DESTINATION] != frame[SOURCE]:
                if ingress.is_idle:
                    ingress.link_direction.admit(frame, release_ns)
                else:
                    ingress.hand_over(release_ns, frame)
                    handed_over[ingress] = None
            else:
                try:
                    write(link_direction.out, frame)
                except OSError:
                    # An interface that is down (ENETDOWN, ENXIO) or has no room (ENOBUFS, EAGAIN) loses the
                    # frame, as a cable would; `dropped_send` counts it.
                    link_direction.dropped_send += link_direction.uncount(frame)
            now_ns = monotonic_ns()
            cell = (now_ns - release_ns) // CELL_NS
            link_direction.lateness[cell if cell < CELLS else -1] += 1
        delay_queue.queued_bytes -= sent_bytes
        assert delay_queue.queued_bytes >= 0, "more sent than was queued"
        if handed_over:
            self._take_handed_over()
        return now_ns

    def _take_handed_over(self) -> None:
        """Admit frames that were handed over, merged with those that their ports received earlier."""
        ahead_ns = -time.time_ns() + time.monotonic_ns()
        for ingress in self._handed_over:
            ingress.take(ahead_ns)
            self._backlog.add(ingress)
        self._handed_over.clear()
        self._backlog.admit_portion()

    def _handle_order(self) -> None:
        order = self._control.receive()
        if order is None:
            self._running = False
            return
        try:
            answer = self._answer(order)
        except (KeyError, TypeError, ValueError) as error:
            answer = {"error": str(error) if type(error) is ValueError else repr(error)}
        try:
            self._control.send(answer)
        except OSError:
            self._running = False  # the testbed has closed the socket

    def _answer(self, order: dict[str, Any]) -> dict[str, Any]:
        match order["do"]:
            case "change":
                return {"did": "change", "applied_ns": self._change(order)}
            case "begin":
                self._begin_traces(order["zero_ns"])
                return {"did": "begin"}
            case "counters":
                return {
                    "did": "counters",
                    "rows": [_counters(ingress) for ingress in self._ingresses.values()],
                }
            case "stop":
                self._running = False
                return {"did": "stop"}
        raise ValueError(f"unknown order {order['do']!r}")

    def _change(self, order: dict[str, Any]) -> int:
        """Apply a change; returns when it took effect, CLOCK_REALTIME ns."""
        ingress = self._ingresses.get((order["link"], order["direction"]))
        if ingress is None:
            raise ValueError(f"there is no link {order['link']}")
        parameters = LinkParameters(**order["parameters"])
        self._settle(ingress)
        while self._delay_queue.heap and self._delay_queue.heap[0][0] <= time.monotonic_ns():
            self._send_due()  # frames due before the change leave before it, even if they are late
            self._settle(ingress)
        selects = order["selects"]
        direction = ingress.link_direction if selects is None else ingress.select(**selects)
        direction.change(parameters, time.monotonic_ns(), blackhole=order["blackhole"])
        if ingress.link_direction.blackhole:
            self._switch.cut(ingress)
        self._poll_interval_ns = poll_interval_ns(
            each.soonest for ingress in self._ingresses.values() for each in ingress.link_directions
        )
        return time.time_ns()

    def _begin_traces(self, zero_ns: int) -> None:
        """Let all directions follow their traces, which begin at `zero_ns`, CLOCK_REALTIME."""
        zero_ns += -time.time_ns() + time.monotonic_ns()
        for ingress in self._ingresses.values():
            self._settle(ingress)
            for each in ingress.link_directions:
                each.begin_trace(zero_ns, time.monotonic_ns())

    def _settle(self, ingress: Ingress) -> None:
        """Admit all frames that have arrived, so that a change does not apply to them."""
        ingress.take(-time.time_ns() + time.monotonic_ns())
        while ingress.pending:
            ingress.admit(PORTION_BYTES)


def _counters(ingress: Ingress) -> dict[str, Any]:
    port, every = ingress.port, ingress.link_directions
    lateness = [sum(cells) for cells in zip(*(each.lateness for each in every), strict=True)]
    return {
        "link": ingress.link,
        "direction": ingress.direction,
        **{name: sum(getattr(each, name) for each in every) for name in COUNTED},
        "dropped_kernel": port.dropped,
        "ring_peak": round(port.peak, 3),
        "lateness_p50_us": percentile_us(lateness, 0.5),
        "lateness_p99_us": percentile_us(lateness, 0.99),
    }
