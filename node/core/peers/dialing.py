"""Dialling: keep a connection to a peer, with bounded pauses between attempts, and dial again after a loss.

Each peer has one `Dialer`, a small state machine driven by a table. It never gives up, because a proxy must
not forget a peer whose link was down for long; only its rate is bounded. Pauses double from a first to a
last value, counted from the *start* of an attempt, so that attempts into a silent link, which end by their
own timeout, follow each other closely and the repaired link is found soon. The pause is short again once the
peer has sent a message (`settled`), not when a connection merely opened.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from node.core.machine import CancelTimer, Connect, Effect, Randomness, SetTimer

DIAL = "dial"  # first word of a dialler's timer; the peer's name follows


class DialState(Enum):
    """State of a dialler."""

    IDLE = "idle"
    DIALLING = "dialling"
    PAUSING = "pausing"
    CONNECTED = "connected"


class DialEvent(Enum):
    """Input of a dialler."""

    START = "start"
    CONNECTED = "connected"
    FAILED = "failed"
    LOST = "lost"
    RETRY = "retry"
    STOP = "stop"


TRANSITIONS: dict[tuple[DialState, DialEvent], DialState] = {
    (DialState.IDLE, DialEvent.START): DialState.DIALLING,
    (DialState.DIALLING, DialEvent.CONNECTED): DialState.CONNECTED,
    (DialState.DIALLING, DialEvent.FAILED): DialState.PAUSING,
    (DialState.CONNECTED, DialEvent.LOST): DialState.PAUSING,
    (DialState.PAUSING, DialEvent.RETRY): DialState.DIALLING,
    (DialState.DIALLING, DialEvent.STOP): DialState.IDLE,
    (DialState.PAUSING, DialEvent.STOP): DialState.IDLE,
    (DialState.CONNECTED, DialEvent.STOP): DialState.IDLE,
    (DialState.IDLE, DialEvent.STOP): DialState.IDLE,
}


@dataclass(frozen=True, slots=True)
class Pauses:
    """Bounds of the pauses between the starts of two attempts, and the timeout of an attempt."""

    first_us: int
    last_us: int
    timeout_us: int


@dataclass(frozen=True, slots=True)
class Target:
    """Process to dial: its name, address and port."""

    peer: str
    address: str
    port: int


class Dialer:
    """Keeps one connection. emit: takes its effects."""

    def __init__(
        self, target: Target, pauses: Pauses, rng: Randomness, emit: Callable[[Effect], None]
    ) -> None:
        self.state = DialState.IDLE
        self.attempts = 0  # in a row without a message from the peer
        self._connect = Connect(target.peer, target.address, target.port, pauses.timeout_us)
        self._timer = (DIAL, target.peer)
        self._pauses = pauses
        self._rng = rng
        self._emit = emit
        self._began_us = 0

    def take(self, event: DialEvent, now_us: int) -> bool:
        """Make one transition; return False if the state does not permit the event and nothing was done."""
        state = TRANSITIONS.get((self.state, event))
        if state is None:
            return False
        if self.state is DialState.PAUSING:
            self._emit(CancelTimer(self._timer))
        self.state = state
        if state is DialState.DIALLING:
            self._began_us = now_us
            self.attempts += 1
            self._emit(self._connect)
        elif state is DialState.PAUSING:
            self._emit(SetTimer(self._timer, now_us + self._pause_us(now_us)))
        return True

    def settled(self) -> None:
        """Reset the pause to the first one: the peer has sent a message."""
        self.attempts = 0

    def _pause_us(self, now_us: int) -> int:
        """Return the pause until the next attempt; spread by a quarter, so that nodes do not dial in step."""
        doubled = self._pauses.first_us << min(max(self.attempts - 1, 0), 16)
        pause_us = int(min(doubled, self._pauses.last_us) * self._rng.uniform(0.75, 1.0))
        shortest_us = self._pauses.first_us // 2
        return max(pause_us - (now_us - self._began_us if self.attempts else 0), shortest_us)
