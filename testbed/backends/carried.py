"""Notes in a simulated run which messages carried which events, for who asks what a delivery rested on."""

from collections.abc import Callable
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

    codec: Codec | None
    carrying: frozenset[str]
    transfers: list[Transfer] = field(default_factory=list)
    _reads: dict[type, Callable[[Any], Events | None]] = field(default_factory=dict)
    _clock: Clock | None = None

    @classmethod
    def of(cls, system: str) -> "Carried":
        """For a run of this system."""
        reading = reading_of(system)
        return cls(codec_of(system), frozenset(reading.carries if reading else ()))

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
            events = self._events(message)
            if events is not None:
                at_us = self._clock.now_us - zero_us
                self.transfers.append(Transfer(at_us, source.spec.name, target.spec.name, *events))

    def _events(self, message: Any) -> Events | None:
        kind = type(message)
        read = self._reads.get(kind)
        if read is None:
            read = self._reads[kind] = self._read_of(kind)
        return read(message)

    def _read_of(self, kind: type) -> Callable[[Any], Events | None]:
        """How the events of this kind of message are read; those of one that holds another are that one's."""
        known = {} if self.codec is None else self.codec.by_type
        layouts = (layout for layout in known.values() if layout.message is kind)
        layout = next(layouts, None)
        if layout is not None and layout.name in self.carrying:
            return _named
        if layout is not None and layout.codec is not None:
            return lambda message: self._events(getattr(message, layout.tail_name))
        return _none


def _named(message: Any) -> Events:
    first = message.first_seq
    return message.stream, first, first + getattr(message, "count", 1)


def _none(_: Any) -> None:
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
