"""Locks on files and folders, which the kernel releases however their holder ends.

A file's lock works between processes (fcntl(2), F_SETLK): it does not exclude threads of one process, and a
forked process does not inherit it. The file names its holder, for users. A folder's lock belongs to an open
file description (flock(2)), which forked processes share; its holder is looked up in /proc/locks.

Some file systems have no locks (on folders: NFS, which maps them to byte ranges; at all: some FUSE file
systems).
"""

import errno
import fcntl
import os
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path
from typing import Final

from experiments.files.plain_name import refuse_link
from experiments.files.sanitize import sanitize

NOTE_BYTES_MAX = 200
COMMAND_CHARACTERS_MAX = 100
LOOK_S = 0.02
NO_LOCKS: Final = frozenset(
    {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EBADF, errno.EISDIR}
)
"""Errors of locking where locks are not supported; EBADF: a folder on NFS, which is not open for writing."""


class LockHeldError(Exception):
    """Another process holds the lock; the text names it, if known."""


@contextmanager
def file_lock(path: Path, *, who: str) -> Iterator[None]:
    """Hold the lock on a file, which is created and stays.

    who: a short name of the holder, for users. Raises HeldError, InputError for a symbolic link (another file
    would be written), and OSError if the file cannot be written or locked.
    """
    refuse_link(path)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):  # fcntl(2) allows either
            other = os.pread(descriptor, NOTE_BYTES_MAX, 0).decode(errors="replace")
            raise LockHeldError(sanitize(other).strip() or "unknown") from None
        except OSError as error:
            raise _explained(error, path) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{who}, process {os.getpid()}\n".encode(), 0)
        try:
            yield
        finally:
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)


@contextmanager
def folder_lock(folder: Path, *, wait: bool, shared: bool = False, needed: bool = True) -> Iterator[int]:
    """Hold the lock on a folder and yield a descriptor of it.

    wait: wait until it is free. shared: hold it together with others that share it. needed: raise an error if
    the file system has no locks, instead of continuing without. Raises HeldError if it may not wait, and
    OSError.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        try:
            fcntl.flock(descriptor, how if wait else how | fcntl.LOCK_NB)
        except BlockingIOError:
            raise LockHeldError(_holder(descriptor)) from None
        except OSError as error:
            if needed or error.errno not in NO_LOCKS:
                raise _explained(error, folder) from None
        yield descriptor
    finally:
        os.close(descriptor)


def enter_when_free(
    stack: ExitStack,
    lock: Callable[[], AbstractContextManager[object]],
    until_s: float,
    on_wait: Callable[[LockHeldError], object] = lambda error: None,
) -> None:
    """Enter a lock as soon as it is free.

    until_s: when to give up, by time.monotonic. on_wait: called repeatedly while another process holds the
    lock. Raises LockHeldError, and the other errors of the lock.
    """
    while True:
        try:
            stack.enter_context(lock())
        except LockHeldError as error:
            if time.monotonic() >= until_s:
                raise
            on_wait(error)
            time.sleep(LOOK_S)
        else:
            return


def _explained(error: OSError, path: Path) -> OSError:
    if error.errno not in NO_LOCKS:
        return error
    return OSError(error.errno, "its file system has no locks: use a folder on another one", str(path))


def _holder(descriptor: int) -> str:
    """Return the holder of the lock on a folder, by proc(5): its process, and the command if readable."""
    found = os.fstat(descriptor)
    inode = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    try:
        locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        process = next((fields[4] for fields in locks if fields[1] == "FLOCK" and fields[5] == inode), "0")
        if process == "0":  # in another PID namespace
            return "unknown"
        words = Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except (OSError, IndexError):  # the holder has ended, or /proc hides it
        return "unknown"
    command = sanitize(" ".join([Path(words[0]).name, *words[1:]])).strip()
    return f"process {process}, `{command[:COMMAND_CHARACTERS_MAX]}`" if command else f"process {process}"
