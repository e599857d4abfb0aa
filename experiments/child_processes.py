"""Children that end when their parent ends, even by `kill -9`.

Each child asks the kernel for a signal at its parent's death (prctl(2), PR_SET_PDEATHSIG), so that no child
keeps the locks, sockets and folders of a command that has ended. The kernel sends the signal when the
*thread* that started the child ends: start children from a thread that runs at least as long as they do.

Processes in a sandbox end with the sandbox (`testbed.sandbox`), and nodes with their launcher (`node.tcp`).
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
    """Request a signal for this new child at its parent's end, and send it now if the parent has ended.

    Call it in the child. parent: the process id of the parent.
    """
    _libc.prctl(PR_SET_PDEATHSIG, int(number), 0, 0, 0)
    if os.getppid() != parent:
        os.kill(os.getpid(), number)


def ending_with_us(number: signal.Signals = signal.SIGKILL) -> Callable[[], None]:
    """Return a `preexec_fn` for subprocess that signals the child when the calling process ends."""
    parent = os.getpid()
    return lambda: end_with_parent(parent, number)


def start(
    command: Sequence[str], *, at_our_end: signal.Signals = signal.SIGKILL, **options: Any
) -> "subprocess.Popen[Any]":
    """Start a program that gets the signal `at_our_end` when this process ends.

    options: those of `subprocess.Popen`. Raises OSError.
    """
    return subprocess.Popen(command, preexec_fn=ending_with_us(at_our_end), **options)  # noqa: PLW1509


def run(command: Sequence[str], **options: Any) -> "subprocess.CompletedProcess[Any]":
    """Run a program to its end; kill it when this process ends.

    options: those of `subprocess.run`. Raises as `subprocess.run` does.
    """
    return subprocess.run(command, preexec_fn=ending_with_us(), **options)  # noqa: PLW1510
