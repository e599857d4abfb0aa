"""Values of a link's trace for many segments at once: `topologies.link_trace` as arrays.

The relay computes the end of each transmission from the trace, so its rate is a curve of bits over time.
netem is changed at each step: a segment has the rate that holds when it enters the queue, and in a pause it
waits for its end. Neither steps nor time stamps are exact, so around each step there is a range of possible
values: `spread` chooses its lowest or highest.
"""

from collections.abc import Callable

import numpy as np

from analysis.arrays import NS_PER_S, Floats, Ints, Values
from analysis.timelines.links.periods import Period
from topologies.link_trace import STEP_US, TraceSteps, edges_ns

NEAR_NS, LATE_NS = 200_000, 10_000_000
"""Largest difference between a packet's time stamp and the emulator's; largest delay of a step in netem."""


class Curve:
    """The bits that can have been sent by each time: `topologies.link_trace.RateCurve` as arrays."""

    def __init__(self, period: Period) -> None:
        """Compute the curve of a period with a rate, which may be constant."""
        assert period.rate_bits_per_s, "a rate over time follows from a rate"
        self._before = period.rate_bits_per_s / NS_PER_S
        self._zero_ns = period.zero_ns if period.rate_trace and period.zero_ns is not None else 0
        if not period.rate_trace and period.start_ns is not None:
            self._zero_ns = period.start_ns  # close enough for a float with nanosecond resolution
        self._steps = period.rate_trace
        if self._steps is not None:
            edges, self._turn_ns = edges_ns(self._steps)
            self._edges_ns = np.array(edges, np.int64)
            self._rates = np.array(self._steps.values) / NS_PER_S
            self._bits = np.concatenate(([0.0], np.cumsum(self._rates * np.diff(self._edges_ns))))

    def bits(self, t_ns: Ints) -> Floats:
        """Return the bits by each time; see `RateCurve`."""
        since_ns = t_ns - self._zero_ns
        before: Floats = np.asarray(since_ns * self._before, np.float64)
        if self._steps is None:
            return before
        turns, within_ns = np.divmod(since_ns, self._turn_ns)
        number = np.searchsorted(self._edges_ns, within_ns, side="right") - 1
        risen = (within_ns - self._edges_ns[number]) * self._rates[number]
        return np.where(since_ns <= 0, before, turns * self._bits[-1] + self._bits[number] + risen)

    def time_ns(self, bits: Floats) -> Ints:
        """Return the time of each number of bits; see `RateCurve`."""
        late_ns = bits / self._before
        if self._steps is not None:
            turns, within = np.divmod(bits, self._bits[-1])
            at_start = within <= 0
            turns, within = np.where(at_start, turns - 1, turns), np.where(at_start, self._bits[-1], within)
            number = np.maximum(np.searchsorted(self._bits, within, side="left") - 1, 0)
            rates = np.where(self._rates[number] > 0, self._rates[number], 1.0)
            risen_ns = (within - self._bits[number]) / rates
            after_ns = turns * self._turn_ns + self._edges_ns[number] + risen_ns
            late_ns = np.where(bits <= 0, late_ns, after_ns)
        return self._zero_ns + late_ns.astype(np.int64)


def delays_ns(period: Period, t_ns: Ints, spread: object, *, retimes: bool) -> Ints:
    """Return the delay of segments at these times, without jitter."""
    configured = np.full(len(t_ns), period.delay_us * 1000, np.int64)
    if period.delay_trace is None or period.zero_ns is None:
        return configured
    of_step = np.array(period.delay_trace.values, np.int64) * 1000
    at = _of_steps(period.delay_trace, of_step, configured, period.zero_ns)
    return _chosen(at, t_ns, spread, NEAR_NS if retimes else LATE_NS)


def rates_in_force(period: Period, t_ns: Ints, spread: object) -> tuple[Floats, Ints]:
    """Return, for netem, the nanoseconds per byte of segments entering the queue at these times, and their
    hold times.
    """
    steps, zero_ns = period.rate_trace, period.zero_ns
    assert steps is not None, "only for periods with a trace"
    assert zero_ns is not None, "a trace begins at time 0"
    assert period.rate_bits_per_s, "there is a rate before time 0"
    edges, turn_ns = edges_ns(steps)
    rates, held = list(steps.values), [0] * len(steps.values)
    for number in reversed(range(2 * len(rates))):  # twice, for a pause that continues at the beginning
        here, after = number % len(rates), (number + 1) % len(rates)
        if not steps.values[here]:
            rates[here] = rates[after]
            held[here] = edges[here + 1] - edges[here] + (0 if steps.values[after] else held[after])
    assert max(held) < turn_ns, "a trace lets something through"
    per_byte: Floats = 8 * NS_PER_S / np.array(rates, np.float64)
    before: Floats = np.full(len(t_ns), 8 * NS_PER_S / period.rate_bits_per_s)
    takes = _chosen(_of_steps(steps, per_byte, before, zero_ns), t_ns, spread, LATE_NS)
    holds = _of_steps(steps, np.array(held, np.int64), np.zeros(len(t_ns), np.int64), zero_ns)
    held_ns = _chosen(holds, t_ns, spread, LATE_NS)
    return takes, np.maximum(held_ns - LATE_NS, 0) if spread == -1 else held_ns


def _of_steps(steps: TraceSteps, values: Values, before: Values, zero_ns: int) -> Callable[[Ints], Values]:
    """Return a function from times to the value of the step that holds then."""

    def at(t_ns: Ints) -> Values:
        since_us = (t_ns - zero_ns) // 1000
        number = np.minimum(since_us % steps.period_us // STEP_US, len(steps.values) - 1)
        return np.where(since_us < 0, before, values[number])

    return at


def _chosen(at: Callable[[Ints], Values], t_ns: Ints, spread: object, late_ns: int) -> Values:
    """Return the lowest possible value at these times (-1), the highest (1), or the nominal one."""
    if spread not in {-1, 1}:
        return at(t_ns)
    choose = np.minimum if spread == -1 else np.maximum
    return choose(at(t_ns + NEAR_NS), at(t_ns - late_ns))
