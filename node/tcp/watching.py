"""Tells the launcher that its process has sent a message so many times, and stands still until it may go on.

What is to happen then happens before the process does anything else: it stops itself (SIGSTOP) as soon as
the message was handed to the connection, which hands it to the kernel at once unless that takes no more.
"""

import os
import signal
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from node.core import machine as m
from node.core.message_layout import Codec
from node.core.specification import Watch


@dataclass(slots=True)
class _Waiting:
    watch: Watch
    left: int


class Watching:
    """What one process looks out for in what it sends. tell: passes a message to the launcher, and says
    whether it could; only then does the process stand still.
    """

    def __init__(
        self, watches: Iterable[Watch], codec: Codec, tell: Callable[[dict[str, Any]], bool]
    ) -> None:
        self._waiting = [_Waiting(watch, watch.times) for watch in watches]
        self._codec = codec
        self._tell = tell
        self._zero_ns: int | None = None

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
                    os.kill(os.getpid(), signal.SIGSTOP)
