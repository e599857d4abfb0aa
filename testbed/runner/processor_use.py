"""The processor time that processes have used, each with its descendants (proc_pid_stat(5)).

An ended child counts if its parent has waited for it. A daemon, which leaves its parent, does not count.
"""

import os
from collections.abc import Collection
from pathlib import Path

_PROC = Path("/proc")
_PPID, _UTIME, _CSTIME = 1, 11, 14
"""Positions among the fields after the program's name, which may contain spaces and parentheses."""


def used_s(pids: Collection[int]) -> dict[int, float]:
    """Return the processor time in seconds by pid; processes that have ended are missing."""
    ticks: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text()
        except OSError:
            continue  # it has just ended
        fields, pid = stat.rpartition(")")[2].split(), int(entry.name)
        ticks[pid] = sum(map(int, fields[_UTIME : _CSTIME + 1]))
        children.setdefault(int(fields[_PPID]), []).append(pid)
    ticks_per_s = os.sysconf("SC_CLK_TCK")
    return {pid: _all_of(pid, ticks, children) / ticks_per_s for pid in pids if pid in ticks}


def _all_of(pid: int, ticks: dict[int, int], children: dict[int, list[int]]) -> int:
    found, waiting = 0, [pid]
    while waiting:
        one = waiting.pop()
        found += ticks[one]
        waiting += children.get(one, ())
    return found
