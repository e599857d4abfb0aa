"""Calls of the C library that Python lacks, among them setns(2) to enter a network namespace."""

import ctypes
import os
from pathlib import Path

CLONE_NEWNET = 0x40000000  # sched.h
libc = ctypes.CDLL(None, use_errno=True)


def check(result: int, doing: str) -> None:
    """Raise OSError if a call failed."""
    if result != 0:
        error = ctypes.get_errno()
        raise OSError(error, f"cannot {doing}: {os.strerror(error)}")


def enter_network(netns: str) -> None:
    """Move the calling thread into the network namespace at this path permanently. Raises OSError."""
    with Path(netns).open("rb") as namespace:
        check(libc.setns(namespace.fileno(), CLONE_NEWNET), f"enter the network namespace {netns}")
