"""A time range that selects packets or messages."""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt


@dataclass(frozen=True, slots=True)
class TimeRange:
    """The range first_ns <= t < end_ns in CLOCK_REALTIME ns; None means unbounded on that side."""

    first_ns: int | None = None
    end_ns: int | None = None

    def meets(self, first_ns: int, last_ns: int) -> bool:
        """Return whether the range overlaps [first_ns, last_ns]."""
        return (self.end_ns is None or first_ns < self.end_ns) and (
            self.first_ns is None or last_ns >= self.first_ns
        )

    def widened(self, by_ns: int) -> "TimeRange":
        """Return the range with this much more time on either side."""
        return TimeRange(
            None if self.first_ns is None else self.first_ns - by_ns,
            None if self.end_ns is None else self.end_ns + by_ns,
        )

    def within(self, t_ns: npt.NDArray[np.integer]) -> npt.NDArray[np.bool_]:
        """Return which times are in the range."""
        inside = np.ones(t_ns.size, np.bool_)
        if self.first_ns is not None:
            inside &= t_ns >= self.first_ns
        if self.end_ns is not None:
            inside &= t_ns < self.end_ns
        return inside


EVER = TimeRange()
"""The unbounded range."""
