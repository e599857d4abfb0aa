"""Pauses a process that has sent a watched message, and reports to the launcher.

The triggered action runs before the process does anything else: it pauses as soon as the message was handed
to the connection, which hands it to the kernel at once unless the kernel takes no more. Only its disk may
still finish earlier operations.

The process waits for a signal that is otherwise blocked (sigwait(3)), so that an early signal is not lost.
The signal is not SIGCONT, so that faults that stop or continue the process work as usual.
"""

import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from node.core import machine as m
from node.core.message_layout import Codec
from node.core.specification import SendWatch

GO_ON = signal.SIGRTMIN
"""The signal that resumes a paused process."""


@dataclass(slots=True)
class _PendingWatch:
    watch: SendWatch
    left: int


class Watching:
    """The watches of one process. tell: sends a message to the launcher, and returns whether it succeeded;
    only then the process pauses. Created before the process has other threads.
    """

    def __init__(
        self, watches: Iterable[SendWatch], codec: Codec, tell: Callable[[dict[str, Any]], bool]
    ) -> None:
        self._waiting = [_PendingWatch(watch, watch.times) for watch in watches]
        self._codec = codec
        self._tell = tell
        self._zero_ns: int | None = None
        signal.pthread_sigmask(signal.SIG_BLOCK, {GO_ON})

    def begin(self, zero_ns: int) -> None:
        """Set time 0 of the run: CLOCK_REALTIME."""
        self._zero_ns = zero_ns

    def sent(self, effect: m.Send) -> None:
        """Check messages that the process has sent against the watches."""
        if self._zero_ns is None or not self._waiting:
            return
        since_us = (time.time_ns() - self._zero_ns) // 1000
        for each in [each for each in self._waiting if each.watch.at_us <= since_us]:
            each.left -= sum(self._codec.holds(message, each.watch.sends) for message in effect.messages)
            if each.left <= 0:
                self._waiting.remove(each)
                report = {"did": "reached", "index": each.watch.index, "time_ns": time.time_ns()}
                if self._tell(report):
                    signal.sigwait({GO_ON})
