"""The paths in a run's folder on a machine, beside the run directory itself."""

from pathlib import Path

SOCKET = "supervisor.sock"
"""Where the supervisor listens; gone when it has ended."""
STATE = "supervisor.json"
"""Its process (`pid`, `started_ticks` of /proc/PID/stat), so that nobody takes another one for it."""
LOG = "supervisor.log"
LOCAL = frozenset({SOCKET, STATE, ".reserve"})
"""Files that are of no use elsewhere."""

SOCKET_PATH_BYTES_MAX = 107  # unix(7)


def started_ticks(pid: int) -> int | None:
    """When a process was started, in clock ticks since boot (proc(5), field 22); None if there is
    none.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    return int(stat.rpartition(")")[2].split()[19])
