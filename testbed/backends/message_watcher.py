"""Watches the messages of a run in memory: keeps those of a time span for diagrams, and ends a process that
sends endlessly.
"""

from dataclasses import dataclass, field
from typing import Any

from node.core import machine as m
from node.core.errors import NodeFailureError
from node.core.message_layout import Codec
from node.sim.process import Node
from node.systems import codec_of
from testbed.backends.virtual_world import VirtualWorld

MESSAGES_MAX = 200_000
"""Messages kept for a diagram."""
SENDS_MAX = 100_000
"""Sends of one process within a second of virtual time; a process that sends more has failed."""
SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class SeenMessage:
    """A message that a process handed to a connection."""

    time_us: int
    source: str
    target: str
    kind: str
    text: str


@dataclass(slots=True)
class MessageWatcher:
    """Watches one run. codec: of its messages. kept_us: the span of kept messages, since time 0."""

    codec: Codec
    kept_us: tuple[int, int] | None = None
    messages: list[SeenMessage] = field(default_factory=list)
    _sends: dict[str, tuple[int, int]] = field(default_factory=dict)
    _simulation: VirtualWorld | None = None

    @classmethod
    def for_system(cls, system: str, kept_us: tuple[int, int] | None = None) -> "MessageWatcher":
        """Return a watcher for a run of this system."""
        return cls(codec_of(system) or Codec([]), kept_us)

    def begin(self, simulation: VirtualWorld) -> None:
        """Note the run that begins."""
        self._simulation = simulation

    def sent(self, source: Node, target: Node, effect: m.Send) -> None:
        """Note a send. Raises NodeFailureError beyond `SENDS_MAX`."""
        since_us = self._since_us()
        name = source.spec.name
        second, sends = self._sends.get(name, (0, 0))
        sends = sends + 1 if second == since_us // SECOND_US else 1
        self._sends[name] = since_us // SECOND_US, sends
        if sends > SENDS_MAX:
            raise NodeFailureError(f"{name} failed: it sent {SENDS_MAX} times within a second")
        if self.kept_us is None or not self.kept_us[0] <= since_us < self.kept_us[1]:
            return
        for message in effect.messages[: MESSAGES_MAX - len(self.messages)]:
            kind = self._kind(message)
            self.messages.append(SeenMessage(since_us, name, target.spec.name, kind, _short(message)))

    def _kind(self, message: Any) -> str:
        """Return the names of a message and of its nested messages, joined by colons."""
        return ":".join(layout.name for layout, _ in self.codec.within(message)) or type(message).__name__

    def _since_us(self) -> int:
        """Return microseconds since time 0; negative before."""
        assert self._simulation is not None
        zero_us = self._simulation.zero_us
        return self._simulation.now_us - zero_us if zero_us else -1


def _short(message: object) -> str:
    text = repr(message)
    return text if len(text) <= 200 else text[:197] + "..."
