"""A stretch of time, from which packets or messages are of interest."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TimeRange:
    """Packets of interest: first_ns <= t < end_ns, CLOCK_REALTIME ns; None is open."""

    first_ns: int | None = None
    end_ns: int | None = None

    def meets(self, first_ns: int, last_ns: int) -> bool:
        """Whether anything in [first_ns, last_ns] may be of interest."""
        return (self.end_ns is None or first_ns < self.end_ns) and (
            self.first_ns is None or last_ns >= self.first_ns
        )


EVER = TimeRange()
"""All of time."""
