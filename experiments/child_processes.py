"""Children that end when their parent ends, even by `kill -9`.

Each asks the kernel for a signal at its parent's death (prctl(2), PR_SET_PDEATHSIG). So no child keeps the
locks, sockets and folders of a command that is gone. The kernel sends it when the *thread* that started the
child ends: start children from a thread that lives as long as they do.

What a sandbox starts ends with the sandbox (`testbed.sandbox`), and nodes with their launcher (`node.tcp`).
"""

import ctypes
import os
import signal
import subprocess
from collections.abc import Callable, Sequence
from typing import Any

PR_SET_PDEATHSIG = 1  # prctl(2)
_libc = ctypes.CDLL(None)


def end_with_parent(parent: int, number: signal.Signals = signal.SIGKILL) -> None:
    """Called in a new child: send it this signal when its parent ends; at once if it has ended already.

    parent: the process id of the one that started this process.
    """
    _libc.prctl(PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def ending_with_us(number: signal.Signals = signal.SIGKILL) -> Callable[[], None]:
    """For `preexec_fn` of subprocess: the program gets this signal when the process that calls this ends."""
    parent = os.getpid()
    return lambda: end_with_parent(parent, number)


def start(
    command: Sequence[str], *, at_our_end: signal.Signals = signal.SIGKILL, **options: Any
) -> "subprocess.Popen[Any]":
    """Start a program that gets the signal `at_our_end` when this process ends.

    options: as of `subprocess.Popen`. Raises OSError.
    """
    return subprocess.Popen(command, preexec_fn=ending_with_us(at_our_end), **options)  # noqa: PLW1509


def run(command: Sequence[str], **options: Any) -> "subprocess.CompletedProcess[Any]":
    """Run a program to its end; it is killed when this process ends. options: as of `subprocess.run`.

    Raises as `subprocess.run` does.
    """
    return subprocess.run(command, preexec_fn=ending_with_us(), **options)  # noqa: PLW1510
