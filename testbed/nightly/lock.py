"""One night at a time: a lock on the history that nights are written to.

The kernel holds it (fcntl(2), F_SETLK), so it goes with whoever had it, however that ended; processes
that were forked do not have it. The file says who has it, for people.
"""

import fcntl
import os
from pathlib import Path
from types import TracebackType
from typing import Self

from testbed.errors import MachineError

NAME = "nightly.lock"


class NightLock:
    """The lock of a history. A context manager; entering raises MachineError if somebody else has it."""

    def __init__(self, history: Path, *, who: str) -> None:
        """who: what to tell others, in a few words."""
        self._path = history / NAME
        self._who = who
        self._descriptor: int | None = None

    def __enter__(self) -> Self:
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        except OSError as error:
            raise MachineError(f"cannot write the history {self._path.parent}: {error.strerror}") from error
        try:
            fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            other = os.pread(descriptor, 200, 0).decode(errors="replace").strip()
            os.close(descriptor)
            raise MachineError(
                f"another night is on in {self._path.parent}: {other or 'unknown'}; "
                "wait until it is over, or give --history another folder"
            ) from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{self._who}, process {os.getpid()}\n".encode(), 0)
        self._descriptor = descriptor
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None
