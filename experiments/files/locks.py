"""Locks on files and folders, which the kernel lets go of however their holder ends.

A file's lock is between processes (fcntl(2), F_SETLK): within one it keeps nobody away, and processes that
were forked do not have it. The file says who has it, for people. A folder's lock is between whoever opened
it (flock(2)), and processes that were forked have it, too; who has it is looked up in /proc/locks.

Some file systems have no locks (of folders: NFS, which makes byte ranges of them; of anything: some of FUSE).
"""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from experiments.files.plain_name import refuse_link
from experiments.files.sanitize import sanitize

NOTE_BYTES_MAX = 200
COMMAND_CHARACTERS_MAX = 100
NO_LOCKS: Final = frozenset(
    {errno.ENOLCK, errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL, errno.EBADF, errno.EISDIR}
)
"""What locking fails with where there are none; EBADF: NFS, of a folder, which is not open for writing."""


class HeldError(Exception):
    """Somebody else has the lock; its text is who, if that is known."""


@contextmanager
def file_lock(path: Path, *, who: str) -> Iterator[None]:
    """Have the lock on a file, which is made and stays.

    who: what to tell others, in a few words. Raises HeldError, InputError for a link, by which another file
    would be written, and OSError if the file cannot be written, or not be locked.
    """
    refuse_link(path)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
    try:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):  # fcntl(2) leaves it open which
            other = os.pread(descriptor, NOTE_BYTES_MAX, 0).decode(errors="replace")
            raise HeldError(sanitize(other).strip() or "unknown") from None
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
    """Have the lock on a folder; yields a descriptor of it.

    wait: until nobody else has it. shared: with others that share it. needed: whether to fail where the file
    system has no locks, rather than to go on without. Raises HeldError if it may not wait, and OSError.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        how = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        try:
            fcntl.flock(descriptor, how if wait else how | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HeldError(_holder(descriptor)) from None
        except OSError as error:
            if needed or error.errno not in NO_LOCKS:
                raise _explained(error, folder) from None
        yield descriptor
    finally:
        os.close(descriptor)


def _explained(error: OSError, path: Path) -> OSError:
    if error.errno not in NO_LOCKS:
        return error
    return OSError(error.errno, "its file system has no locks: take a folder on another one", str(path))


def _holder(descriptor: int) -> str:
    """Who has the lock on a folder, by proc(5): its process, and the command if it may be seen."""
    found = os.fstat(descriptor)
    inode = f"{os.major(found.st_dev):02x}:{os.minor(found.st_dev):02x}:{found.st_ino}"
    try:
        locks = [line.split() for line in Path("/proc/locks").read_text().splitlines()]
        process = next((fields[4] for fields in locks if fields[1] == "FLOCK" and fields[5] == inode), "0")
        if process == "0":  # of another PID namespace
            return "unknown"
        words = Path(f"/proc/{process}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except (OSError, IndexError):  # it has ended meanwhile, or is not for us to see
        return "unknown"
    command = sanitize(" ".join([Path(words[0]).name, *words[1:]])).strip()
    return f"process {process}, `{command[:COMMAND_CHARACTERS_MAX]}`" if command else f"process {process}"
