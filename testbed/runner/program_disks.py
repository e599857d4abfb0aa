"""File systems of programs whose roles limit their storage: each a tmpfs(5) of that size, which can get full.

It is mounted in the sandbox's mount namespace before its program starts and ends with that namespace, so what
is there outlives a program, and what minds it. Full is one whose size is what is in it, by a remount: nothing
can be written then, by whomever; it is done at once and takes no memory. What a program frees, it may take up
again, as on any full disk.
"""

import ctypes
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from testbed.errors import TestbedError

ON_OWN_DISK = "library"
"""The folder of a file system that is the program's /var/lib. What is beside it, the program does not see."""
KEPT = "kept"
"""A file of one page, since a tmpfs of no size has no limit."""
ATTEMPTS_MAX = 100  # to fill, where the program writes between a look at what is used and the remount
MS_REMOUNT = 0x20  # mount(2)
PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class ProgramDisks:
    """Those of the processes with these specifications. Made by `make`; they go with the sandbox."""

    def __init__(self, specs: Mapping[str, Mapping[str, Any]]) -> None:
        self._disks = {
            name: (Path(spec["storage"]).parent, size)
            for name, spec in specs.items()
            if spec["program"] and (size := spec["program"]["program"]["limits"]["storage_bytes"]) is not None
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
