"""Temporary files in a tmpfs that is mounted only briefly in the sandbox, so that none remains on the
machine.

Files that are bound elsewhere or open last as long as their users, so that nothing is left, however the
sandbox ends.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from node.programs.host_view import MS_BIND, MS_REC, mount
from node.tcp.libc import check, libc
from testbed.errors import MachineError

PASSING_MOUNT = Path("/sys/kernel")
"""A folder of the sandbox's own /sys, which can be hidden by a temporary mount for a moment."""
MNT_DETACH = 2  # umount2(2)
MS_REMOUNT = 0x20  # mount(2)


@contextmanager
def passing_mount() -> Iterator[Path]:
    """Yield an empty folder, which is nowhere when the block ends. Raises MachineError."""
    with _refused():
        mount("cutset", PASSING_MOUNT, "tmpfs", 0, "mode=755")
    try:
        yield PASSING_MOUNT
    finally:
        with _refused():
            check(libc.umount2(str(PASSING_MOUNT).encode(), MNT_DETACH), f"unmount {PASSING_MOUNT}")


def bind(file: Path, target: Path) -> None:
    """Bind a file to another path. Raises MachineError."""
    with _refused():
        mount(str(file), target, None, MS_BIND)


def mount_tmpfs(path: Path, size_bytes: int, *, resize: bool = False) -> None:
    """Mount a tmpfs at this path, or change its size. Raises OSError."""
    mount("tmpfs", path, "tmpfs", MS_REMOUNT if resize else 0, f"size={size_bytes},mode=755")


def mount_tmpfs_anywhere(path: Path, size_bytes: int) -> None:
    """Mount a tmpfs at the path of a folder that may be missing, and that is then not made on the machine.

    If it is missing, its parent becomes a tmpfs, too, with its own entries bound into it. Raises OSError.
    """
    if not path.is_dir():
        parent = path.parent
        mode = stat.S_IMODE(parent.stat().st_mode)
        entries = list(parent.iterdir())
        with _opened(parent, os.O_PATH) as hidden:
            mount("tmpfs", parent, "tmpfs", 0, f"mode={mode:o}")
            for each in entries:
                with (
                    suppress(FileNotFoundError),  # it has just been removed
                    _opened(each.name, os.O_PATH | os.O_NOFOLLOW, hidden) as descriptor,
                ):
                    _bind_at(each, descriptor)
        path.mkdir()
    mount_tmpfs(path, size_bytes)


def _bind_at(path: Path, descriptor: int) -> None:
    """Bind an opened file or folder at a path; repeat a symbolic link."""
    mode = os.fstat(descriptor).st_mode
    if stat.S_ISLNK(mode):
        path.symlink_to(os.readlink("", dir_fd=descriptor))
        return
    if stat.S_ISDIR(mode):
        path.mkdir()
    else:
        path.touch()
    mount(f"/proc/self/fd/{descriptor}", path, None, MS_BIND | MS_REC)


@contextmanager
def _opened(path: Path | str, flags: int, folder: int | None = None) -> Iterator[int]:
    descriptor = os.open(path, flags, dir_fd=folder)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _refused() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise MachineError(f"a file of the run: {error.strerror}") from error
