"""Cuts a run's time into segments in which a clock ran at a steady rate: at steps and at rate changes.

Two bounds at different times constrain the rate in between. A segment continues while some rate fits all its
bounds, within WANDER; otherwise a new segment begins. Bounds differ in quality, so a change precedes the
window that reveals it: each segment is also extended backwards from its end, and windows that fit both
neighbours belong to neither.

The bounds are as wide as the round trip, which would hide small changes. The search for changes therefore
assumes that every packet takes nearly as long as the quickest ones (`hidden`). This assumption only affects
where segments begin: the bounds of a clock within a segment use the packets' bounds, widened by the changes
that are too small to be found.

Rates are relative to the machine's own time: 1e-6 is one microsecond per second.
"""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from analysis.arrays import Bools
from analysis.capture.clocks.bounds import WindowBounds

RATE_MAX = 500e-6
"""The largest rate correction that the kernel permits without setting the clock: adjtimex(2), MAXFREQ."""
WANDER = 1e-6
"""The permitted change of a clock's rate within a segment: more than a crystal's within minutes at room
temperature, or NTP's on a settled clock (RFC 5905, section 12: some tenths of a ppm)."""
_FIT = WANDER / 2  # in either direction
HIDDEN_PART, HIDDEN_NS = 0.05, 5_000.0
"""Changes smaller than this part of the quickest round trip, or than this asymmetry of a path's delay from
one moment to the next, are not searched for."""
CHANGES_WITHIN = 4
"""The number of windows assumed to hold a change; their packets seem quicker than any really was."""
QUICKER = 3.0
"""How far the quickest round trip may lie below the next ones, in multiples of their differences."""


@dataclass(frozen=True, slots=True)
class RateRange:
    """The range of a clock's rate that fits some bounds; least > most if the rate changed."""

    least: float = -RATE_MAX
    most: float = RATE_MAX

    @property
    def fit(self) -> bool:
        """Whether a clock whose rate varies by at most WANDER fits all bounds."""
        return self.least - _FIT <= self.most + _FIT

    @property
    def allowed(self) -> tuple[float, float]:
        """The least and greatest rate that the clock may have had at any moment."""
        low, high = min(self.least, self.most), max(self.least, self.most)
        return max(low - WANDER, -RATE_MAX - WANDER), min(high + WANDER, RATE_MAX + WANDER)


@dataclass(frozen=True, slots=True)
class RateSegment:
    """Windows in which a clock surely ran steadily. Windows between two segments may belong to either."""

    begin: int
    end: int
    rates: RateRange


def with_window(rates: RateRange, bounds: WindowBounds, others: slice, new: int) -> RateRange:
    """Narrow the rates by a new window, together with other windows and by itself.

    If no rate reconciles the windows, the result does not fit.
    """
    least, most = _narrowed(rates, bounds, slice(new, new + 1), others)
    least, most = _narrowed(RateRange(least, most), bounds, others, slice(new, new + 1))
    return RateRange(*_narrowed(RateRange(least, most), bounds, slice(new, new + 1), slice(new, new + 1)))


def _narrowed(rates: RateRange, bounds: WindowBounds, lower: slice, upper: slice) -> tuple[float, float]:
    """Narrow by each pair of a lower and an upper bound, which give the least rise or fall between them."""
    time = bounds.low_at[lower] - bounds.high_at[upper]
    rise = bounds.low[lower] - bounds.high[upper]
    known = np.isfinite(rise)
    if not known.all():
        time, rise = time[known], rise[known]
    if not rise.size:
        return rates.least, rates.most
    if (rise[time == 0] > 0).any():
        return np.inf, -np.inf
    later, earlier = time > 0, time < 0
    least = (rise[later] / time[later]).max(initial=rates.least)
    most = (rise[earlier] / time[earlier]).min(initial=rates.most)
    return float(least), float(most)


def round_trip_of(bounds: WindowBounds) -> float:
    """Return the round trip of the quickest packets, ns; 0 if unknown."""
    rooms = np.sort((bounds.high - bounds.low)[np.isfinite(bounds.high - bounds.low)])
    if not len(rooms):
        return 0.0
    quick, next_quick = (rooms[min(place, len(rooms) - 1)] for place in (CHANGES_WITHIN, 2 * CHANGES_WITHIN))
    return max(0.0, float(quick - QUICKER * (next_quick - quick)))


def possible(bounds: WindowBounds, round_trip_ns: float) -> Bools:
    """Return which windows are consistent; in an inconsistent one the clock was set."""
    time, rise = bounds.low_at - bounds.high_at, bounds.low - bounds.high
    return ~(rise + round_trip_ns - hidden(round_trip_ns) > RATE_MAX * np.abs(time))


def hidden(round_trip_ns: float) -> float:
    """Return the largest change, ns, that is not searched for."""
    return min(round_trip_ns, max(HIDDEN_PART * round_trip_ns, HIDDEN_NS))


def tightened(bounds: WindowBounds, by: float) -> WindowBounds:
    """Return the bounds narrowed by `by` ns on either side, or widened if it is negative."""
    return replace(bounds, low=bounds.low + by, high=bounds.high - by)


def segments_of(whole: WindowBounds, round_trip_ns: float) -> list[RateSegment]:
    """Cut windows into as few segments as possible. Each window must be consistent (`possible`)."""
    bounds = tightened(whole, (round_trip_ns - hidden(round_trip_ns)) / 2)
    starts, fits = [0], []
    rates = RateRange()
    for window in range(len(bounds)):
        narrowed = with_window(rates, bounds, slice(starts[-1], window), window)
        if not narrowed.fit:
            fits.append(rates)
            starts.append(window)
            narrowed = with_window(RateRange(), bounds, slice(window, window), window)
        rates = narrowed
    fits.append(rates)
    ends = [*starts[1:], len(bounds)]
    doubtful = [0]
    for (before, begin), end, fit in zip(pairwise(starts), ends[1:], fits[1:], strict=True):
        doubtful.append(begin - _followed_back(bounds, fit, before, begin, end))
    found: list[RateSegment] = []
    for place, (begin, end) in enumerate(zip(starts, ends, strict=True)):
        sure = end - (doubtful[place + 1] if place + 1 < len(doubtful) else 0)
        if all(np.isfinite(side[begin:sure]).any() for side in (whole.low, whole.high)):
            found.append(RateSegment(begin, sure, _rates_of(whole, begin, sure)))
    return found


def _followed_back(bounds: WindowBounds, rates: RateRange, before: int, begin: int, end: int) -> int:
    """Return the first window after `before` from which all windows fit the segment begin..end."""
    for window in range(begin - 1, before, -1):
        rates = with_window(rates, bounds, slice(window + 1, end), window)
        if not rates.fit:
            return window + 1
    return min(begin, before + 1)


def _rates_of(bounds: WindowBounds, begin: int, end: int) -> RateRange:
    rates = RateRange()
    for window in range(begin, end):
        rates = with_window(rates, bounds, slice(begin, window), window)
    return rates
