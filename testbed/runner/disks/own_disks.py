"""File systems of single processes: for programs with a storage limit and nodes whose disks the plan fills.

Each is a tmpfs(5) of limited size. It is mounted in the sandbox's mount namespace before its process starts
and ends with that namespace, so its files survive a process. To fill it, a remount reduces its size to the
used size: then no process can write. This is immediate and takes no memory. Space that a process frees can be
used again, as on any full disk.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.planned.changes import ProcessAction, ProcessChange
from experiments.planned.plan import Plan
from testbed.errors import TestbedError
from testbed.sandbox.passing_mount import mount_tmpfs

ON_OWN_DISK = "library"
"""The folder on the own file system that is a program's /var/lib, or a node's storage.

The process does not see other files of the file system.
"""
NODE_DISK_BYTES = 1 << 30
"""The size of a node's file system. Its content takes memory."""
KEPT = "kept"
"""A file of one page, because a tmpfs of size 0 has no limit."""
ATTEMPTS_MAX = 100  # to fill, if the program writes between reading the used size and the remount
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def own_disks(plan: Plan) -> dict[str, int]:
    """Return the sizes of processes' own file systems in bytes, by process."""
    if plan.programs is not None:
        limits = {role: program.limits.storage_bytes for role, program in plan.programs.roles.items()}
        return {
            process.name: size for process in plan.processes if (size := limits[process.role]) is not None
        }
    changes = (each for each in plan.changes if isinstance(each, ProcessChange))
    return {each.process: NODE_DISK_BYTES for each in changes if each.action is ProcessAction.FILL}


class OwnDisks:
    """The own file systems of the processes with these specifications. `make` creates them.

    sizes: from `own_disks`. They end with the sandbox.
    """

    def __init__(self, specs: Mapping[str, Mapping[str, Any]], sizes: Mapping[str, int]) -> None:
        self._disks = {
            name: (Path(spec["storage"]).parent, sizes[name]) for name, spec in specs.items() if name in sizes
        }
        self._filled: dict[str, set[str]] = {name: set() for name in self._disks}  # by these faults

    def make(self) -> None:
        """Mount all file systems. Raises TestbedError."""
        for name, (path, size_bytes) in self._disks.items():
            path.mkdir(parents=True, exist_ok=True)
            try:
                mount_tmpfs(path, size_bytes + PAGE_BYTES)
                (path / KEPT).write_bytes(bytes(PAGE_BYTES))
            except OSError as error:
                raise TestbedError(f"cannot make a file system for {name}: {error.strerror}") from None

    def fill(self, name: str, fault: str) -> None:
        """Fill a process's file system until `fault` is over. Raises TestbedError."""
        if name not in self._disks:
            problem = "only processes that the experiment's file fills have one"
            raise TestbedError(f"{name} has no file system of its own: {problem}")
        path, _ = self._disks[name]
        for attempt in range(1, ATTEMPTS_MAX + 1):
            there = os.statvfs(path)
            try:
                mount_tmpfs(path, (there.f_blocks - there.f_bfree) * there.f_frsize, resize=True)
                break
            except OSError as error:
                if attempt == ATTEMPTS_MAX:
                    raise TestbedError(f"cannot fill its file system: {error.strerror}") from None
        self._filled[name].add(fault)

    def free(self, name: str, fault: str | None) -> None:
        """End a fault that filled the file system; it stays full while another lasts. Raises TestbedError."""
        if name not in self._disks:
            return
        self._filled[name] -= {fault}
        if self._filled[name]:
            return
        path, size_bytes = self._disks[name]
        try:
            mount_tmpfs(path, size_bytes + PAGE_BYTES, resize=True)
        except OSError as error:
            raise TestbedError(f"cannot free its file system: {error.strerror}") from None

    def free_all(self, name: str) -> None:
        """End all faults that filled a process's file system, if it has one. Raises TestbedError."""
        if name in self._disks:
            self._filled[name].clear()
            self.free(name, None)
