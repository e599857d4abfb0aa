"""Ctrl-C that is not lost: Python drops a KeyboardInterrupt that comes while it collects garbage.

(It is raised in the callback of a weak reference, whose errors nobody gets.) So that it was asked for is
noted beside what the handler before does, and raised again where the work looks for it.
"""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from types import FrameType


@dataclass(slots=True)
class Interrupts:
    """Whether SIGINT came."""

    came: bool = False

    def check(self) -> None:
        """Raises KeyboardInterrupt if it came."""
        if self.came:
            raise KeyboardInterrupt


@contextmanager
def noted_interrupts() -> Iterator[Interrupts]:
    """Note SIGINT inside. Only Python's main thread gets signals: in another one nothing is noted."""
    interrupts = Interrupts()
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield interrupts
        return
    handler = before

    def note(number: int, frame: FrameType | None) -> None:
        interrupts.came = True
        handler(number, frame)

    signal.signal(signal.SIGINT, note)
    try:
        yield interrupts
    finally:
        signal.signal(signal.SIGINT, before)
