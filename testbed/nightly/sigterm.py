"""Whether a night was told to end by SIGTERM, as systemd and CI systems do, and not by a user's Ctrl-C.

Handlers come and go while a night goes on; Python also writes each signal's number into a pipe, whichever
handler it has (signal.set_wakeup_fd).
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import NoReturn

SIGNALS_MAX = 4096
"""That are looked at: enough for anybody's patience."""


@contextmanager
def sigterm_like_ctrl_c() -> Iterator[Callable[[], bool]]:
    """Let SIGTERM interrupt what goes on inside, in the main thread. Yields whether it has come so far."""
    reading, writing = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    handler = signal.signal(signal.SIGTERM, _interrupt)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    heard = bytearray()

    def came() -> bool:
        with suppress(BlockingIOError):  # none came since the last look
            heard.extend(os.read(reading, SIGNALS_MAX))
        return signal.SIGTERM in heard

    try:
        yield came
    finally:
        signal.set_wakeup_fd(before)
        signal.signal(signal.SIGTERM, handler)
        os.close(reading)
        os.close(writing)


def _interrupt(_number: int, _frame: FrameType | None) -> NoReturn:
    raise KeyboardInterrupt
