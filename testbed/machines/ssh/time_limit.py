"""Runs on a machine, as part of a program that is sent there: bounds every wait for the controller.

sshd may notice only hours later that a controller lost its power; until then its end of the pipe stays open.
"""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def limited(limit_s: float) -> Iterator[None]:
    """The kernel ends this process when the block takes longer (setitimer(2))."""
    signal.setitimer(signal.ITIMER_REAL, limit_s)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
