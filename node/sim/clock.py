"""Virtual time: planned actions, in order of their time, and at the same time in order of their planning."""

import heapq
from collections.abc import Callable

Action = Callable[[], None]


class Clock:
    """A heap of planned actions. Time is in microseconds and moves only from one action to the next."""

    def __init__(self) -> None:
        self.now_us = 0
        self._planned: list[tuple[int, int, Action]] = []
        self._serial = 0

    def at(self, time_us: int, action: Action) -> None:
        """Plan an action; what is planned for the past happens now."""
        self._serial += 1
        heapq.heappush(self._planned, (max(time_us, self.now_us), self._serial, action))

    def run_until(self, time_us: int) -> None:
        """Let everything happen that is planned up to and at `time_us`."""
        while self._planned and self._planned[0][0] <= time_us:
            self.now_us, _, action = heapq.heappop(self._planned)
            action()
        self.now_us = max(self.now_us, time_us)
