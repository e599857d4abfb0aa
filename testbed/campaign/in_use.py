"""Locks on a run or a sweep: one command makes or analyses it, or several commands read it.

The lock is on the directory itself (`experiments.files.locks`) and is released when its command ends. On file
systems without locks, commands do not exclude each other.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from experiments.files.locks import LockHeldError, enter_when_free, folder_lock
from experiments.records.run_record import RunPhase
from experiments.records.rundir import RunDirectory
from testbed.errors import MachineError
from topologies.errors import InputError

PATIENCE_S = 1.0
"""How long to wait for commands that only test the lock."""


@contextmanager
def sole_writer(folder: Path, patience_s: float = PATIENCE_S) -> Iterator[None]:
    """Keep other commands from a run or sweep. Raises MachineError if one holds it after `patience_s`."""
    with _locked(folder, shared=False, doing="is using it", patience_s=patience_s):
        yield


@contextmanager
def reading(*folders: Path) -> Iterator[None]:
    """Keep other commands from changing these runs or sweeps. Raises MachineError if one is changed now."""
    with ExitStack() as stack:
        for folder in folders:
            stack.enter_context(_locked(folder, shared=True, doing="makes or analyses it"))
        yield


def is_over(folder: Path) -> bool:
    """Return whether a run or sweep has begun and no command is making or analysing it."""
    try:
        with folder_lock(folder, wait=False, shared=True, needed=False):
            pass
    except (LockHeldError, OSError):
        return False
    run = RunDirectory(folder)
    try:
        return not run.run_json.is_file() or _has_begun(run)
    except InputError:  # the caller that reads it reports this
        return True


def _has_begun(run: RunDirectory) -> bool:
    record = run.read_run()
    return record.phase is not RunPhase.PLANNED or record.outcome is not None


@contextmanager
def _locked(folder: Path, *, shared: bool, doing: str, patience_s: float = PATIENCE_S) -> Iterator[None]:
    lock = partial(folder_lock, folder, wait=False, shared=shared, needed=False)
    with ExitStack() as stack:
        try:
            enter_when_free(stack, lock, time.monotonic() + patience_s)
        except LockHeldError as error:
            problem = f"another command {doing} ({error}): wait until it is over"
            raise MachineError(f"{folder}: {problem}") from None
        except OSError as error:
            raise MachineError(f"{folder} cannot be read: {error.strerror}") from None
        yield
