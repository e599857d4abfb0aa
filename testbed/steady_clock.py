"""A clock for waits: what CLOCK_REALTIME was once, going on with CLOCK_MONOTONIC (clock_gettime(2)).

Captures and records are stamped by CLOCK_REALTIME, which whoever administers a machine may set at any time
(NTP does, after a suspension). Waits do not follow it: times are converted once, at time 0. That the clock
was set is noticed by how far the two are apart (`ClockSteps`): NTP's slewing changes both alike.
"""

import time
from collections.abc import Callable

READINGS = 5
STEP_NS_MIN = 10_000_000
"""Less is not called a step: latencies of WANs are some ten times as long."""


def steady_clock() -> Callable[[], int]:
    """CLOCK_REALTIME in nanoseconds, as if nobody set it from now on."""
    ahead_ns, _ = _ahead()
    return lambda: time.monotonic_ns() + ahead_ns


class ClockSteps:
    """Notices that CLOCK_REALTIME was set."""

    def __init__(self) -> None:
        self._ahead_ns, _ = _ahead()

    def since_last(self) -> int:
        """By how many nanoseconds it was set since the last call; 0: it was not."""
        ahead_ns, error_ns = _ahead()
        step_ns = ahead_ns - self._ahead_ns
        if abs(step_ns) <= STEP_NS_MIN + error_ns:
            return 0
        self._ahead_ns = ahead_ns
        return step_ns


def _ahead() -> tuple[int, int]:
    """How far CLOCK_REALTIME is ahead of CLOCK_MONOTONIC, and how wrong that may be: the best of some
    readings, as other processes run in between.
    """
    readings = []
    for _ in range(READINGS):
        before_ns, wall_ns, after_ns = time.monotonic_ns(), time.time_ns(), time.monotonic_ns()
        readings.append((after_ns - before_ns, wall_ns - (before_ns + after_ns) // 2))
    error_ns, ahead_ns = min(readings)
    return ahead_ns, error_ns
