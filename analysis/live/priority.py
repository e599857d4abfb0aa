"""Lowers the priority of the processes that watch a run, so that they use mostly idle CPU time.

If the kernel groups sessions, a nice value counts only within its session (sched(7), "The autogroup
feature"), so the group's nice value is set too. A nice value belongs to a thread (setpriority(2), "C
library/kernel differences"), and its children inherit it.
"""

import contextlib
import os
from pathlib import Path

NICE = 5
AUTOGROUP = Path("/proc/self/autogroup")


def lower_priority() -> None:
    """Lower the priority of all threads of this process's session, whose leader it must be."""
    with contextlib.suppress(OSError):  # kernels without autogroups have no such file
        AUTOGROUP.write_text(str(NICE))
    session = os.getsid(0)
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):  # it has ended
            if os.getsid(int(process.name)) == session:
                for thread in (process / "task").iterdir():
                    _lower(int(thread.name))


def _lower(thread: int) -> None:
    with contextlib.suppress(OSError):  # it has ended, or the kernel permits no change
        os.setpriority(os.PRIO_PROCESS, thread, max(NICE, os.getpriority(os.PRIO_PROCESS, thread)))
