"""A trace of a link over time: its rate, its delay, or both, in steps of `STEP_US`.

Link emulators, simulator and analysis all follow the same steps. The trace begins at time 0 of a run and
repeats when it is over. Its last step also covers the rest of the trace, which is less than `STEP_US`.

`RateCurve` is a rate over time as the cumulative bits that it can send by each time. A transmission ends when
the curve has risen by its size, whatever changes and pauses the rate has meanwhile, so its end is known when
it begins.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

STEP_US = 100_000
"""Shorter than TCP's reaction time to a rate, and long enough to change kernel links at each step."""
NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class TraceSteps:
    """One quantity of a link over time.

    file, sha256: the name of its file, and the digest of the content. period_us: the length of the trace.
    values: of each step; bits per second, or microseconds.
    """

    file: str
    sha256: str
    period_us: int
    values: tuple[int, ...]

    @property
    def mean(self) -> float:
        """The mean over the whole trace."""
        last_us = self.period_us - STEP_US * (len(self.values) - 1)
        return (STEP_US * sum(self.values[:-1]) + last_us * self.values[-1]) / self.period_us

    def number_at(self, since_us: int) -> int:
        """Return the number of the step at this time since the trace's start; the time may be negative."""
        return min(since_us % self.period_us // STEP_US, len(self.values) - 1)

    def next_us(self, since_us: int) -> int:
        """Return the end of the step at this time, on the same scale."""
        number = self.number_at(since_us)
        turn_us = since_us - since_us % self.period_us
        return turn_us + (self.period_us if number == len(self.values) - 1 else STEP_US * (number + 1))


@dataclass(frozen=True, slots=True)
class LinkTrace:
    """The trace that one direction of a link follows. None: the link's parameters apply."""

    rate: TraceSteps | None = None
    delay: TraceSteps | None = None


def steps_of(period_us: int) -> int:
    """Return the number of steps of a trace of this length."""
    return max(1, period_us // STEP_US)


class RateCurve:
    """The cumulative bits that can be sent by each time. Times are nanoseconds of any clock.

    The rate is constant before `zero_ns` and follows the steps from then on; without steps it stays constant.
    """

    __slots__ = ("_before", "_bits", "_edges_ns", "_period_ns", "_rates", "_turn_bits", "_zero_ns")

    def __init__(self, zero_ns: int, before_bits_per_s: float, steps: TraceSteps | None = None) -> None:
        self._zero_ns = zero_ns
        self._before = before_bits_per_s / NS_PER_S
        self._rates: Sequence[float] = ()
        self._edges_ns, self._period_ns = edges_ns(steps) if steps else ([], 0)
        if steps:
            self._rates = [rate / NS_PER_S for rate in steps.values]
            widths = [end - start for start, end in zip(self._edges_ns, self._edges_ns[1:], strict=False)]
            sent = (rate * width for rate, width in zip(self._rates, widths, strict=True))
            self._bits = list(accumulate(sent, initial=0.0))
            self._turn_bits = self._bits[-1]

    def bits(self, t_ns: float) -> float:
        """Return the bits from `zero_ns` to this time; negative before `zero_ns`."""
        since_ns = t_ns - self._zero_ns
        if since_ns <= 0 or not self._rates:
            return since_ns * self._before
        turns, within_ns = divmod(since_ns, self._period_ns)
        number = bisect_right(self._edges_ns, within_ns) - 1
        risen = (within_ns - self._edges_ns[number]) * self._rates[number]
        return turns * self._turn_bits + self._bits[number] + risen

    def time_ns(self, bits: float) -> float:
        """Return the first time by which this number of bits can be sent."""
        return self._zero_ns + self._since_ns(bits)

    def sent_ns(self, begin_ns: int, size_bytes: float) -> int:
        """Return the end of a transmission that begins at `begin_ns`, rounded up to a whole nanosecond.

        It is exact also for times since 1970, which a float rounds to 256 ns.
        """
        return self._zero_ns + int(self._since_ns(self.bits(begin_ns) + 8 * size_bytes)) + 1

    def _since_ns(self, bits: float) -> float:
        if bits <= 0 or not self._rates:
            return bits / self._before
        turns, within = divmod(bits, self._turn_bits)
        if within <= 0:  # a whole turn ends with its last bit, not after a pause at its end
            turns, within = turns - 1, self._turn_bits
        number = max(0, bisect_left(self._bits, within) - 1)
        late_ns = self._edges_ns[number] + (within - self._bits[number]) / self._rates[number]
        return turns * self._period_ns + late_ns


def edges_ns(steps: TraceSteps) -> tuple[list[int], int]:
    """Return the starts of all steps and the end of the last, since the trace's start; and its length."""
    period_ns = steps.period_us * 1000
    return [number * STEP_US * 1000 for number in range(len(steps.values))] + [period_ns], period_ns
