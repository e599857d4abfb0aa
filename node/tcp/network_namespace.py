"""Entering a network namespace (setns(2))."""

import ctypes
import os
from pathlib import Path

CLONE_NEWNET = 0x40000000  # sched.h
_libc = ctypes.CDLL(None, use_errno=True)


def enter(netns: str) -> None:
    """Move the calling thread into the network namespace at this path, for good. Raises OSError."""
    with Path(netns).open("rb") as namespace:
        if _libc.setns(namespace.fileno(), CLONE_NEWNET) != 0:
            error = ctypes.get_errno()
            raise OSError(error, f"cannot enter the network namespace: {os.strerror(error)}", netns)
