"""Locks on files and folders, which the kernel lets go of however their holder ends.

A file's lock is between processes (fcntl(2), F_SETLK): within one it keeps nobody away, and processes that
were forked do not have it. The file says who has it, for people. A folder's lock is between whoever opened
it (flock(2)), and processes that were forked have it, too.
"""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from experiments.plain_name import refuse_link

NOTE_BYTES_MAX = 200


class HeldError(Exception):
    """Somebody else has the lock; its text is who, if that is known."""


@contextmanager
def file_lock(path: Path, *, who: str) -> Iterator[None]:
    """Have the lock on a file, which is made and stays.

    who: what to tell others, in a few words. Raises HeldError, InputError for a link, by which another file
    would be written, and OSError if the file cannot be written.
    """
    refuse_link(path)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
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


@contextmanager
def folder_lock(folder: Path, *, wait: bool) -> Iterator[int]:
    """Have the lock on a folder; yields a descriptor of it.

    wait: until nobody else has it. Raises HeldError if it may not wait, and OSError.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise HeldError("unknown") from None
        yield descriptor
    finally:
        os.close(descriptor)
