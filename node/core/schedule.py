"""What the plan asks of a node, as time goes on: how much it is to publish, and what it is to follow."""

from collections.abc import Iterator
from dataclasses import replace

from node.core.machine import Go
from node.core.specification import NodeSpec, Subscription


class Schedule:
    """Of one node. `start_us`: when publishers begin, once that is known; `zero_us`: time 0 of the run, which
    was before that for a process that is started later. `is_stopped`: nothing new is published.
    """

    def __init__(self, spec: NodeSpec) -> None:
        self.start_us: int | None = None
        self.zero_us = 0
        self.is_stopped = False
        self._spec = spec
        self._asked = 0  # of the plan's subscriptions
        self._wanted: dict[int, Subscription] = {}

    def begin(self, go: Go) -> None:
        """The start is known."""
        self.start_us, self.zero_us = go.start_us, go.start_us - go.late_us

    def due_events(self, now_us: int) -> int:
        """How many events a publisher should have published by now, at the workload's rate."""
        if self.start_us is None or self.is_stopped:
            return 0
        return max(0, int((now_us - self.start_us) * self._spec.workload["rate_per_s"] / 1e6))

    def due_subscriptions(self, now_us: int) -> Iterator[Subscription]:
        """What a subscriber asks for from now on, or no longer wants; each once, after the start.

        Of one that is started later, what it should have by then.
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
