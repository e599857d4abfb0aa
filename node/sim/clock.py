"""Virtual time: planned actions run in order of time; those of the same time in the order of planning.

An action is a function and its one argument: plain tuples, because a simulated second of a large system has
millions of them. The actions of one moment are in a list, and the heap has only moments: with equal delays,
thousands of messages arrive at the same time.
"""

from collections.abc import Callable, Iterator
from heapq import heappop, heappush
from typing import Any

Action = Callable[[Any], None]


class VirtualClock:
    """Virtual clock. Time is in microseconds and moves only from one action to the next."""

    __slots__ = ("_moments", "_planned", "_serial", "now_us")

    def __init__(self) -> None:
        self.now_us = 0
        self._planned: dict[int, list[tuple[Action, Any]]] = {}
        self._moments: list[int] = []
        self._serial = 0

    def at(self, time_us: int, action: Action, argument: Any = None) -> None:
        """Plan `action(argument)`; an action planned for the past runs now."""
        self._serial += 1
        if time_us < self.now_us:  # noqa: PLR1730 - max() costs three times as much, millions of times
            time_us = self.now_us
        planned = self._planned.get(time_us)
        if planned is None:
            self._planned[time_us] = [(action, argument)]
            heappush(self._moments, time_us)
        else:
            planned.append((action, argument))

    def run_until(self, time_us: int) -> None:
        """Run all actions planned up to and at `time_us`."""
        moments = self._moments
        while moments and moments[0] <= time_us:
            self.now_us = heappop(moments)
            for action, argument in self._planned.pop(self.now_us):
                action(argument)  # actions that it plans for this moment are in a new list, after this one
        self.now_us = max(self.now_us, time_us)

    def planned(self, action: Action) -> Iterator[tuple[int, Any]]:
        """Yield the times and arguments with which an action is planned."""
        for time_us in sorted(self._planned):
            for each, argument in self._planned[time_us]:
                if each == action:
                    yield time_us, argument

    @property
    def actions(self) -> int:
        """Number of actions planned so far: the measure of a simulation's work."""
        return self._serial
