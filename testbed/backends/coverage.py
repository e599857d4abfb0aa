"""What happened in a run, for who wants to know whether it was new.

A *feature* is a text: a kind of message that a role sent (and of the message within), or an event of its
log, on which input, and in which phase (before any disturbance, during some, after the last one), and how
often, by powers of 16; of log events also during which kinds of disturbance. Steady traffic gives the same
features in every run; what a disturbance brings about gives others. Kept with each feature is when it first
occurred, so that faults can be put there.

Also keeps the messages of a span of time for diagrams, if asked for.
"""

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from node.core import machine as m
from node.core.errors import NodeFailureError
from node.core.message_layout import Codec
from node.sim.process import Node
from node.systems import codec_of
from testbed.backends.in_memory import Clock, Watcher

SETTLING_US = 1_000_000  # after a disturbance's end: what follows it is still of it
BEFORE, DURING, AFTER = "before", "during", "after"
LOGGED = "log "
"""How the kind of what is logged begins."""
MESSAGES_MAX = 200_000
"""That are kept for a diagram."""
SENDS_MAX = 100_000
"""Of one process in a second of virtual time: who sends more goes round in circles."""
SECOND_US = 1_000_000


@dataclass(frozen=True, slots=True)
class Phase:
    """From when on which kinds of disturbance act, in microseconds since time 0."""

    from_us: int
    name: str


def phases(spans: Iterable[tuple[str, int, int]]) -> list[Phase]:
    """The phases of a run. spans: kind, begin and end of each disturbance, since time 0."""
    known = [(kind, begin, end + SETTLING_US) for kind, begin, end in spans]
    edges = sorted({edge for _, begin, end in known for edge in (begin, end)})
    found = [Phase(-1 << 62, BEFORE)]
    for edge in edges:
        acting = sorted({kind for kind, begin, end in known if begin <= edge < end})
        begun = any(begin <= edge for _, begin, _ in known)
        found.append(Phase(edge, "+".join(acting) if acting else AFTER if begun else BEFORE))
    return found


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
    _counts: dict[tuple[str, str, str, str], int] = field(default_factory=dict)
    _first_us: dict[tuple[str, str, str, str], int] = field(default_factory=dict)
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
        before = None
        for message in effect.messages:
            kind = self._kind(message)
            if kind != before:
                self._note(source, kind, since_us)
                before = kind
            if keep and len(self.messages) < MESSAGES_MAX:
                names = source.spec.name, target.spec.name
                self.messages.append(SeenMessage(since_us, *names, kind, _short(message)))

    def logged(self, time_us: int, node: Node, line: m.Log) -> None:
        """See `Watcher`."""
        self._note(node, f"{LOGGED}{line.event}", self._since_us())

    def features(self) -> dict[str, int]:
        """All features of the run, and when each first occurred: microseconds since time 0."""
        found: dict[str, int] = {}
        often: Counter[tuple[str, str, str]] = Counter()
        for (role, _, kind, phase), count in self._counts.items():
            often[role, kind, _broad(phase)] += count
        for key, at_us in self._first_us.items():
            role, cause, kind, phase = key
            for text in _features(role, cause, kind, phase, often[role, kind, _broad(phase)]):
                found[text] = min(at_us, found.get(text, at_us))
        return found

    def _note(self, node: Node, kind: str, since_us: int) -> None:
        key = (node.spec.role, self._cause(node.given), kind, self._phase)
        counts = self._counts
        if key in counts:
            counts[key] += 1
        else:
            counts[key] = 1
            self._first_us[key] = since_us

    def _cause(self, given: m.Input | None) -> str:
        """The kind of an input: of the first message that came, or the name of a timer."""
        match given:
            case m.Received():
                return self._kind(given.messages[0])
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


def _features(role: str, cause: str, kind: str, phase: str, count: int) -> Iterator[str]:
    """What is said of what a role did, so often in all: coarse enough that most runs show little new."""
    broad = _broad(phase)
    if broad != BEFORE:  # how often until then says only how long that was
        yield f"{role} {kind} {broad} {_size(count)}"
    yield f"{role} {cause}>{kind} {broad}"
    for each in phase.split("+") if broad == DURING and kind.startswith(LOGGED) else ():
        yield f"{role} {kind} during {each}"


def _broad(phase: str) -> str:
    return phase if phase in {BEFORE, AFTER} else DURING


def _size(count: int) -> int:
    """A power of 16, so that only what happens very much more often is new."""
    return (count.bit_length() - 1) // 4


def _short(message: object) -> str:
    text = repr(message)
    return text if len(text) <= 200 else text[:197] + "..."
