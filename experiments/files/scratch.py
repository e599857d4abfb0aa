"""Temporary folders that are removed when their process ends, even if it is killed.

A small helper process waits until a pipe from this process closes, then removes the folder. If it is killed
too, or the machine stops, the next folder of the same kind removes the remains: a process locks its folder
while it runs, so a folder that can be locked is stale.
"""

import contextlib
import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from experiments.child_python import program_command
from experiments.files.locks import LockHeldError, folder_lock

_TRIES: Final = 10
_NAME_BYTES: Final = 5
_REMOVER: Final = """
import shutil, sys
sys.stdin.buffer.read()
shutil.rmtree(sys.argv[1], ignore_errors=True)
"""


@contextlib.contextmanager
def scratch(prefix: str, inside: Path) -> Iterator[Path]:
    """Create a temporary folder below `inside` for the length of the block; first remove stale ones.

    prefix: with which only names of this kind begin. Raises OSError.
    """
    _remove_left_over(prefix, inside)
    with contextlib.ExitStack() as stack:
        folder, owner = inside / f"{prefix}{secrets.token_hex(_NAME_BYTES)}", os.getpid()
        remover = _remover(folder)  # first: this process may be ended as soon as there is a folder
        try:
            _make(folder, stack)
            yield folder
        finally:
            if os.getpid() == owner:  # a forked child also gets here
                remover.communicate()
                shutil.rmtree(folder, ignore_errors=True)  # in case the remover was killed


def _make(folder: Path, stack: contextlib.ExitStack) -> None:
    """Create a folder and lock it until the stack is closed."""
    for _ in range(_TRIES):
        folder.mkdir(0o700)
        with contextlib.suppress(FileNotFoundError), contextlib.ExitStack() as locked:
            locked.enter_context(folder_lock(folder, wait=True, needed=False))
            if folder.exists():  # no other process removed it as stale before the lock
                stack.push(locked.pop_all())
                return
    raise FileNotFoundError(f"{folder} is removed as soon as it is created")


def _remover(folder: Path) -> "subprocess.Popen[bytes]":
    """Start a process that removes a folder when its standard input ends.

    It has its own session, so that signals to this one, such as Ctrl-C, do not end it.
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
            contextlib.suppress(OSError, LockHeldError),  # another user's, in use, or being removed
            folder_lock(folder, wait=False) as lock,
        ):
            if os.fstat(lock).st_uid == os.geteuid():
                shutil.rmtree(folder)  # follows no symbolic link
