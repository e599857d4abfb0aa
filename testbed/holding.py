"""A file that somebody holds while they work on what stands beside it, and that says who, for people.

The kernel has the lock (fcntl(2), F_SETLK): it goes with whoever had it, however that ended, and processes
that were forked do not have it. It is between processes: within one, it keeps nobody away.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

NOTE_BYTES_MAX = 200


class HeldError(Exception):
    """Somebody else holds the file; its text is who."""


@contextmanager
def holding(path: Path, *, who: str) -> Iterator[None]:
    """Hold a file, which is made and stays.

    who: what to tell others, in a few words. Raises HeldError, and OSError if the file cannot be written.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except (BlockingIOError, PermissionError):  # fcntl(2) leaves it open which
            other = os.pread(descriptor, NOTE_BYTES_MAX, 0).decode(errors="replace").strip()
            raise HeldError(other or "unknown") from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{who}, process {os.getpid()}\n".encode(), 0)
        try:
            yield
        finally:
            os.ftruncate(descriptor, 0)
    finally:
        os.close(descriptor)
