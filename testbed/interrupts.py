"""Early ends of work: Ctrl-C, SIGTERM (from systemd and CI systems), or a time limit.

Each raises KeyboardInterrupt in Python's main thread, the only one that receives signals. Python drops an
exception that is raised during garbage collection (in the callback of a weak reference). In that case the
signal is sent again. The interrupt is also recorded, for code that polls it.
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
"""How long a run of real processes may take to end cleanly before it is interrupted again."""
SHORTEST_S = 0.001
AGAIN_S = 0.01
SIGNALS_MAX = 4096
"""The number of received signals that are read at once."""


@contextmanager
def handling(handlers: Mapping[signal.Signals, Any]) -> Iterator[None]:
    """Handle these signals with these handlers inside the block. See signal.signal."""
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    """Handle a signal like Ctrl-C."""
    raise KeyboardInterrupt


@contextmanager
def none_dropped() -> Iterator[None]:
    """Send SIGINT again if Python drops its exception, instead of printing a traceback."""
    before = sys.unraisablehook
    again: list[threading.Timer] = []

    def take_up(dropped: Any) -> None:
        if dropped.exc_type is not KeyboardInterrupt:
            before(dropped)
            return
        while True:
            timer = threading.Timer(
                AGAIN_S, os.kill, (os.getpid(), signal.SIGINT)
            )  # after this hook has returned
            timer.daemon = True
            again.append(timer)
            try:
                timer.start()
            except KeyboardInterrupt:  # SIGINT arrived during this hook, so Python would drop it as well
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
    """Let SIGTERM interrupt the block. Yields a function that returns whether SIGTERM has arrived.

    Handlers change inside the block. Python therefore also writes each signal's number into a pipe, for any
    handler (signal.set_wakeup_fd).
    """
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    heard = bytearray()

    def came() -> bool:
        with suppress(BlockingIOError):  # no signal since the last call
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
    """Whether SIGINT has arrived."""

    came: bool = False

    def check(self) -> None:
        """Raise KeyboardInterrupt if SIGINT has arrived."""
        if self.came:
            raise KeyboardInterrupt


@contextmanager
def noted_interrupts() -> Iterator[Interrupts]:
    """Record SIGINT inside the block, besides its handler's action. Does nothing outside the main thread."""
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
    """Whether the time limit has passed, and whether the user asked for an end."""

    passed: bool = False
    by_user: bool = False

    def within(self, seconds: float, work: Callable[[], T]) -> T:
        """Run the work and interrupt it after `seconds`: SIGINT, then again every `LINGERING_S`.

        The work is a callable rather than a block, so that an interrupt can only be raised inside it, however
        short the limit is, and `passed` is set before. The limit uses SIGALRM (setitimer(2)). Raises
        KeyboardInterrupt if the work lets it pass.
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
