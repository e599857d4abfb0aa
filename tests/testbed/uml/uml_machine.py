"""Boots Debian's user-mode Linux on the host's file system, runs one command in it, and collects its console.

User-mode Linux is a kernel as an ordinary process, of one processor and with coarse timers. It has netem also
where the machine's kernel does not. It runs in a sandbox, so that nothing of it remains after any end.
"""

import re
import shutil
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from testbed.sandbox import run_in_sandbox
from tests.testbed.uml.guest import EXIT_LINE, encode

KERNEL = "linux.uml"
MEMORY = "1024M"
CHECKOUT = Path(__file__).resolve().parents[3]


@dataclass(frozen=True, slots=True)
class Booted:
    """The result of a command; `returncode` is None if the machine did not reach its end."""

    returncode: int | None
    console: str


def is_installed() -> bool:
    """Return whether Debian's package user-mode-linux is installed."""
    return shutil.which(KERNEL) is not None


def boot(command: Sequence[str], *, timeout_s: float) -> Booted:
    """Run a command in a fresh machine, in the checkout. Raises TimeoutError."""
    done = run_in_sandbox(kernel_line(command), timeout_s=timeout_s)
    return result_of(done.stdout)


def kernel_line(command: Sequence[str], *, memory: str = MEMORY, more: Sequence[str] = ()) -> list[str]:
    """Return the kernel's command line that runs a command in the checkout. more: for the kernel."""
    kernel = [KERNEL, f"mem={memory}", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "ro", "quiet"]
    console = ["con=null", "con0=null,fd:1"]
    init = [f"init={sys.executable}", f"PYTHONPATH={CHECKOUT}", "PYTHONDONTWRITEBYTECODE=1", "--"]
    guest = ["-m", "tests.testbed.uml.guest", encode(str(CHECKOUT), command)]
    return [*kernel, *console, *more, *init, *guest]


def result_of(console: str) -> Booted:
    """Return the result from the machine's console output."""
    ends = re.findall(re.escape(EXIT_LINE) + r"(-?\d+)", console)
    return Booted(int(ends[-1]) if ends else None, console)
