"""What ends work before its time: Ctrl-C, SIGTERM (of systemd and CI systems), or that it takes too long.

Each ends it as KeyboardInterrupt, in Python's main thread, which alone gets signals. Python drops one that is
raised while it collects garbage (in the callback of a weak reference, whose errors nobody gets). It is sent
again then; and what was asked for is also noted, for whoever looks.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from types import FrameType
from typing import Any, NoReturn, TypeVar

T = TypeVar("T")
LINGERING_S = 60.0
"""What a run of real processes may take to end tidily before it is interrupted again."""
SHORTEST_S = 0.001
AGAIN_S = 0.01
SIGNALS_MAX = 4096
"""That are looked at: enough for anybody's patience."""


@contextmanager
def handling(handlers: Mapping[signal.Signals, Any]) -> Iterator[None]:
    """Handle these signals so, for the length of this block. See signal.signal."""
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    """Handles a signal as Ctrl-C."""
    raise KeyboardInterrupt


@contextmanager
def none_dropped() -> Iterator[None]:
    """Send SIGINT again where Python drops its exception, instead of a traceback of where that was."""
    before = sys.unraisablehook
    again: list[threading.Timer] = []

    def take_up(dropped: Any) -> None:
        if dropped.exc_type is not KeyboardInterrupt:
            before(dropped)
            return
        while True:
            timer = threading.Timer(AGAIN_S, os.kill, (os.getpid(), signal.SIGINT))  # when we are out of here
            timer.daemon = True
            again.append(timer)
            try:
                timer.start()
            except KeyboardInterrupt:  # it came, or another, while we are still here: dropped as well
                timer.cancel()
            else:
                return

    sys.unraisablehook = take_up
    try:
        yield
    finally:
        sys.unraisablehook = before
        for timer in again:
            timer.cancel()


@contextmanager
def sigterm_like_ctrl_c() -> Iterator[Callable[[], bool]]:
    """Let SIGTERM interrupt what goes on inside. Yields whether it has come so far.

    Handlers come and go meanwhile; Python also writes each signal's number into a pipe, whichever handler it
    has (signal.set_wakeup_fd).
    """
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    heard = bytearray()

    def came() -> bool:
        with suppress(BlockingIOError):  # none came since the last look
            heard.extend(os.read(reading, SIGNALS_MAX))
        return signal.SIGTERM in heard

    with handling({signal.SIGTERM: interrupt}):
        before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        try:
            yield came
        finally:
            signal.set_wakeup_fd(before)
            os.close(reading)
            os.close(writing)


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
    """Note SIGINT inside, beside what its handler does. Outside the main thread nothing is noted."""
    interrupts = Interrupts()
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield interrupts
        return
    handler = before

    def note(number: int, frame: FrameType | None) -> None:
        interrupts.came = True
        handler(number, frame)

    with handling({signal.SIGINT: note}):
        yield interrupts


@dataclass(slots=True)
class Limit:
    """Whether the time is over, and whether the user asked for an end."""

    passed: bool = False
    by_user: bool = False

    def within(self, seconds: float, work: Callable[[], T]) -> T:
        """Do the work; it is interrupted after so many seconds: SIGINT, then again every `LINGERING_S`.

        It is called rather than put into a block: an interrupt comes from it or from nowhere, however short
        the time is, and the note of why is there before it can come. The limit is SIGALRM (setitimer(2)).
        Raises KeyboardInterrupt, if the work lets it pass.
        """
        is_on = True

        def pass_limit(_number: int, _frame: FrameType | None) -> None:
            if is_on:
                self.passed = True
                os.kill(os.getpid(), signal.SIGINT)

        def end(_number: int, _frame: FrameType | None) -> None:
            self.by_user = self.by_user or not self.passed
            if is_on:
                raise KeyboardInterrupt

        with handling({signal.SIGALRM: pass_limit, signal.SIGINT: end, signal.SIGTERM: end}):
            try:
                signal.setitimer(signal.ITIMER_REAL, max(SHORTEST_S, seconds), LINGERING_S)
                return work()
            finally:
                is_on = False
                signal.setitimer(signal.ITIMER_REAL, 0)
