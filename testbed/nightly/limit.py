"""What ends a run before its time: the user, or that it takes too long, which stops it as Ctrl-C does.

Python drops a KeyboardInterrupt that comes while it collects garbage (in callbacks of weak references), so
what was asked for is also noted. The work is called rather than put into a block: an interrupt comes from it
or from nowhere, however short the time is, and the note of why is there before it can come. Works in the main
thread; the limit by SIGALRM (setitimer(2)).
"""

import os
import signal
from collections.abc import Callable
from dataclasses import dataclass
from types import FrameType
from typing import TypeVar

T = TypeVar("T")
LINGERING_S = 60.0
"""What a run of real processes may take to end tidily before it is interrupted again."""
SHORTEST_S = 0.001


@dataclass(slots=True)
class Limit:
    """Whether the time is over, and whether the user asked for an end."""

    passed: bool = False
    by_user: bool = False

    def within(self, seconds: float, work: Callable[[], T]) -> T:
        """Do the work; it is interrupted after so many seconds: SIGINT, then again every `LINGERING_S`.

        Raises KeyboardInterrupt, if the work lets it pass.
        """
        is_on = True

        def interrupt(_number: int, _frame: FrameType | None) -> None:
            if is_on:
                self.passed = True
                os.kill(os.getpid(), signal.SIGINT)

        def end(_number: int, _frame: FrameType | None) -> None:
            self.by_user = self.by_user or not self.passed
            if is_on:
                raise KeyboardInterrupt

        handlers = {signal.SIGALRM: interrupt, signal.SIGINT: end, signal.SIGTERM: end}
        before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        try:
            signal.setitimer(signal.ITIMER_REAL, max(SHORTEST_S, seconds), LINGERING_S)
            return work()
        finally:
            is_on = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            for number, handler in before.items():
                signal.signal(number, handler)
