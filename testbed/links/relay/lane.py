"""A lane is one direction of a link: it decides for every frame whether and when it leaves.

In the order of a real link: MTU, blackhole, loss, queue, rate, delay, jitter. All of them work on
MTU-sized segments with their Ethernet headers, so that results do not depend on offloads: an offloaded
frame loses segments, not itself, and behind a rate it leaves in pieces of at most `PACE_NS` of
transmission time. Loss counts down to the next lost segment (geometric gaps) instead of drawing for each.
The queue holds the segments whose transmission has not begun; time in flight is not spent in it.

What a lane admits it pushes on the hold that all lanes share, a heap by release time that is bounded in
bytes; frames with equal times leave in the order in which they came. `loop` takes them from there. A lane
does no I/O and gets time and randomness from outside. A changed delay, jitter, loss or MTU is for frames that
arrive after the change; a changed rate also re-times the queue; a blackhole swallows everything.
"""

from collections import deque
from collections.abc import Callable, Mapping
from heapq import heapify, heappush
from itertools import count
from math import log1p
from random import Random
from typing import Any

from testbed.links.relay.lateness import new_histogram
from testbed.links.relay.segments import GSO_TYPE, VNET_BYTES, Layout, cut, layout
from topologies.shape import ETHERNET_BYTES, PACE_NS, Shape, queue_limit_packets

HELD_BYTES_MAX = 1 << 30  # of all lanes together: 4 Gbit/s for 2 s; beyond it what is admitted is dropped

Held = tuple[int, int, "Lane", bytes]  # release in CLOCK_MONOTONIC ns, serial, lane, frame


class Hold:
    """`heap` is read and popped by the loop, which keeps `held_bytes` right when it does; ways count there
    what they have not admitted yet.
    """

    __slots__ = ("heap", "held_bytes", "serial")

    def __init__(self) -> None:
        self.heap: list[Held] = []
        self.held_bytes = 0
        self.serial = count()

    def push(self, release_ns: int, lane: "Lane", frame: bytes) -> None:
        """Hold `frame` until `release_ns`."""
        self.held_bytes += len(frame)
        heappush(self.heap, (release_ns, next(self.serial), lane, frame))

    def swallow(self, lane: "Lane") -> list[bytes]:
        """Take every frame of `lane` out, for good."""
        swallowed = [entry[3] for entry in self.heap if entry[2] is lane]
        self.heap[:] = [entry for entry in self.heap if entry[2] is not lane]
        heapify(self.heap)
        self.held_bytes -= sum(map(len, swallowed))
        return swallowed

    def retime(self, lane: "Lane", new_release_ns: Callable[[int], int]) -> None:
        """Give every frame of `lane` another release time."""
        self.heap[:] = [
            (new_release_ns(entry[0]), *entry[1:]) if entry[2] is lane else entry for entry in self.heap
        ]
        heapify(self.heap)


NEVER = 1 << 62  # segments until the next loss, where there is none
NS_PER_S = 1_000_000_000


class Lane:
    """One direction of one link; `out` is the descriptor to which its frames are written.

    `frames` and `bytes` count the segments that leave or will; `dropped_size` those larger than the MTU,
    `dropped_send` those that the outgoing interface refused. `lateness` is the loop's to fill. `stations` are
    the next links of frames that need not leave through `out`, by destination (`lan_switch`).
    """

    __slots__ = (
        "_busy_until_ns",
        "_delay_ns",
        "_frame_bytes_max",
        "_hold",
        "_jitter_ns",
        "_latest_ns",
        "_ns_per_byte",
        "_pace_bytes",
        "_plain",
        "_queue_packets",
        "_random",
        "_until_loss",
        "_waiting",
        "_waiting_count",
        "blackhole",
        "bytes",
        "dropped_blackhole",
        "dropped_loss",
        "dropped_queue",
        "dropped_send",
        "dropped_size",
        "frames",
        "lateness",
        "out",
        "shape",
        "stations",
    )

    def __init__(self, out: int, shape: Shape, random: Random, hold: Hold) -> None:
        self.out = out
        self.frames = self.bytes = 0
        self.dropped_loss = self.dropped_queue = self.dropped_blackhole = 0
        self.dropped_send = self.dropped_size = 0
        self.lateness = new_histogram()
        self._random = random
        self._hold = hold
        self._busy_until_ns = self._latest_ns = 0
        self._waiting: deque[tuple[int, int]] = deque()  # (when they are transmitted, segments)
        self._waiting_count = 0
        self.blackhole = False
        self.stations: Mapping[bytes, Any] | None = None  # ways, which know lanes
        self._take(shape)

    def _take(self, shape: Shape) -> None:
        self.shape = shape
        self._delay_ns = shape.delay_us * 1000
        self._jitter_ns = shape.jitter_us * 1000
        self._ns_per_byte = 8 * NS_PER_S / shape.rate_bits_per_s if shape.rate_bits_per_s else 0.0
        self._pace_bytes = PACE_NS / self._ns_per_byte if shape.rate_bits_per_s else 0.0
        self._queue_packets = queue_limit_packets(shape) or 0
        self._frame_bytes_max = shape.mtu_bytes + ETHERNET_BYTES
        self._until_loss = self._draw_gap()
        self._plain = not (self.blackhole or shape.loss or shape.jitter_us or shape.reorder)

    def change(self, shape: Shape, now_ns: int, *, blackhole: bool) -> None:
        """Be `shape` from `now_ns` on. What arrived before must have been admitted before."""
        old_ns_per_byte, old_delay_ns = self._ns_per_byte, self._delay_ns
        self.blackhole = blackhole
        self._take(shape)
        if blackhole:
            self._swallow()
        elif old_ns_per_byte and old_ns_per_byte != self._ns_per_byte:
            self._retime(now_ns, self._ns_per_byte / old_ns_per_byte, old_delay_ns)

    def _swallow(self) -> None:
        for frame in self._hold.swallow(self):
            self.dropped_blackhole += self.uncount(frame)
        self._waiting.clear()
        self._waiting_count = 0
        self._busy_until_ns = self._latest_ns = 0

    def uncount(self, frame: bytes) -> int:
        """Take a frame that did not leave out of the counts; returns its number of segments."""
        where = layout(frame)
        self.frames -= where.segments
        self.bytes -= where.wire_bytes(frame, 0, where.segments)
        return where.segments

    def _retime(self, now_ns: int, factor: float, delay_ns: int) -> None:
        """The rate changed: what is left of every transmission takes `factor` times as long."""

        def later(end_ns: int) -> int:
            return now_ns + int((end_ns - now_ns) * factor) + 1 if end_ns > now_ns else end_ns

        self._hold.retime(self, lambda release_ns: later(release_ns - delay_ns) + delay_ns)
        self._waiting = deque((later(end_ns), count) for end_ns, count in self._waiting)
        self._busy_until_ns = later(self._busy_until_ns)
        self._latest_ns = later(self._latest_ns - delay_ns) + delay_ns

    def admit(self, frame: bytes, arrival_ns: int) -> None:
        """Hold or drop a frame (vnet header first) that arrived at `arrival_ns`."""
        hold, size = self._hold, len(frame)
        wire = size - VNET_BYTES
        is_plain = self._plain and not frame[GSO_TYPE] and wire <= self._frame_bytes_max
        if not is_plain or hold.held_bytes > HELD_BYTES_MAX:
            self._admit_segments(frame, arrival_ns)
            return
        # The same as below for one segment and nothing but rate and delay: most frames come this way.
        release_ns = arrival_ns
        if self._ns_per_byte:
            if self._busy_until_ns > arrival_ns:
                if self._queue_room(arrival_ns) <= 0:
                    self.dropped_queue += 1
                    return
                release_ns = self._busy_until_ns
                self._waiting.append((release_ns, 1))
                self._waiting_count += 1
            release_ns += int(wire * self._ns_per_byte) + 1
            self._busy_until_ns = release_ns
        release_ns = self._latest_ns = max(release_ns + self._delay_ns, self._latest_ns)
        self.frames += 1
        self.bytes += wire
        hold.held_bytes += size
        heappush(hold.heap, (release_ns, next(hold.serial), self, frame))

    def _admit_segments(self, frame: bytes, arrival_ns: int) -> None:
        where = layout(frame)
        if self.blackhole:
            self.dropped_blackhole += where.segments
        elif where.wire_bytes(frame, 0, 1) > self._frame_bytes_max:
            self.dropped_size += where.segments
        elif self._hold.held_bytes > HELD_BYTES_MAX:
            self.dropped_queue += where.segments
        else:
            for first, end in self._survivors(where.segments):
                if self._ns_per_byte:
                    self._transmit(frame, where, first, end, arrival_ns)
                else:
                    self._depart(frame, where, first, end, arrival_ns)

    def _survivors(self, count: int) -> list[tuple[int, int]]:
        """The runs (first, end) of `count` segments that are not lost."""
        runs = []
        at = 0
        while self._until_loss < count - at:
            lost = at + self._until_loss
            if lost > at:
                runs.append((at, lost))
            at = lost + 1
            self.dropped_loss += 1
            self._until_loss = self._draw_gap()
        self._until_loss -= count - at
        if at < count:
            runs.append((at, count))
        return runs

    def _draw_gap(self) -> int:
        """How many segments pass before the next lost one."""
        loss = self.shape.loss
        if not loss:
            return NEVER
        return 0 if loss >= 1 else int(log1p(-self._random.random()) / log1p(-loss))

    def _transmit(self, frame: bytes, where: Layout, first: int, end: int, arrival_ns: int) -> None:
        """Queue segments for the rate; those for which there is no room are dropped, the later ones first."""
        room = self._queue_room(arrival_ns)
        if self._busy_until_ns <= arrival_ns:
            self._busy_until_ns = arrival_ns
            room += 1  # the first need not wait
        if end - first > room:
            self.dropped_queue += end - first - room
            end = first + room
        step = max(1, int(self._pace_bytes / (where.header_bytes + where.payload_bytes)))
        for start in range(first, end, step):
            stop = min(start + step, end)
            begin_ns = self._busy_until_ns
            self._busy_until_ns += int(where.wire_bytes(frame, start, stop) * self._ns_per_byte) + 1
            if begin_ns > arrival_ns:
                self._waiting.append((begin_ns, stop - start))
                self._waiting_count += stop - start
            self._depart(frame, where, start, stop, self._busy_until_ns)

    def _queue_room(self, arrival_ns: int) -> int:
        """How many more segments may wait for the one that is being transmitted."""
        waiting = self._waiting
        while waiting and waiting[0][0] <= arrival_ns:
            self._waiting_count -= waiting.popleft()[1]
        return self._queue_packets - self._waiting_count

    def _depart(self, frame: bytes, where: Layout, first: int, end: int, departure_ns: int) -> None:
        release_ns = departure_ns + self._delay_ns
        if self._jitter_ns:
            spread_ns = int((2 * self._random.random() - 1) * self._jitter_ns)
            release_ns = max(departure_ns, release_ns + spread_ns)
        self._release(
            cut(frame, where, first, end), end - first, where.wire_bytes(frame, first, end), release_ns
        )

    def _release(self, frame: bytes, count: int, wire_bytes: int, release_ns: int) -> None:
        """Hold the frame until `release_ns`, or longer where it would overtake another."""
        if not self.shape.reorder:
            release_ns = self._latest_ns = max(release_ns, self._latest_ns)
        self.frames += count
        self.bytes += wire_bytes
        self._hold.push(release_ns, self, frame)
