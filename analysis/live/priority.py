"""Keeps what watches a run behind what runs: its processes get processor time that nobody else wants, nearly.

A nice value counts only within a session where the kernel groups sessions (sched(7), "The autogroup
feature"), so that of the group is set, too. Children inherit both.
"""

import contextlib
import os
from pathlib import Path

NICE = 5
AUTOGROUP = Path("/proc/self/autogroup")


def stand_back() -> None:
    """Lower this process' priority, and that of its session, whose leader it must be."""
    with contextlib.suppress(OSError):  # the kernel may not let us: then it is as nice as it can be
        os.setpriority(os.PRIO_PROCESS, 0, max(NICE, os.getpriority(os.PRIO_PROCESS, 0)))
    with contextlib.suppress(OSError):  # kernels without autogroups have no such file
        AUTOGROUP.write_text(str(NICE))
