"""Control groups of single processes (cgroups(7), versions 1 and 2).

Those who use them mount the hierarchies in their own mount namespaces, so that they do not depend on where
the machine has them. `testbed.sandbox.group_keeper` removes the groups of a run.
"""

import errno
import math
import os
import signal
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from experiments.child_python import python_command
from node.programs.host_view import mount

FOLDER = Path("/sys/fs/cgroup")
NEEDED = frozenset({"cpu", "cpuacct", "memory"})
REMEDY = "`echo +cpu +memory | sudo tee /sys/fs/cgroup/cgroup.subtree_control`"
PERIOD_US = 20_000
"""Time for which the kernel measures out processor time. Its default, 100 ms, pauses for longer."""
QUOTA_US_MIN = 1_000  # the kernel's
KEEPER = "testbed.sandbox.group_keeper"
KEEPER_ENDS_S = 70.0


def group_name(token: str, host: str) -> str:
    """Return the name of the group of a host's process in the run with this token."""
    return f"cutset-{token}-{host}"


def hierarchies(own: str) -> list[tuple[str, str]]:
    """Return the needed controllers of each hierarchy of version 1, and this process's group there.

    own: /proc/self/cgroup. Empty: the machine has version 2.
    """
    entries = (line.split(":", 2) for line in own.splitlines())
    return [(controllers, path) for _, controllers, path in entries if NEEDED & set(controllers.split(","))]


def mount_hierarchies() -> list[Path]:
    """Mount the hierarchies in this mount namespace; return the folders for new groups. Raises OSError."""
    mount("tmpfs", FOLDER, "tmpfs", 0)  # a second mount of version 2 at one place is refused
    parents = []
    for controllers, path in hierarchies(Path("/proc/self/cgroup").read_text()) or [("", "/")]:
        folder = FOLDER / (controllers or "unified")
        folder.mkdir()
        mount("cgroup", folder, "cgroup" if controllers else "cgroup2", 0, controllers)
        parents.append(folder / path.lstrip("/"))
    handed_on = parents[0] / "cgroup.subtree_control"  # of version 2
    if handed_on.exists() and (lacking := {"cpu", "memory"} - set(handed_on.read_text().split())):
        raise OSError(errno.ENOENT, f"no {' and '.join(sorted(lacking))} controller: {REMEDY}")
    return parents


class ControlGroup:
    """The group of one process and its descendants. parents: from `mount_hierarchies`. All methods raise
    OSError.
    """

    def __init__(self, parents: Sequence[Path], name: str) -> None:
        self._folders = [parent / name for parent in parents]
        self._killed = 0

    def make(self) -> None:
        """Create it, without limits and without swap."""
        for folder in self._folders:
            folder.mkdir()
        for name in ("memory.swap.max", "memory.swappiness"):
            if (path := self._find(name)) is not None:
                path.write_text("0")

    def remove(self) -> None:
        """Remove it."""
        for folder in self._folders:
            folder.rmdir()

    @property
    def entries(self) -> tuple[str, ...]:
        """The files through which a process enters it."""
        return tuple(str(folder / "cgroup.procs") for folder in self._folders)

    def limit_processor(self, share: float | None) -> None:
        """Limit it to this share of one processor, or lift the limit."""
        period_us = PERIOD_US if share is None else max(PERIOD_US, math.ceil(QUOTA_US_MIN / share))
        quota = None if share is None else round(share * period_us)
        if (path := self._find("cpu.max")) is not None:
            path.write_text(f"{'max' if quota is None else quota} {period_us}")
        else:
            self._file("cpu.cfs_period_us").write_text(str(period_us))
            self._file("cpu.cfs_quota_us").write_text(str(-1 if quota is None else quota))

    def limit_memory(self, size_bytes: int | None) -> None:
        """Limit its memory, or lift the limit. If it has more, a process in it is killed."""
        if (path := self._find("memory.max")) is not None:
            path.write_text("max" if size_bytes is None else str(size_bytes))
            return
        try:
            self._file("memory.limit_in_bytes").write_text(str(-1 if size_bytes is None else size_bytes))
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
            self._kill()  # version 1 refuses the limit instead

    def used_s(self) -> float:
        """Return the processor time that its processes have used, in seconds."""
        if (path := self._find("cpuacct.usage")) is not None:
            return int(path.read_text()) / 1e9
        return self._number("cpu.stat", "usage_usec") / 1e6

    def killed(self) -> int:
        """Return how often a process in it was killed for lack of memory."""
        name = "memory.oom_control" if self._find("memory.events") is None else "memory.events"
        return self._number(name, "oom_kill") + self._killed

    def _kill(self) -> None:
        self._killed += 1
        for pid in self._file("cgroup.procs").read_text().split():
            with suppress(ProcessLookupError):  # it has just ended
                os.kill(int(pid), signal.SIGKILL)

    def _find(self, name: str) -> Path | None:
        return next((path for folder in self._folders if (path := folder / name).exists()), None)

    def _file(self, name: str) -> Path:
        path = self._find(name)
        if path is None:
            raise OSError(errno.ENOENT, f"control groups here lack {name}")
        return path

    def _number(self, file: str, key: str) -> int:
        lines = (line.split() for line in self._file(file).read_text().splitlines())
        return next((int(value) for name, value in lines if name == key), 0)


class Keeper:
    """The process that removes a run's groups after it, however it ends: a context manager."""

    def __init__(self, token: str) -> None:
        self._command = python_command(KEEPER, token)
        self._process: subprocess.Popen[str] | None = None
        self.problem = ""

    def __enter__(self) -> "Keeper":
        """Start it; `problem` says why there can be no groups."""
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, text=True
        )
        assert self._process.stdout is not None
        self.problem = self._process.stdout.readline().strip()
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.communicate(timeout=KEEPER_ENDS_S)


def why_no_groups() -> str | None:
    """Return why processes cannot have control groups here, or None."""
    with Keeper("probe") as keeper:
        return keeper.problem or None
