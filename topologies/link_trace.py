"""What was recorded of a link over time: its rate, its delay, or both, in steps of `STEP_US`.

All who follow a trace (link emulators, simulator, analysis) follow these steps, and so mean the same by it.
The trace begins at time 0 of a run and begins anew whenever it is over. Its last step also lasts for what
is left of the trace, less than `STEP_US`.

`RateCurve` is a rate over time as the bits that it could have sent by each time. What is sent from some
time on is over when the curve has risen by its size, through whatever rates, and none: no change of the
rate has to be waited for, nor anything timed anew.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

STEP_US = 100_000
"""Short beside what TCP notices of a rate, and long enough for the kernel's links to be changed so often."""
NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class TraceSteps:
    """One quantity of a link over time.

    file, sha256: the name of the file it was read from, and its content's digest. period_us: how long the
    trace is. values: of each step; bits a second, or microseconds.
    """

    file: str
    sha256: str
    period_us: int
    values: tuple[int, ...]

    @property
    def mean(self) -> float:
        """Over the whole trace."""
        last_us = self.period_us - STEP_US * (len(self.values) - 1)
        return (STEP_US * sum(self.values[:-1]) + last_us * self.values[-1]) / self.period_us

    def number_at(self, since_us: int) -> int:
        """The number of the step so long after the trace's beginning, or before it."""
        return min(since_us % self.period_us // STEP_US, len(self.values) - 1)

    def next_us(self, since_us: int) -> int:
        """When the step ends that holds at this time, on the same scale."""
        number = self.number_at(since_us)
        turn_us = since_us - since_us % self.period_us
        return turn_us + (self.period_us if number == len(self.values) - 1 else STEP_US * (number + 1))


@dataclass(frozen=True, slots=True)
class LinkTrace:
    """What one direction of a link follows. None: what the link's parameters give stays."""

    rate: TraceSteps | None = None
    delay: TraceSteps | None = None


def steps_of(period_us: int) -> int:
    """How many steps a trace of this length has."""
    return max(1, period_us // STEP_US)


class RateCurve:
    """The bits that can have been sent by each time, from a constant rate before `zero_ns`, and from then
    on by the steps; without steps the rate stays. Times are nanoseconds of any clock.
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
        """How many by this time, since `zero_ns`; negative before."""
        since_ns = t_ns - self._zero_ns
        if since_ns <= 0 or not self._rates:
            return since_ns * self._before
        turns, within_ns = divmod(since_ns, self._period_ns)
        number = bisect_right(self._edges_ns, within_ns) - 1
        risen = (within_ns - self._edges_ns[number]) * self._rates[number]
        return turns * self._turn_bits + self._bits[number] + risen

    def time_ns(self, bits: float) -> float:
        """The first time by which so many can have been sent."""
        return self._zero_ns + self._since_ns(bits)

    def sent_ns(self, begin_ns: int, size_bytes: float) -> int:
        """When so much has been sent whose sending begins then: the first whole nanosecond after it.
        Exact for times since 1970, too, which a float rounds to 256 ns.
        """
        return self._zero_ns + int(self._since_ns(self.bits(begin_ns) + 8 * size_bytes)) + 1

    def _since_ns(self, bits: float) -> float:
        if bits <= 0 or not self._rates:
            return bits / self._before
        turns, within = divmod(bits, self._turn_bits)
        if within <= 0:  # all of a turn: with the last bit that it sends, and not after a pause at its end
            turns, within = turns - 1, self._turn_bits
        number = max(0, bisect_left(self._bits, within) - 1)
        late_ns = self._edges_ns[number] + (within - self._bits[number]) / self._rates[number]
        return turns * self._period_ns + late_ns


def edges_ns(steps: TraceSteps) -> tuple[list[int], int]:
    """Where each step begins and the last one ends, from the trace's beginning; and the trace's length."""
    period_ns = steps.period_us * 1000
    return [number * STEP_US * 1000 for number in range(len(steps.values))] + [period_ns], period_ns
