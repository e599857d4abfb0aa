"""A limit on every wait for the controller, as part of programs that are sent to machines.

sshd may notice only hours later that a controller lost power; until then its end of the pipe stays open.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def limited(limit_s: float) -> Iterator[None]:
    """Let the kernel end this process if the block takes longer (setitimer(2))."""
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
