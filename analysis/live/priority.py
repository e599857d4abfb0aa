"""Keeps what watches a run behind what runs: its processes get processor time that nobody else wants, nearly.

A nice value counts only within a session where the kernel groups sessions (sched(7), "The autogroup
feature"), so that of the group is set, too. It is a thread's own (setpriority(2), "C library/kernel
differences"), and what a thread starts inherits it.
"""

import contextlib
import os
from pathlib import Path

NICE = 5
AUTOGROUP = Path("/proc/self/autogroup")


def stand_back() -> None:
    """Lower the priority of this process' session, whose leader it must be: of all threads that there are."""
    with contextlib.suppress(OSError):  # kernels without autogroups have no such file
        AUTOGROUP.write_text(str(NICE))
    session = os.getsid(0)
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended meanwhile
            if os.getsid(int(process.name)) == session:
                for thread in (process / "task").iterdir():
                    _lower(int(thread.name))


def _lower(thread: int) -> None:
    with contextlib.suppress(OSError):  # it has ended, or is as nice as the kernel lets us make it
        os.setpriority(os.PRIO_PROCESS, thread, max(NICE, os.getpriority(os.PRIO_PROCESS, thread)))
