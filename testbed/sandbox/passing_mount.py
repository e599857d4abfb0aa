"""Files without a place on the machine: in a tmpfs that is mounted for a moment in the sandbox.

Files that are bound elsewhere or open last as long as their users, so that nothing is left, however the
sandbox ends.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from node.programs.host_view import MS_BIND, mount
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
    """Let a file stand at another path. Raises MachineError."""
    with _refused():
        mount(str(file), target, None, MS_BIND)


def mount_tmpfs(path: Path, size_bytes: int, *, resize: bool = False) -> None:
    """Mount a tmpfs at this path, or change its size. Raises OSError."""
    mount("tmpfs", path, "tmpfs", MS_REMOUNT if resize else 0, f"size={size_bytes},mode=755")


@contextmanager
def _refused() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise MachineError(f"a file of the run: {error.strerror}") from error
