"""Temporary folders that go even if their process is killed: when the next one of their kind is made.

Each is locked (flock(2)) for as long as its process lives, so that whoever can lock one knows that it is left
over.
"""

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

_TRIES: Final = 10


@contextlib.contextmanager
def scratch(prefix: str, inside: Path) -> Iterator[Path]:
    """A temporary folder below `inside`, for the length of this block; those left over go first.

    prefix: what names of its kind begin with, and no others. Raises OSError.
    """
    _remove_left_over(prefix, inside)
    (folder, lock), owner = _made(prefix, inside), os.getpid()
    try:
        yield folder
    finally:
        if os.getpid() == owner:  # a child that was forked ends here too
            shutil.rmtree(folder, ignore_errors=True)  # whatever stays is left over
        os.close(lock)


def _made(prefix: str, inside: Path) -> tuple[Path, int]:
    """A new folder and its lock."""
    for _ in range(_TRIES):
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=inside))
        with contextlib.suppress(FileNotFoundError):
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(lock, fcntl.LOCK_EX)
            if folder.exists():
                return folder, lock
            os.close(lock)  # somebody took it for left over, before it was locked
    raise FileNotFoundError(f"{inside}: folders {prefix}* vanish as soon as they are made")


def _remove_left_over(prefix: str, inside: Path) -> None:
    for folder in inside.glob(f"{prefix}*"):
        with contextlib.suppress(OSError):  # another user's, or in use, or somebody else removes it
            lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(lock).st_uid == os.geteuid():
                    shutil.rmtree(folder)
            finally:
                os.close(lock)
