"""One direction of a link, which decides for every frame whether and when it leaves.

Checks apply in the order of a real link: MTU, blackhole, loss, duplicates and corruption, queue, rate, delay,
jitter. All of them work
on MTU-sized segments with their Ethernet headers, so that results do not depend on offloads: an offloaded
frame loses single segments, and behind a rate it leaves in pieces of at most `PACE_NS` of transmission time.
Loss counts down to the next lost segment (geometric gaps) instead of drawing for each. The queue holds
segments whose transmission has not begun; segments in flight do not count.

Admitted frames go into the delay queue that all link directions share, a heap by release time that is bounded
in bytes; frames with equal times leave in the order of their arrival. `loop` sends them from there. A link
direction does no I/O; time and randomness are injected. A changed delay, jitter, loss or MTU applies to
frames that arrive after the change; a changed rate also re-times the queue; a blackhole drops all frames,
also those in flight.

A direction that follows a rate trace needs no change at the trace's steps: the trace is known in advance,
and so is the end of each transmission (`topologies.link_trace.RateCurve`). With a delay trace, a frame has
the delay that the trace gives at its arrival.

Lateness is a histogram of fixed cells, so its cost per frame and its memory do not grow with the run.
"""

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from heapq import heapify, heappush
from itertools import count
from math import log1p
from random import Random
from typing import Any

from testbed.links.relay.offload import GSO_TYPE, VNET_BYTES, Segmentation, cut, damaged, segmentation
from topologies.jitter import deviation
from topologies.link_parameters import ETHERNET_BYTES, PACE_NS, LinkParameters, queue_limit_packets
from topologies.link_trace import LinkTrace, RateCurve

QUEUED_BYTES_MAX = 1 << 30  # of all link directions together: 4 Gbit/s for 2 s; beyond it frames are dropped

QueuedFrame = tuple[
    int, int, "LinkDirection", bytes
]  # release in CLOCK_MONOTONIC ns, serial, link direction, frame
CELL_NS = 10_000
CELLS = 2_000  # the last one counts every lateness from 20 ms on


class DelayQueue:
    """Frames in flight, by release time.

    The loop pops `heap` and then adjusts `queued_bytes`, which also counts frames that an ingress has not
    admitted yet.
    """

    __slots__ = ("heap", "queued_bytes", "serial")

    def __init__(self) -> None:
        self.heap: list[QueuedFrame] = []
        self.queued_bytes = 0
        self.serial = count()

    def push(self, release_ns: int, link_direction: "LinkDirection", frame: bytes) -> None:
        """Queue `frame` until `release_ns`."""
        self.queued_bytes += len(frame)
        heappush(self.heap, (release_ns, next(self.serial), link_direction, frame))

    def drop_in_flight(self, link_direction: "LinkDirection") -> list[bytes]:
        """Remove every frame of `link_direction`; returns them."""
        dropped = [entry[3] for entry in self.heap if entry[2] is link_direction]
        self.heap[:] = [entry for entry in self.heap if entry[2] is not link_direction]
        heapify(self.heap)
        self.queued_bytes -= sum(map(len, dropped))
        assert self.queued_bytes >= 0, "more dropped than was queued"
        return dropped

    def retime(self, link_direction: "LinkDirection", new_release_ns: Callable[[int], int]) -> None:
        """Change the release time of every frame of `link_direction`."""
        self.heap[:] = [
            (new_release_ns(entry[0]), *entry[1:]) if entry[2] is link_direction else entry
            for entry in self.heap
        ]
        heapify(self.heap)


NEVER = 1 << 62  # segments until the next loss, if there is no loss
NS_PER_S = 1_000_000_000


class LinkDirection:
    """One direction of one link; `out` is the descriptor to which its frames are written.

    `frames` and `bytes` count the segments that leave or will leave; `dropped_size` those larger than the
    MTU, `dropped_send` those that the outgoing interface refused. The loop fills `lateness`. `lan_table` maps
    destinations to the next links of frames that need not leave through `out` (`lan_switch`).
    """

    def __init__(
        self,
        out: int,
        parameters: LinkParameters,
        random: Random,
        delay_queue: DelayQueue,
        trace: LinkTrace | None = None,
    ) -> None:
        """trace: followed from the call of `begin_trace` on."""
        self.out = out
        self._trace = trace or LinkTrace()
        self._zero_ns: int | None = None
        self.frames = self.bytes = 0
        self.dropped_loss = self.dropped_queue = self.dropped_blackhole = 0
        self.dropped_send = self.dropped_size = 0
        self.lateness = [0] * CELLS  # of n ns: in cell n // CELL_NS
        self._random = random
        self._delay_queue = delay_queue
        self._busy_until_ns = self._latest_ns = 0
        self._deviation = 0.0  # of the last segment, as a fraction of the jitter
        self._waiting: deque[tuple[int, int]] = deque()  # (start of transmission, segments)
        self._waiting_count = 0
        self.blackhole = False
        self.lan_table: Mapping[bytes, Any] | None = None  # of Ingress
        self._set_parameters(parameters)

    def beside(self) -> "LinkDirection":
        """Return a link direction that carries other frames to the same end, at first with the same
        parameters.
        """
        random = Random(self._random.getrandbits(64))  # noqa: S311  loss, not secrets
        found = LinkDirection(self.out, self.parameters, random, self._delay_queue, self._trace)
        found._zero_ns = self._zero_ns
        return found

    @property
    def soonest(self) -> LinkParameters:
        """Its parameters with the smallest delay that it has now or later."""
        if self.parameters.delay_traced and self._trace.delay is not None:
            least_us = min(*self._trace.delay.values, self.parameters.delay_us)
            return replace(self.parameters, delay_us=least_us)
        return self.parameters

    def begin_trace(self, zero_ns: int, now_ns: int) -> None:
        """Follow the trace, which begins at `zero_ns`.

        Frames that arrived before `now_ns` must have been admitted already.
        """
        self._zero_ns = zero_ns
        self.change(self.parameters, now_ns, blackhole=self.blackhole)

    def _set_parameters(self, parameters: LinkParameters) -> None:
        self.parameters = parameters
        self._delay_ns = parameters.delay_us * 1000
        self._jitter_ns = parameters.jitter_us * 1000
        rate = parameters.rate_bits_per_s
        self._curve: RateCurve | None = None
        self._traced_delay = None
        if self._zero_ns is not None:
            if parameters.rate_traced and self._trace.rate is not None and rate is not None:
                self._curve = RateCurve(self._zero_ns, rate, self._trace.rate)
                rate = max(self._trace.rate.values)  # determines the size of its pieces
            self._traced_delay = self._trace.delay if parameters.delay_traced else None
        self._ns_per_byte = 8 * NS_PER_S / rate if rate else 0.0
        self._pace_bytes = PACE_NS / self._ns_per_byte if rate else 0.0
        self._queue_packets = queue_limit_packets(parameters) or 0
        self._frame_bytes_max = parameters.mtu_bytes + ETHERNET_BYTES
        self._chances = parameters.loss_chances
        self._to_lose = 1
        self._until_loss = self._draw_gap()
        # Frames in a blackhole are not plain: `_admit_segments` drops them.
        traced = self._curve is not None or self._traced_delay is not None
        self._alters = bool(parameters.duplicate or parameters.corrupt)
        altered = self._alters or parameters.loss or parameters.jitter_us or parameters.reorder
        self._plain = not (self.blackhole or altered or traced)

    def change(self, parameters: LinkParameters, now_ns: int, *, blackhole: bool) -> None:
        """Apply `parameters` from `now_ns`. Frames that arrived earlier must have been admitted already."""
        old_ns_per_byte, old_delay_ns = self._ns_per_byte, self._delay_ns_at(now_ns)
        old_curve = self._curve
        self.blackhole = blackhole
        self._set_parameters(parameters)
        if blackhole:
            self._drop_in_flight()
        elif (old_curve is None) != (self._curve is None) and old_ns_per_byte:
            old = old_curve or RateCurve(now_ns, 8 * NS_PER_S / old_ns_per_byte)
            self._retime(now_ns, self._new_duration(old, now_ns), old_delay_ns)
        elif old_curve is None and old_ns_per_byte and old_ns_per_byte != self._ns_per_byte:
            factor = self._ns_per_byte / old_ns_per_byte
            self._retime(now_ns, lambda left_ns: int(left_ns * factor), old_delay_ns)
        assert self._waiting_count == sum(count for _, count in self._waiting), "segments counted wrong"

    def _drop_in_flight(self) -> None:
        for frame in self._delay_queue.drop_in_flight(self):
            self.dropped_blackhole += self.uncount(frame)
        self._waiting.clear()
        self._waiting_count = 0
        self._busy_until_ns = self._latest_ns = 0

    def uncount(self, frame: bytes) -> int:
        """Subtract a frame that did not leave from the counters; returns its number of segments."""
        cuts = segmentation(frame)
        self.frames -= cuts.segments
        self.bytes -= cuts.wire_bytes(frame, 0, cuts.segments)
        assert min(self.frames, self.bytes) >= 0, "more was lost than admitted"
        return cuts.segments

    def _delay_ns_at(self, t_ns: int) -> int:
        """Return the delay of a frame that arrives at `t_ns`, without jitter."""
        steps = self._traced_delay
        if steps is None or self._zero_ns is None or t_ns < self._zero_ns:
            return self._delay_ns
        return steps.values[steps.number_at((t_ns - self._zero_ns) // 1000)] * 1000

    def _new_duration(self, old: RateCurve, now_ns: int) -> Callable[[int], int]:
        """Return a function from remaining transmission time by the old rate curve to that by the new one."""
        if not self._ns_per_byte:
            return lambda left_ns: 0
        new = self._curve or RateCurve(now_ns, 8 * NS_PER_S / self._ns_per_byte)
        new_bits, old_bits = new.bits(now_ns), old.bits(now_ns)
        return lambda left_ns: int(new.time_ns(new_bits + old.bits(now_ns + left_ns) - old_bits)) - now_ns

    def _retime(self, now_ns: int, takes_ns: Callable[[int], int], delay_ns: int) -> None:
        """Apply a new rate to the rest of every transmission.

        takes_ns: the new remaining time for an old one. Frames with an earlier traced delay are treated as if
        they had the current one.
        """

        def later(end_ns: int) -> int:
            return now_ns + takes_ns(end_ns - now_ns) + 1 if end_ns > now_ns else end_ns

        self._delay_queue.retime(self, lambda release_ns: later(release_ns - delay_ns) + delay_ns)
        self._waiting = deque((later(end_ns), count) for end_ns, count in self._waiting)
        self._busy_until_ns = later(self._busy_until_ns)
        self._latest_ns = later(self._latest_ns - delay_ns) + delay_ns

    def admit(self, frame: bytes, arrival_ns: int) -> None:
        """Queue or drop a frame (vnet header first) that arrived at `arrival_ns`."""
        delay_queue, size = self._delay_queue, len(frame)
        wire = size - VNET_BYTES
        is_plain = self._plain and not frame[GSO_TYPE] and wire <= self._frame_bytes_max
        if not is_plain or delay_queue.queued_bytes > QUEUED_BYTES_MAX:
            self._admit_segments(frame, arrival_ns)
            return
        # The fast path of most frames: one segment, only rate and delay.
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
        release_ns += self._delay_ns
        release_ns = max(release_ns, self._latest_ns)
        self._latest_ns = release_ns
        self.frames += 1
        self.bytes += wire
        delay_queue.queued_bytes += size
        heappush(delay_queue.heap, (release_ns, next(delay_queue.serial), self, frame))

    def _admit_segments(self, frame: bytes, arrival_ns: int) -> None:
        cuts = segmentation(frame)
        if self.blackhole:
            self.dropped_blackhole += cuts.segments
        elif cuts.wire_bytes(frame, 0, 1) > self._frame_bytes_max:
            self._admit_last(frame, cuts, arrival_ns)
        elif self._delay_queue.queued_bytes > QUEUED_BYTES_MAX:
            self.dropped_queue += cuts.segments
        else:
            send = self._alter if self._alters else self._send
            for first, end in self._survivors(cuts.segments):
                send(frame, cuts, first, end, arrival_ns)

    def _admit_last(self, frame: bytes, cuts: Segmentation, arrival_ns: int) -> None:
        """Drop the segments of a frame that are larger than the MTU, all but perhaps the last one."""
        last = cuts.segments - 1
        if not last or cuts.wire_bytes(frame, last, last + 1) > self._frame_bytes_max:
            self.dropped_size += cuts.segments
            return
        self.dropped_size += last
        send = self._alter if self._alters else self._send
        for _ in self._survivors(1):
            send(frame, cuts, last, last + 1, arrival_ns)

    def _alter(self, frame: bytes, cuts: Segmentation, first: int, end: int, arrival_ns: int) -> None:
        """Send segments, each one that is duplicated or damaged as a frame of its own."""
        draw, parameters = self._random.random, self.parameters
        begin = first
        for at in range(first, end):
            copies = 1 + (draw() < parameters.duplicate)
            are_damaged = [draw() < parameters.corrupt for _ in range(copies)]
            if are_damaged == [False]:
                continue
            if begin < at:
                self._send(frame, cuts, begin, at, arrival_ns)
            begin = at + 1
            for is_damaged in are_damaged:
                single = cut(frame, cuts, at, begin)
                single = damaged(single, self._random) if is_damaged else single
                self._send(single, segmentation(single), 0, 1, arrival_ns)
        if begin < end:
            self._send(frame, cuts, begin, end, arrival_ns)

    def _send(self, frame: bytes, cuts: Segmentation, first: int, end: int, arrival_ns: int) -> None:
        if self._ns_per_byte:
            self._transmit(frame, cuts, first, end, arrival_ns)
        else:
            self._depart(frame, cuts, first, end, (arrival_ns, self._delay_ns_at(arrival_ns)))

    def _survivors(self, count: int) -> list[tuple[int, int]]:
        """Return the runs (first, end) of `count` segments that are not lost."""
        runs = []
        at = 0
        while self._until_loss < count - at:
            lost = at + self._until_loss
            if lost > at:
                runs.append((at, lost))
            end = min(lost + self._to_lose, count)
            self.dropped_loss += end - lost
            self._to_lose -= end - lost
            at, self._until_loss = end, 0
            if not self._to_lose:
                self._to_lose, self._until_loss = self._draw_burst(), self._draw_gap()
        self._until_loss -= count - at
        assert self._until_loss >= 0, "a lost segment survived"
        if at < count:
            runs.append((at, count))
        return runs

    def _draw_gap(self) -> int:
        """Draw the number of segments that pass before the next loss."""
        loss = self.parameters.loss
        if not loss:
            return NEVER
        if self._chances is not None:
            return 1 + self._draw_passes(self._chances[0])
        return 0 if loss >= 1 else self._draw_passes(loss)

    def _draw_burst(self) -> int:
        """Draw the number of consecutive segments that are lost."""
        return 1 if self._chances is None else 1 + self._draw_passes(self._chances[1])

    def _draw_passes(self, chance: float) -> int:
        """Draw the number of failures before the first success of trials with this probability."""
        return 0 if chance >= 1 else int(log1p(-self._random.random()) / log1p(-chance))

    def _transmit(self, frame: bytes, cuts: Segmentation, first: int, end: int, arrival_ns: int) -> None:
        """Queue segments for the rate; drop the last ones if the queue has no room for all."""
        room = self._queue_room(arrival_ns)
        if self._busy_until_ns <= arrival_ns:
            self._busy_until_ns = arrival_ns
            room += 1  # the first segment does not wait
        if end - first > room:
            self.dropped_queue += end - first - room
            end = first + room
        step = max(1, int(self._pace_bytes / (cuts.header_bytes + cuts.payload_bytes)))
        delay_ns = self._delay_ns_at(arrival_ns)
        for start in range(first, end, step):
            stop = min(start + step, end)
            begin_ns = self._busy_until_ns
            wire_bytes = cuts.wire_bytes(frame, start, stop)
            if self._curve is None:
                self._busy_until_ns += int(wire_bytes * self._ns_per_byte) + 1
            else:
                self._busy_until_ns = self._curve.sent_ns(begin_ns, wire_bytes)
            if begin_ns > arrival_ns:
                self._waiting.append((begin_ns, stop - start))
                self._waiting_count += stop - start
            self._depart(frame, cuts, start, stop, (self._busy_until_ns, delay_ns))

    def _queue_room(self, arrival_ns: int) -> int:
        """Return the number of segments for which the queue has room."""
        waiting = self._waiting
        while waiting and waiting[0][0] <= arrival_ns:
            self._waiting_count -= waiting.popleft()[1]
        return self._queue_packets - self._waiting_count

    def _depart(
        self, frame: bytes, cuts: Segmentation, first: int, end: int, times_ns: tuple[int, int]
    ) -> None:
        """Delay segments and queue them for release; times_ns: departure and delay."""
        departure_ns, delay_ns = times_ns
        release_ns = departure_ns + delay_ns
        if self._jitter_ns:
            drawn, quantiles = self._random.random(), self.parameters.jitter_quantiles
            new = deviation(quantiles, drawn) if quantiles else 2 * drawn - 1
            part = self.parameters.jitter_correlation
            self._deviation = new + part * (self._deviation - new)
            release_ns = max(departure_ns, release_ns + int(self._deviation * self._jitter_ns))
        self._release(
            cut(frame, cuts, first, end), end - first, cuts.wire_bytes(frame, first, end), release_ns
        )

    def _release(self, frame: bytes, count: int, wire_bytes: int, release_ns: int) -> None:
        """Queue the frame until `release_ns`, or longer if it would overtake another."""
        if not self.parameters.reorder:
            release_ns = self._latest_ns = max(release_ns, self._latest_ns)
        self.frames += count
        self.bytes += wire_bytes
        self._delay_queue.push(release_ns, self, frame)


def percentile_us(histogram: Sequence[int], fraction: float) -> float | None:
    """Return the upper edge, in microseconds, of the cell with this percentile; None without frames."""
    total = sum(histogram)
    if not total:
        return None
    seen = 0
    for cell, frames in enumerate(histogram):
        seen += frames
        if seen >= fraction * total:
            return (cell + 1) * CELL_NS / 1000
    raise AssertionError("a fraction is at most 1")
