"""Bounds of the offset of one machine's clock from the run's reference clock over the whole run.

A clock's *offset* is its reading minus the reference clock's reading at the same moment. *Knots* are times by
the machine's own clock. Between neighbouring knots the lower and the upper bound of the offset are straight
lines; the estimate is their middle, and the *error bound* half their distance. A clock that was set back
showed some times twice; the bounds at these times contain both offsets.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from analysis.arrays import Floats, Ints

_STEPS = 2
"""Fixed-point iterations that convert reference time to own time; the offset changes little with the time."""

KEYS = ("t_ns", "low_ns", "high_ns", "low_next_ns", "high_next_ns")


@dataclass(frozen=True, eq=False)
class OffsetBounds:
    """Bounds of the offset, ns, at the beginning and the end of each stretch between two knots.

    Before the first and after the last knot the outermost lines are extrapolated.
    """

    t_ns: Ints  # knots; one more than there are stretches
    low_ns: Floats  # at the beginning of each stretch
    high_ns: Floats
    low_next_ns: Floats  # at the end of each stretch
    high_next_ns: Floats

    @cached_property
    def is_reference(self) -> bool:
        """Whether this clock never differs from the reference clock."""
        bounds = (self.low_ns, self.high_ns, self.low_next_ns, self.high_next_ns)
        return not any(bound.any() for bound in bounds)

    def bounds(self, t_ns: Ints) -> tuple[Floats, Floats]:
        """Return the lower and upper bounds of the offset at times by this clock."""
        stretch = np.clip(np.searchsorted(self.t_ns, t_ns, side="right") - 1, 0, len(self.low_ns) - 1)
        begin = self.t_ns[stretch]
        part = (t_ns - begin) / np.maximum(self.t_ns[stretch + 1] - begin, 1)
        low = self.low_ns[stretch] + part * (self.low_next_ns[stretch] - self.low_ns[stretch])
        high = self.high_ns[stretch] + part * (self.high_next_ns[stretch] - self.high_ns[stretch])
        return low, high

    def corrected(self, t_ns: Ints) -> Ints:
        """Convert times by this clock to times by the reference clock."""
        if self.is_reference or not len(t_ns):
            return t_ns
        low, high = self.bounds(t_ns)
        return t_ns - np.rint((low + high) / 2).astype(np.int64)

    def at(self, t_ns: int) -> int:
        """Convert one time by this clock to a time by the reference clock."""
        return int(self.corrected(np.array([t_ns], np.int64))[0])

    def error_bounds_ns(self, t_ns: Ints) -> Floats:
        """Return the error bounds, in either direction, of times that `corrected` returned."""
        low, high = self.bounds(self.own(t_ns))
        return (high - low) / 2

    def own(self, t_ns: Ints) -> Ints:
        """Convert times by the reference clock to times by this clock, approximately."""
        own = t_ns
        for _ in range(_STEPS):
            low, high = self.bounds(own)
            own = t_ns + np.rint((low + high) / 2).astype(np.int64)
        return own

    def reach(self, first_ns: int, last_ns: int) -> tuple[int, int]:
        """Return a range of reference time that contains all moments between two times by this clock."""
        if self.is_reference:
            return first_ns, last_ns
        inside = self.t_ns[(self.t_ns > first_ns) & (self.t_ns < last_ns)]
        low, high = self.bounds(np.concatenate(([first_ns], inside - 1, inside, [last_ns])))
        return int(first_ns - high.max()) - 1, int(last_ns - low.min()) + 1

    def as_json(self) -> dict[str, list[Any]]:
        """Return plain data in nanoseconds, bounds rounded to 0.1 ns."""
        return {
            name: (
                getattr(self, name).tolist() if name == KEYS[0] else np.round(getattr(self, name), 1).tolist()
            )
            for name in KEYS
        }

    @classmethod
    def from_json(cls, content: dict[str, list[Any]]) -> "OffsetBounds":
        """Read the output of `as_json`. Raises KeyError or ValueError if it is malformed."""
        knots = np.array(content[KEYS[0]], np.int64)
        bounds = [np.array(content[name], np.float64) for name in KEYS[1:]]
        if len(knots) < 2 or any(len(bound) != len(knots) - 1 for bound in bounds):
            raise ValueError("a clock's bounds do not fit its knots")
        return cls(knots, *bounds)


def constant(low_ns: float, high_ns: float) -> OffsetBounds:
    """Return a clock with constant bounds of its offset."""
    low, high = np.array([low_ns]), np.array([high_ns])
    return OffsetBounds(np.array([0, 1], np.int64), low, high, low, high)


REFERENCE = constant(0.0, 0.0)
"""The reference clock; the only clock of a run on one machine."""
