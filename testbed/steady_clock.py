"""A clock for waits: CLOCK_REALTIME read once, continued with CLOCK_MONOTONIC (clock_gettime(2)).

CLOCK_REALTIME stamps captures and records, but an administrator or NTP may set it at any time, for instance
after a suspension. Waits do not follow such steps: times are converted once, at time 0. `ClockSteps` detects
a step by the change of the difference between the clocks. NTP's slewing changes both clocks equally.
"""

import time
from collections.abc import Callable

READINGS = 5
STEP_NS_MIN = 10_000_000
"""Smaller differences are not reported: WAN latencies are about ten times as long."""


def steady_clock() -> Callable[[], int]:
    """Return a function that reads CLOCK_REALTIME in nanoseconds without later steps."""
    ahead_ns, _ = _ahead()
    return lambda: time.monotonic_ns() + ahead_ns


class ClockSteps:
    """Detector of steps of CLOCK_REALTIME."""

    def __init__(self) -> None:
        self._ahead_ns, _ = _ahead()

    def since_last(self) -> int:
        """Return by how many nanoseconds the clock was set since the last call; 0 if it was not."""
        ahead_ns, error_ns = _ahead()
        step_ns = ahead_ns - self._ahead_ns
        if abs(step_ns) <= STEP_NS_MIN + error_ns:
            return 0
        self._ahead_ns = ahead_ns
        return step_ns


def _ahead() -> tuple[int, int]:
    """Return by how much CLOCK_REALTIME is ahead of CLOCK_MONOTONIC, and the error.

    Takes the best of several readings, because other processes may run in between.
    """
    readings = []
    for _ in range(READINGS):
        before_ns, wall_ns, after_ns = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        readings.append((after_ns - before_ns, wall_ns - (before_ns + after_ns) // 2))
    error_ns, ahead_ns = min(readings)
    return ahead_ns, error_ns
