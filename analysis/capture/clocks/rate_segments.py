"""Cuts the time of a run where a clock did not go on as it went: it was set, or changed its rate.

Two bounds of different times say something about the rate in between. As long as some rate fits all of them,
give or take WANDER, the clock went on; where none does any more, a new segment begins. Bounds are not
equally good, so the change lay somewhat before the window that showed it: a segment is also followed back
from its end, and where both the old and the new one fit, nobody knows which held.

Bounds leave as much room as the way takes there and back, in which a small change would hide. So changes are
looked for as if what the quickest packets took was nearly all time that every packet takes (`hidden`). Only
where segments begin depends on that: what is said of a clock within one rests on the bounds as they are, made
wider by the changes that are too small to be found.

Rates are relative to the machine's own time: 1e-6 is a microsecond a second.
"""

from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from analysis.capture.clocks.bounds import Bounds

Flags = npt.NDArray[np.bool_]

RATE_MAX = 500e-6
"""The fastest that the kernel lets anybody steer a clock, without setting it: adjtimex(2), MAXFREQ."""
WANDER = 1e-6
"""By so much a clock's rate may change within a segment: more than what a crystal of a machine in a room
does within minutes, or NTP does to a clock that has settled (RFC 5905, section 12: some tenths of a ppm)."""
_FIT = WANDER / 2  # either way
HIDDEN_PART, HIDDEN_NS = 0.05, 5_000.0
"""Changes are not looked for that are smaller than this part of what the quickest packets took both ways, or
than what from one moment to the next a way may take more in one direction and less in the other."""
CHANGES_WITHIN = 4
"""So many windows may hold a change: their packets seem to have taken less than any did."""
QUICKER = 3.0
"""By so many times the difference between the next ones may the quickest of all be quicker than they."""


@dataclass(frozen=True, slots=True)
class Rates:
    """The least and the most that a clock's rate can be to fit some bounds; crossed where it changed."""

    least: float = -RATE_MAX
    most: float = RATE_MAX

    @property
    def fit(self) -> bool:
        """Whether a clock with a rate that wanders no more than it may fits all."""
        return self.least - _FIT <= self.most + _FIT

    @property
    def allowed(self) -> tuple[float, float]:
        """From which to which rate the clock may have been at any moment."""
        low, high = min(self.least, self.most), max(self.least, self.most)
        return max(low - WANDER, -RATE_MAX - WANDER), min(high + WANDER, RATE_MAX + WANDER)


@dataclass(frozen=True, slots=True)
class Segment:
    """Windows in which a clock surely went on as it went. Those between two segments may be of either."""

    begin: int
    end: int
    rates: Rates


def with_window(rates: Rates, bounds: Bounds, others: slice, new: int) -> Rates:
    """Narrow rates by what one more window says together with others and by itself.

    Windows that contradict each other whatever the rate leave rates that do not fit.
    """
    least, most = _narrowed(rates, bounds, slice(new, new + 1), others)
    least, most = _narrowed(Rates(least, most), bounds, others, slice(new, new + 1))
    return Rates(*_narrowed(Rates(least, most), bounds, slice(new, new + 1), slice(new, new + 1)))


def _narrowed(rates: Rates, bounds: Bounds, lower: slice, upper: slice) -> tuple[float, float]:
    """By each lower bound against each upper one: the offset rose or fell at least so much between them."""
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


def round_trip_of(bounds: Bounds) -> float:
    """What the quickest packets took there and back, ns; 0 where it is not known."""
    rooms = np.sort((bounds.high - bounds.low)[np.isfinite(bounds.high - bounds.low)])
    if not len(rooms):
        return 0.0
    quick, next_quick = (rooms[min(place, len(rooms) - 1)] for place in (CHANGES_WITHIN, 2 * CHANGES_WITHIN))
    return max(0.0, float(quick - QUICKER * (next_quick - quick)))


def possible(bounds: Bounds, round_trip_ns: float) -> Flags:
    """Which windows do not contradict themselves: in one that does, the clock was set."""
    time, rise = bounds.low_at - bounds.high_at, bounds.low - bounds.high
    found: Flags = ~(rise + round_trip_ns - hidden(round_trip_ns) > RATE_MAX * np.abs(time))
    return found


def hidden(round_trip_ns: float) -> float:
    """The largest change that is not looked for."""
    return min(round_trip_ns, max(HIDDEN_PART * round_trip_ns, HIDDEN_NS))


def tightened(bounds: Bounds, by: float) -> Bounds:
    """The same with less room on either side; wider where `by` is negative."""
    return replace(bounds, low=bounds.low + by, high=bounds.high - by)


def segments_of(whole: Bounds, round_trip_ns: float) -> list[Segment]:
    """Cut windows, none of which contradicts itself, into as few segments as possible."""
    bounds = tightened(whole, (round_trip_ns - hidden(round_trip_ns)) / 2)
    starts, fits = [0], []
    rates = Rates()
    for window in range(len(bounds)):
        narrowed = with_window(rates, bounds, slice(starts[-1], window), window)
        if not narrowed.fit:
            fits.append(rates)
            starts.append(window)
            narrowed = with_window(Rates(), bounds, slice(window, window), window)
        rates = narrowed
    fits.append(rates)
    ends = [*starts[1:], len(bounds)]
    doubtful = [0]
    for (before, begin), end, fit in zip(pairwise(starts), ends[1:], fits[1:], strict=True):
        doubtful.append(begin - _followed_back(bounds, fit, before, begin, end))
    found: list[Segment] = []
    for place, (begin, end) in enumerate(zip(starts, ends, strict=True)):
        sure = end - (doubtful[place + 1] if place + 1 < len(doubtful) else 0)
        if all(np.isfinite(side[begin:sure]).any() for side in (whole.low, whole.high)):
            found.append(Segment(begin, sure, _rates_of(whole, begin, sure)))
    return found


def _followed_back(bounds: Bounds, rates: Rates, before: int, begin: int, end: int) -> int:
    """The first window, after `before`, from which on all fit the segment from `begin` to `end`."""
    for window in range(begin - 1, before, -1):
        rates = with_window(rates, bounds, slice(window + 1, end), window)
        if not rates.fit:
            return window + 1
    return min(begin, before + 1)


def _rates_of(bounds: Bounds, begin: int, end: int) -> Rates:
    rates = Rates()
    for window in range(begin, end):
        rates = with_window(rates, bounds, slice(begin, window), window)
    return rates
