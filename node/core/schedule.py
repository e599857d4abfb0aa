"""Schedule of a node: how much it publishes and what it subscribes to, by time."""

from collections.abc import Iterator
from dataclasses import replace

from node.core.machine import Go
from node.core.specification import NodeSpec, PlannedSubscription


class Schedule:
    """Schedule of one node. `start_us`: when publishers begin, once known; `zero_us`: time 0 of the run,
    which is earlier for a process that is started later. `is_stopped`: nothing new is published.
    """

    def __init__(self, spec: NodeSpec) -> None:
        self.start_us: int | None = None
        self.zero_us = 0
        self.is_stopped = False
        self._spec = spec
        self._asked = 0  # number of the plan's subscriptions already yielded
        self._wanted: dict[int, PlannedSubscription] = {}

    def begin(self, go: Go) -> None:
        """Set the start."""
        self.start_us, self.zero_us = go.start_us, go.start_us - go.late_us

    def due_events(self, now_us: int) -> int:
        """Return how many events a publisher should have published by now, at the workload's rate."""
        if self.start_us is None or self.is_stopped:
            return 0
        return max(0, int((now_us - self.start_us) * self._spec.workload["rate_per_s"] / 1e6))

    def due_subscriptions(self, now_us: int) -> Iterator[PlannedSubscription]:
        """Yield the changes of subscriptions that are due since the start; each once.

        A process that is started later receives only the state that it should have by then.
        """
        before = dict(self._wanted)
        while self.start_us is not None and self._asked < len(self._spec.subscriptions):
            due = self._spec.subscriptions[self._asked]
            if now_us < self.zero_us + due.at_us:
                break
            self._asked += 1
            self._wanted[due.number] = due
            if not due.on:
                del self._wanted[due.number]
        yield from (replace(old, on=False) for number, old in before.items() if number not in self._wanted)
        yield from (new for number, new in self._wanted.items() if number not in before)
