"""A limit to how long a run may take: it is stopped as by Ctrl-C, tidily, and again if it lingers.

Works in the main thread, by SIGALRM (setitimer(2)).
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType

LINGERING_S = 60.0
"""What a run of real processes may take to end tidily before it is interrupted again."""
LINGERING_IN_VIRTUAL_TIME_S = 5.0
"""There is nothing to be tidied up; but Python drops an interrupt that comes while it collects garbage."""
SHORTEST_S = 0.001


@dataclass(slots=True)
class Limit:
    """Whether the time is over."""

    passed: bool = False


@contextmanager
def limited(seconds: float, lingering_s: float = LINGERING_S) -> Iterator[Limit]:
    """Interrupt what goes on inside after so many seconds: SIGINT, then again every lingering_s."""
    limit = Limit()

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        limit.passed = True
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, max(SHORTEST_S, seconds), lingering_s)
    try:
        yield limit
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
