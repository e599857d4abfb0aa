"""Computes an `OffsetBounds` from segments and bounds: the range of the offset at every time, given its
rates.

If an offset is at most `u` at one time, later it is at most `u` plus the growth at the fastest rate, and
earlier at most `u` minus the growth at the slowest rate. Each packet thus bounds the whole segment, and the
tightest bound counts. Bounds are computed at knots and interpolated linearly; the lines are widened by the
most that the exact bound can lie beyond them between two knots.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.arrays import Floats, Ints
from analysis.capture.clocks.bounds import WindowBounds
from analysis.capture.clocks.clock import OffsetBounds
from analysis.capture.clocks.rate_segments import RateSegment

KNOTS = 512
UNKNOWN_NS = 3_600_000_000_000
"""An offset with only one bound gets a second one at this distance: one hour."""
BESIDE_NS = 600_000_000_000
"""How long before the first and after the last packet a clock is extrapolated."""


@dataclass(frozen=True, slots=True)
class OffsetBand:
    """The bounds of one segment. `begin` and `end`: the clock's own times within it."""

    begin: float
    end: float
    low_at: Floats
    low: Floats
    high_at: Floats
    high: Floats
    rates: tuple[float, float]

    def low_high(self, at: Floats) -> tuple[Floats, Floats]:
        """Return the lower and upper bounds of the offset at some times."""
        least, most = self.rates
        return -_upper(self.low_at, -self.low, at, -most, -least), _upper(
            self.high_at, self.high, at, least, most
        )

    @property
    def sag(self) -> float:
        """How far a bound may lie beyond the line between two knots, as a part of the time between them."""
        return (self.rates[1] - self.rates[0]) / 4


def _upper(at: Floats, bound: Floats, wanted: Floats, least: float, most: float) -> Floats:
    """Return the upper bounds at the wanted times of a value that is at most `bound` at the times `at` and
    changes at rates between `least` and `most`.
    """
    known = np.isfinite(bound)
    order = np.argsort(at[known], kind="stable")
    time, value = at[known][order], bound[known][order]
    before = np.minimum.accumulate(np.append(np.inf, value - most * time))
    after = np.minimum.accumulate(np.append(np.inf, (value - least * time)[::-1]))[::-1]
    place = np.searchsorted(time, wanted, side="right")
    return np.minimum(before[place] + most * wanted, after[place] + least * wanted)


def bands_of(bounds: WindowBounds, segments: Sequence[RateSegment]) -> list[OffsetBand]:
    """Return the bands of all segments, in order."""
    found = []
    for place, segment in enumerate(segments):
        mine = bounds.take(slice(segment.begin, segment.end))
        after = segments[place + 1].begin if place + 1 < len(segments) else None
        before = segments[place - 1].end - 1 if place else None
        times = np.concatenate((mine.low_at[np.isfinite(mine.low)], mine.high_at[np.isfinite(mine.high)]))
        first, last = bounds.passed_ns[[segment.begin, segment.end - 1]]
        # A window fits the segment if its tightest packets do, so the clock may have changed anywhere in the
        # last window before and in the first one after.
        beside = bounds.window_ns
        begin = -np.inf if before is None else times.min() - (first - bounds.passed_ns[before]) - beside
        end = np.inf if after is None else times.max() + (bounds.passed_ns[after] - last) + beside
        found.append(
            OffsetBand(
                float(begin), float(end), mine.low_at, mine.low, mine.high_at, mine.high,
                segment.rates.allowed,
            )
        )  # fmt: skip
    return found


def clock_of(bounds: WindowBounds, bands: Sequence[OffsetBand]) -> OffsetBounds:
    """Combine bands into a clock. If several bands apply at a time, use the union of their bounds."""
    knots = _knots(bounds, bands)
    middle, width = (knots[:-1] + knots[1:]) / 2, np.diff(knots)
    low, high = (np.full((2, len(middle)), extreme) for extreme in (np.inf, -np.inf))
    times = _times(bounds)
    within = (middle > times.min()) & (middle < times.max())  # outside, the bounds are straight lines
    holds = np.stack([(band.begin <= middle) & (middle <= band.end) for band in bands])
    for stretch in np.flatnonzero(~holds.any(axis=0)):  # the clock was set ahead: it never showed these times
        holds[np.searchsorted([band.begin for band in bands], middle[stretch]) - 1, stretch] = True
    for band, mine in zip(bands, holds, strict=True):
        for end, at in enumerate((knots[:-1][mine], knots[1:][mine])):
            least, most = band.low_high(at)
            sag = np.where(within[mine], band.sag * width[mine], 0.0)
            low[end, mine] = np.minimum(low[end, mine], least - sag)
            high[end, mine] = np.maximum(high[end, mine], most + sag)
    low, high = (
        np.where(np.isfinite(low), low, high - UNKNOWN_NS),
        np.where(np.isfinite(high), high, low + UNKNOWN_NS),
    )
    return OffsetBounds(
        knots.astype(np.int64) + bounds.origin_ns,
        *(values + bounds.base_ns for values in (low[0], high[0], low[1], high[1])),
    )


def _times(bounds: WindowBounds) -> Floats:
    """Return the times of the finite bounds."""
    return np.concatenate((bounds.low_at[np.isfinite(bounds.low)], bounds.high_at[np.isfinite(bounds.high)]))


def _knots(bounds: WindowBounds, bands: Sequence[OffsetBand]) -> Ints:
    """Return knots in whole ns: the ends of bands, and KNOTS evenly spaced times."""
    times = _times(bounds)
    first, last = times.min(), max(times.max(), times.min() + 1)
    ends = np.array([end for band in bands for end in (band.begin, band.end) if np.isfinite(end)])
    beside = [first - BESIDE_NS, first - BESIDE_NS / 100, last + BESIDE_NS / 100, last + BESIDE_NS]
    return np.unique(np.rint(np.concatenate((beside, np.linspace(first, last, KNOTS), ends))))
