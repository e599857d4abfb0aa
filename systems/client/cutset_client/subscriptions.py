"""The names of topics, and the subscriptions of a subscriber over time, as planned. Pure.

With the workload `stream` a topic is a stream, "r0/3": its region and its number. With `topics` it is "t3",
on which the streams of all its publishers are published.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple


class Change(NamedTuple):
    """A topic to subscribe to (`on`), or to unsubscribe from."""

    topic: str
    on: bool


def takes_everything(told: Mapping[str, Any]) -> bool:
    """Return whether every subscriber gets every topic."""
    return bool(told["workload"].get("kind", "stream") == "stream")


def topics_of(told: Mapping[str, Any]) -> list[str]:
    """Return the topic of each stream, by number."""
    homes: Sequence[str] = told["homes"]
    if takes_everything(told):
        return [f"{home}/{stream}" for stream, home in enumerate(homes)]
    return [f"t{stream // told['workload']['publishers']}" for stream in range(len(homes))]


class Subscriptions:
    """The subscriptions of one subscriber over time. topics: of each stream, by number."""

    def __init__(self, told: Mapping[str, Any], topics: Sequence[str]) -> None:
        self._planned = [(0, Change(topic, True)) for topic in topics]
        if not takes_everything(told):
            planned = told["subscriptions"]
            self._planned = [(each["at_us"], Change(topics[each["number"]], each["on"])) for each in planned]
        self._planned = list(dict.fromkeys(self._planned))  # the streams of a topic change together
        self._next = 0
        self._wanted: dict[str, None] = {}

    @property
    def due_us(self) -> int | None:
        """When the next change is due, in us after time 0 of the run; None after the last one."""
        return self._planned[self._next][0] if self._next < len(self._planned) else None

    def changes_until(self, run_us: int) -> list[Change]:
        """Return the changes that became due by this time; subscriptions that have ended are skipped."""
        before = dict(self._wanted)
        while self.due_us is not None and self.due_us <= run_us:
            topic, on = self._planned[self._next][1]
            self._next += 1
            self._wanted.pop(topic, None)
            if on:
                self._wanted[topic] = None
        ended = [Change(topic, False) for topic in before if topic not in self._wanted]
        return [*ended, *(Change(topic, True) for topic in self._wanted if topic not in before)]
