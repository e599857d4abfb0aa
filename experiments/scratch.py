"""Temporary folders that go even if their process is killed: when the next one of their kind is made.

Each is locked for as long as its process lives, so that whoever can lock one knows that it is left
over.
"""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from experiments.locks import HeldError, folder_lock

_TRIES: Final = 10


@contextlib.contextmanager
def scratch(prefix: str, inside: Path) -> Iterator[Path]:
    """A temporary folder below `inside`, for the length of this block; those left over go first.

    prefix: what names of its kind begin with, and no others. Raises OSError.
    """
    _remove_left_over(prefix, inside)
    with contextlib.ExitStack() as stack:
        folder, owner = _made(prefix, inside, stack), os.getpid()
        try:
            yield folder
        finally:
            if os.getpid() == owner:  # a child that was forked ends here too
                shutil.rmtree(folder, ignore_errors=True)  # whatever stays is left over


def _made(prefix: str, inside: Path, stack: contextlib.ExitStack) -> Path:
    """A new folder, locked until the stack is closed."""
    for _ in range(_TRIES):
        folder = Path(tempfile.mkdtemp(prefix=prefix, dir=inside))
        with contextlib.suppress(FileNotFoundError), contextlib.ExitStack() as locked:
            locked.enter_context(folder_lock(folder, wait=True, needed=False))
            if folder.exists():  # nobody took it for left over, before it was locked
                stack.push(locked.pop_all())
                return folder
    raise FileNotFoundError(f"{inside}: folders {prefix}* vanish as soon as they are made")


def _remove_left_over(prefix: str, inside: Path) -> None:
    for folder in inside.glob(f"{prefix}*"):
        with (
            contextlib.suppress(OSError, HeldError),  # another user's, or in use, or somebody else removes it
            folder_lock(folder, wait=False) as lock,
        ):
            if os.fstat(lock).st_uid == os.geteuid():
                shutil.rmtree(folder)  # which follows no link
