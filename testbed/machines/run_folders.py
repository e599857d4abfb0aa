"""The folders of runs on a machine and their supervisors' files, as part of a program that is sent there.

A run's folder is *in use* while its controller is connected to its supervisor, *held* while only the
supervisor runs, which waits for the controller until the lease expires, and *left* afterwards. Folders that
another user could change are not read.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from testbed.machines.software.trusted_folders import is_trusted

IN_USE, HELD, LEFT = "in use", "held", "left"
SOCKET = "supervisor.sock"
"""The supervisor's socket; removed when it ends."""
SOCKET_PATH_BYTES_MAX = 107  # unix(7)
STATE = "supervisor.json"
"""Its process (`pid`, `started_ticks` of /proc/PID/stat), which distinguishes it from later processes."""
LOG = "supervisor.log"
LOCAL = frozenset({SOCKET, STATE})
"""Files that are not shipped."""


def agent_arguments(what: str, folder: str) -> list[str]:
    """Return the end of the command line that starts a run's supervisor or connects to it.

    what: "start" or "attach".
    """
    return ["-m", "testbed.machines.agent", what, folder]


def run_folders(folder: Path) -> list[Path]:
    """Return the folders of runs that no other user can change; `folder`: the machine's in the inventory."""
    runs = folder / "runs"
    return sorted(run for run in runs.iterdir() if is_trusted(run)) if is_trusted(runs) else []


def state(run: Path) -> str:
    """Return whether a run's folder is in use, held or left."""
    pid = supervisor(run)
    if pid is None:
        return LEFT
    return IN_USE if _attached(run, pid) else HELD


def supervisor(run: Path) -> int | None:
    """Return the process id of the run's supervisor if it runs, else None.

    Its start time and command line are checked, so a reused process id does not match; files that another
    user can change are not read.
    """
    if not is_trusted(run):
        return None
    try:
        given = json.loads((run / STATE).read_text())
        pid, ticks = int(given["pid"]), int(given["started_ticks"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return pid if started_ticks(pid) == ticks and _serves(pid, run, "start") else None


def started_ticks(pid: int) -> int | None:
    """Return a process's start time, in clock ticks since boot (proc(5), field 22); None without process."""
    fields = _status(pid)
    return int(fields[19]) if fields else None


def _status(pid: int) -> list[str]:
    """Return the fields of /proc/PID/stat after the command; [] without process."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _serves(pid: int, run: Path, *what: str) -> bool:
    """Return whether the process has the command line of the run's agent, to do one of these (proc(5))."""
    try:
        line = os.fsdecode(Path(f"/proc/{pid}/cmdline").read_bytes()).split("\0")[:-1]
        return line[-4:] in [agent_arguments(each, line[-1]) for each in what] and run.samefile(line[-1])
    except (OSError, ValueError, IndexError):
        return False


def agents(run: Path) -> list[int]:
    """Return the processes of a run's agent: its supervisor, and those that forward bytes to it."""
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208 (names are enough)
    return [pid for pid in pids if _serves(pid, run, "start", "attach")]


def size_bytes(run: Path) -> int:
    """Return the size of a run's files."""
    total = 0
    for place, _, names in os.walk(str(run)):
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_size  # noqa: PTH118 (thousands)
            except OSError:
                continue  # it was just removed
    return total


def _attached(run: Path, holder: int) -> bool:
    """Return whether a process, which a controller started, forwards its bytes to the supervisor `holder`.

    The supervisor's socket does not tell: one that hangs does not close it when the controller has gone.
    """
    return any(pid != holder and not _stopped(pid) for pid in agents(run))


def _stopped(pid: int) -> bool:
    return _status(pid)[:1] in ([], ["T"])
