"""A clock that is wrong: how far it is ahead of the true time, and how that changes."""

import math
from dataclasses import dataclass

PER_MILLION = 1_000_000
UPTIME_US = 365 * 24 * 3600 * PER_MILLION
"""Offset of monotonic clocks, so that a clock that is set back never shows a negative time."""


@dataclass(frozen=True, slots=True)
class WrongClock:
    """A clock that was `offset_us` ahead at `since_us` of the right clock and gains `drift_ppm` from then on.

    Both may be negative. A drift of -1,000,000 or less is impossible: the clock would stop.
    """

    offset_us: int = 0
    drift_ppm: float = 0.0
    since_us: int = 0

    def ahead_us(self, right_us: int) -> int:
        """Return how far this clock is ahead when the right clock shows `right_us`."""
        return self.offset_us + math.floor((right_us - self.since_us) * self.drift_ppm / PER_MILLION)

    def shows(self, right_us: int) -> int:
        """Return what this clock shows when the right clock shows `right_us`."""
        return right_us + self.ahead_us(right_us)

    def right_us(self, shown_us: int) -> int:
        """Return the first time of the right clock at which this clock shows `shown_us` or more."""
        passed_us = (shown_us - self.offset_us - self.since_us) / (1 + self.drift_ppm / PER_MILLION)
        right_us = self.since_us + math.floor(passed_us)
        while self.shows(right_us) < shown_us:
            right_us += 1
        return right_us

    def moved(self, by_us: int) -> "WrongClock":
        """Return the same clock for a right clock that is `by_us` ahead of this one's."""
        return WrongClock(self.offset_us, self.drift_ppm, self.since_us + by_us)
