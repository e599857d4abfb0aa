"""What ends a run before its time: the user, or that it takes too long, which stops it as Ctrl-C does.

Python drops a KeyboardInterrupt that comes while it collects garbage (in callbacks of weak references), so
what was asked for is also noted. Works in the main thread; the limit by SIGALRM (setitimer(2)).
"""

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import NoReturn

LINGERING_S = 60.0
"""What a run of real processes may take to end tidily before it is interrupted again."""
SHORTEST_S = 0.001


@dataclass(slots=True)
class Limit:
    """Whether the time is over, and whether the user asked for an end."""

    passed: bool = False
    by_user: bool = False


@contextmanager
def limited(seconds: float) -> Iterator[Limit]:
    """Interrupt what goes on inside after so many seconds: SIGINT, then again every `LINGERING_S`."""
    limit = Limit()

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        limit.passed = True
        os.kill(os.getpid(), signal.SIGINT)

    def end(_number: int, _frame: FrameType | None) -> NoReturn:
        limit.by_user = limit.by_user or not limit.passed
        raise KeyboardInterrupt

    handlers = {signal.SIGALRM: interrupt, signal.SIGINT: end, signal.SIGTERM: end}
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    signal.setitimer(signal.ITIMER_REAL, max(SHORTEST_S, seconds), LINGERING_S)
    try:
        yield limit
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)
