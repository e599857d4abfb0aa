"""Temporary folders that go with their process, even if it is killed.

A small process waits until a pipe from ours is closed, and then removes the folder. If it is killed too, or
the machine stops, the next folder of the same kind removes what is left: each is locked for as long as its
process lives, so one that can be locked is left over.
"""

import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from experiments.child_python import program_command
from experiments.files.locks import HeldError, folder_lock

_TRIES: Final = 10
_REMOVER: Final = """
import shutil, sys
sys.stdin.buffer.read()
shutil.rmtree(sys.argv[1], ignore_errors=True)
"""


@contextlib.contextmanager
def scratch(prefix: str, inside: Path) -> Iterator[Path]:
    """A temporary folder below `inside`, for the length of this block; those left over go first.

    prefix: what names of its kind begin with, and no others. Raises OSError.
    """
    _remove_left_over(prefix, inside)
    with contextlib.ExitStack() as stack:
        folder, owner = _made(prefix, inside, stack), os.getpid()
        remover = _remover(folder)
        try:
            yield folder
        finally:
            if os.getpid() == owner:  # a child that was forked ends here too
                remover.communicate()
                shutil.rmtree(folder, ignore_errors=True)  # the remover was killed


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


def _remover(folder: Path) -> "subprocess.Popen[bytes]":
    """A process that removes a folder when its standard input ends. It is in a session of its own, so that
    what ends ours, such as Ctrl-C, does not end it.
    """
    command = program_command(_REMOVER, str(folder.absolute()))
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        start_new_session=True,
    )


def _remove_left_over(prefix: str, inside: Path) -> None:
    for folder in inside.glob(f"{prefix}*"):
        with (
            contextlib.suppress(OSError, HeldError),  # another user's, or in use, or somebody else removes it
            folder_lock(folder, wait=False) as lock,
        ):
            if os.fstat(lock).st_uid == os.geteuid():
                shutil.rmtree(folder)  # which follows no link
