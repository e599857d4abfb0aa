"""Tells the launcher that its process has sent a message so many times, and stands still until it may go on.

What is to happen then happens before the process does anything else: it waits as soon as the message was
handed to the connection, which hands it to the kernel at once unless that takes no more. Only its disk may
still finish what it was given.

It waits for a signal that is blocked otherwise (sigwait(3)), so that one which comes before it waits is not
lost; and the signal is not SIGCONT, so that a fault that stops or continues the process means what it always
does.
"""

import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from node.core import machine as m
from node.core.message_layout import Codec
from node.core.specification import Watch

GO_ON = signal.SIGRTMIN
"""What lets a process go on that stands still."""


@dataclass(slots=True)
class _Waiting:
    watch: Watch
    left: int


class Watching:
    """What one process looks out for in what it sends. tell: passes a message to the launcher, and says
    whether it could; only then does the process stand still. Made before the process has other threads.
    """

    def __init__(
        self, watches: Iterable[Watch], codec: Codec, tell: Callable[[dict[str, Any]], bool]
    ) -> None:
        self._waiting = [_Waiting(watch, watch.times) for watch in watches]
        self._codec = codec
        self._tell = tell
        self._zero_ns: int | None = None
        signal.pthread_sigmask(signal.SIG_BLOCK, {GO_ON})

    def begin(self, zero_ns: int) -> None:
        """Time 0 of the run is known: CLOCK_REALTIME."""
        self._zero_ns = zero_ns

    def sent(self, effect: m.Send) -> None:
        """The process has sent this."""
        if self._zero_ns is None or not self._waiting:
            return
        since_us = (time.time_ns() - self._zero_ns) // 1000
        for each in [each for each in self._waiting if each.watch.at_us <= since_us]:
            each.left -= sum(self._codec.holds(message, each.watch.sends) for message in effect.messages)
            if each.left <= 0:
                self._waiting.remove(each)
                told = self._tell({"did": "reached", "index": each.watch.index, "time_ns": time.time_ns()})
                if told:
                    signal.sigwait({GO_ON})
