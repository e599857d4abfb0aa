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
"""What a run may take to end tidily before it is interrupted again."""
SHORTEST_S = 0.001


@dataclass(slots=True)
class Limit:
    """Whether the time is over."""

    passed: bool = False


@contextmanager
def limited(seconds: float) -> Iterator[Limit]:
    """Interrupt what goes on inside after so many seconds: SIGINT, then again every LINGERING_S."""
    limit = Limit()

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        limit.passed = True
        os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, max(SHORTEST_S, seconds), LINGERING_S)
    try:
        yield limit
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
