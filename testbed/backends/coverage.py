"""Watches what a run in memory does, for who wants to know whether it was new: which role sends which kinds
of message, and logs which events, on which input (`testbed.backends.features`).

Also keeps the messages of a span of time for diagrams, if asked for.
"""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Any

from experiments.hunting.case import Moment
from node.core import machine as m
from node.core.errors import NodeFailureError
from node.core.message_layout import Codec
from node.sim.process import Node
from node.systems import codec_of
from testbed.backends.features import BEFORE, LOGGED, Deed, Noticed, Phase, phases
from testbed.backends.in_memory import Clock, Watcher

MESSAGES_MAX = 200_000
"""That are kept for a diagram."""
SENDS_MAX = 100_000
"""Of one process in a second of virtual time: who sends more goes round in circles."""
SECOND_US = 1_000_000
PART = "part"  # of a long message, which is not whole yet


@dataclass(frozen=True, slots=True)
class SeenMessage:
    """A message that was handed to a connection."""

    time_us: int
    source: str
    target: str
    kind: str
    text: str


@dataclass(slots=True)
class Coverage(Watcher):
    """Watches one run. codec: of its messages. kept_us: of which span, since time 0, messages are kept."""

    codec: Codec
    phases: Sequence[Phase]
    kept_us: tuple[int, int] | None = None
    messages: list[SeenMessage] = field(default_factory=list)
    _noticed: Noticed = field(default_factory=Noticed)
    _sends: dict[str, tuple[int, int]] = field(default_factory=dict)
    _plain: dict[type, str] = field(default_factory=dict)
    _clock: Clock | None = None
    _zero_us: int | None = None
    _phase: str = BEFORE
    _coming: deque[Phase] = field(default_factory=deque)

    @classmethod
    def of(
        cls, system: str, spans: Iterable[tuple[str, int, int]], kept_us: tuple[int, int] | None = None
    ) -> "Coverage":
        """For a run of this system. spans: as of `phases`."""
        return cls(codec_of(system) or Codec([]), phases(spans), kept_us)

    def begin(self, now: Clock) -> None:
        """See `Watcher`."""
        self._clock = now
        self._coming = deque(self.phases)

    def sent(self, source: Node, target: Node, effect: m.Send) -> None:
        """See `Watcher`. Raises NodeFailureError for a process that does nothing else any more."""
        since_us = self._since_us()
        name = source.spec.name
        second, sends = self._sends.get(name, (0, 0))
        sends = sends + 1 if second == since_us // SECOND_US else 1
        self._sends[name] = since_us // SECOND_US, sends
        if sends > SENDS_MAX:
            raise NodeFailureError(f"{name} failed: it sent {SENDS_MAX} times within a second")
        keep = self.kept_us is not None and self.kept_us[0] <= since_us < self.kept_us[1]
        before, names = None, (name, target.spec.name)
        for message in effect.messages:
            kind = self._kind(message)
            if kind != before:
                self._note(source, kind, since_us, names)
                before = kind
            if keep and len(self.messages) < MESSAGES_MAX:
                self.messages.append(SeenMessage(since_us, *names, kind, _short(message)))

    def logged(self, time_us: int, node: Node, line: m.Log) -> None:
        """See `Watcher`."""
        self._note(node, f"{LOGGED}{line.event}", self._since_us(), (node.spec.name,))

    def features(self) -> dict[str, int]:
        """All features of the run, and when each first occurred: microseconds since time 0."""
        return self._noticed.features()

    def moments(self, rng: Random) -> list[Moment]:
        """Some of the times when something was done that is seldom done."""
        return self._noticed.moments(rng)

    def _note(self, node: Node, kind: str, since_us: int, processes: tuple[str, ...]) -> None:
        deed = Deed(node.spec.role, self._cause(node.given), kind, self._phase)
        self._noticed.note(deed, since_us, processes)

    def _cause(self, given: m.Input | None) -> str:
        """The kind of an input: of the first message that came, or the name of a timer."""
        match given:
            case m.Received():
                return self._kind(given.messages[0]) if given.messages else PART
            case m.TimerFired():
                return given.timer[0]
        return type(given).__name__

    def _kind(self, message: Any) -> str:
        """The name of a message, and of those that it holds."""
        known = self._plain.get(type(message))
        if known is not None:
            return known
        name = ":".join(layout.name for layout, _ in self.codec.within(message)) or type(message).__name__
        if self.codec.is_plain(type(message)):
            self._plain[type(message)] = name
        return name

    def _since_us(self) -> int:
        """Microseconds since time 0; negative before."""
        assert self._clock is not None
        if self._zero_us is None:
            self._zero_us = self._clock.zero_us
            if self._zero_us is None:
                return -1
        since_us = self._clock.now_us - self._zero_us
        while self._coming and self._coming[0].from_us <= since_us:
            self._phase = self._coming.popleft().name
        return since_us


def _short(message: object) -> str:
    text = repr(message)
    return text if len(text) <= 200 else text[:197] + "..."
