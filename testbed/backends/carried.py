"""Notes in a simulated run which messages carried which events, for who asks what a delivery rested on."""

from dataclasses import dataclass, field
from typing import Any

from experiments.hunting.lineage import Transfer
from node.core import machine as m
from node.core.message_layout import Codec
from node.sim.process import Node
from node.systems import codec_of, reading_of
from testbed.backends.in_memory import Clock, Watcher

TRANSFERS_MAX = 200_000
Events = tuple[int, int, int]
"""A stream, the first number, and one behind the last."""


@dataclass(slots=True)
class Carried(Watcher):
    """Watches one run. codec: of its messages. carrying: the names of those that carry events."""

    codec: Codec
    carrying: frozenset[str]
    transfers: list[Transfer] = field(default_factory=list)
    _empty: set[type] = field(default_factory=set)
    _clock: Clock | None = None

    @classmethod
    def of(cls, system: str) -> "Carried":
        """For a run of this system."""
        reading = reading_of(system)
        return cls(codec_of(system) or Codec([]), frozenset(reading.carries if reading else ()))

    def begin(self, now: Clock) -> None:
        """See `Watcher`."""
        self._clock = now

    def sent(self, source: Node, target: Node, effect: m.Send) -> None:
        """See `Watcher`."""
        assert self._clock is not None
        zero_us = self._clock.zero_us
        if zero_us is None or len(self.transfers) >= TRANSFERS_MAX:
            return
        for message in effect.messages:
            if type(message) in self._empty:
                continue
            events = self._events(message)
            if events is None and self.codec.is_plain(type(message)):
                self._empty.add(type(message))
            if events is not None:
                at_us = self._clock.now_us - zero_us
                self.transfers.append(Transfer(at_us, source.spec.name, target.spec.name, *events))

    def _events(self, message: Any) -> Events | None:
        """The events that a message carries, or one within it."""
        for layout, inner in self.codec.within(message):
            if layout.name in self.carrying:
                first = inner.first_seq
                return inner.stream, first, first + getattr(inner, "count", 1)
        return None


class Together(Watcher):
    """Several watchers of one run."""

    def __init__(self, *watchers: Watcher) -> None:
        self._watchers = watchers

    def begin(self, now: Clock) -> None:
        """See `Watcher`."""
        for each in self._watchers:
            each.begin(now)

    def sent(self, source: Node, target: Node, effect: m.Send) -> None:
        """See `Watcher`."""
        for each in self._watchers:
            each.sent(source, target, effect)

    def logged(self, time_us: int, node: Node, line: m.Log) -> None:
        """See `Watcher`."""
        for each in self._watchers:
            each.logged(time_us, node, line)
