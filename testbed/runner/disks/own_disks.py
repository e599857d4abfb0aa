"""File systems of processes' own: of programs whose roles limit their storage, and of nodes whose disks the
plan fills. Each is a tmpfs(5) of a size, which can get full.

It is mounted in the sandbox's mount namespace before its process starts and ends with that namespace, so what
is there outlives a process, and what minds it. Full is one whose size is what is in it, by a remount: nothing
can be written then, by whomever; it is done at once and takes no memory. What a process frees, it may take up
again, as on any full disk.
"""

import ctypes
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from experiments.planned.changes import ProcessAction, ProcessChange
from experiments.planned.plan import Plan
from testbed.errors import TestbedError

ON_OWN_DISK = "library"
"""The folder of a file system that is a program's /var/lib, or a node's storage. What is beside it, it does
not see.
"""
NODE_DISK_BYTES = 1 << 30
"""Of a node's: what it writes there takes memory."""
KEPT = "kept"
"""A file of one page, since a tmpfs of no size has no limit."""
ATTEMPTS_MAX = 100  # to fill, where the program writes between a look at what is used and the remount
MS_REMOUNT = 0x20  # mount(2)
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


def own_disks(plan: Plan) -> dict[str, int]:
    """The sizes of the file systems of processes' own, in bytes, by process."""
    if plan.programs is not None:
        limits = {role: program.limits.storage_bytes for role, program in plan.programs.roles.items()}
        return {
            process.name: size for process in plan.processes if (size := limits[process.role]) is not None
        }
    changes = (each for each in plan.changes if isinstance(each, ProcessChange))
    return {each.process: NODE_DISK_BYTES for each in changes if each.action is ProcessAction.FILL}


class OwnDisks:
    """Those of the processes with these specifications. Made by `make`; they go with the sandbox.

    sizes: of `own_disks`.
    """

    def __init__(self, specs: Mapping[str, Mapping[str, Any]], sizes: Mapping[str, int]) -> None:
        self._disks = {
            name: (Path(spec["storage"]).parent, sizes[name]) for name, spec in specs.items() if name in sizes
        }
        self._filled: dict[str, set[str]] = {name: set() for name in self._disks}  # by which faults

    def make(self) -> None:
        """Mount them all. Raises TestbedError."""
        for name, (path, size_bytes) in self._disks.items():
            path.mkdir(parents=True, exist_ok=True)
            try:
                _mount(path, size_bytes + PAGE_BYTES, 0)
                (path / KEPT).write_bytes(bytes(PAGE_BYTES))
            except OSError as error:
                raise TestbedError(f"cannot make a file system for {name}: {error.strerror}") from None

    def fill(self, name: str, fault: str) -> None:
        """Leave no room on a process's file system until `fault` is over. Raises TestbedError."""
        if name not in self._disks:
            raise TestbedError(f"{name} has no file system of its own")
        path, _ = self._disks[name]
        for attempt in range(1, ATTEMPTS_MAX + 1):
            there = os.statvfs(path)
            try:
                _mount(path, (there.f_blocks - there.f_bfree) * there.f_frsize, MS_REMOUNT)
                break
            except OSError as error:
                if attempt == ATTEMPTS_MAX:
                    raise TestbedError(f"cannot fill its file system: {error.strerror}") from None
        self._filled[name].add(fault)

    def free(self, name: str, fault: str | None) -> None:
        """There is room again, unless another fault leaves none. Raises TestbedError."""
        if name not in self._disks:
            return
        self._filled[name] -= {fault}
        if self._filled[name]:
            return
        path, size_bytes = self._disks[name]
        try:
            _mount(path, size_bytes + PAGE_BYTES, MS_REMOUNT)
        except OSError as error:
            raise TestbedError(f"cannot make room on its file system: {error.strerror}") from None

    def free_all(self, name: str) -> None:
        """There is room again on a process's file system, if it has one. Raises TestbedError."""
        if name in self._disks:
            self._filled[name].clear()
            self.free(name, None)


def _mount(path: Path, size_bytes: int, flags: int) -> None:
    """A tmpfs at this path, or its size. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    options = f"size={size_bytes},mode=755".encode()
    if libc.mount(b"tmpfs", str(path).encode(), b"tmpfs", ctypes.c_ulong(flags), options) != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
