"""How much processor time processes have used, each with all that it started (proc_pid_stat(5)).

What ended counts if its parent has waited for it; what left its parent, as a daemon does, does not.
"""

import os
from collections.abc import Collection
from pathlib import Path

_PROC = Path("/proc")
_PPID, _UTIME, _CSTIME = 1, 11, 14
"""Places among the fields that follow the program's name, which may have spaces and parentheses in it."""


def used_s(pids: Collection[int]) -> dict[int, float]:
    """Seconds of all processors together, by the number of the process; none of one that is gone."""
    ticks: dict[int, int] = {}
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if not entry.name.isdigit():
            continue
        try:
            stat = (entry / "stat").read_text()
        except OSError:
            continue  # it has just ended
        said, pid = stat.rpartition(")")[2].split(), int(entry.name)
        ticks[pid] = sum(map(int, said[_UTIME : _CSTIME + 1]))
        children.setdefault(int(said[_PPID]), []).append(pid)
    a_second = os.sysconf("SC_CLK_TCK")
    return {pid: _all_of(pid, ticks, children) / a_second for pid in pids if pid in ticks}


def _all_of(pid: int, ticks: dict[int, int], children: dict[int, list[int]]) -> int:
    found, waiting = 0, [pid]
    while waiting:
        one = waiting.pop()
        found += ticks[one]
        waiting += children.get(one, ())
    return found
