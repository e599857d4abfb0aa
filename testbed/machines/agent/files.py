"""The paths in a run's folder on a machine, beside the run directory itself."""

from pathlib import Path

SOCKET = "supervisor.sock"
"""The supervisor's socket; removed when it ends."""
STATE = "supervisor.json"
"""Its process (`pid`, `started_ticks` of /proc/PID/stat), which distinguishes it from later processes."""
LOG = "supervisor.log"
LOCAL = frozenset({SOCKET, STATE})
"""Files that are not shipped."""

SOCKET_PATH_BYTES_MAX = 107  # unix(7)


def started_ticks(pid: int) -> int | None:
    """Return a process's start time, in clock ticks since boot (proc(5), field 22); None without process."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[19])
