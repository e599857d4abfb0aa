"""A time range that selects packets or messages."""

from dataclasses import dataclass


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


EVER = TimeRange()
"""The unbounded range."""
