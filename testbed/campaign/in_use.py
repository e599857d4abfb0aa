"""Which command has a run or a sweep: one makes or analyses it, or several read it, and no others meanwhile.

The lock is on the directory itself (`experiments.files.locks`), and gone with its command. On file systems
without locks commands do not see each other.
"""

import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from experiments.files.locks import HeldError, folder_lock
from experiments.records.run_record import Phase
from experiments.records.rundir import RunDirectory
from testbed.errors import MachineError
from topologies.errors import InputError

PATIENCE_S = 1.0
"""For commands that only look whether it is in use."""
LOOK_S = 0.02


@contextmanager
def sole_writer(folder: Path, patience_s: float = PATIENCE_S) -> Iterator[None]:
    """Keep other commands from the run or sweep in a folder. Raises MachineError if one still has it after
    `patience_s`.
    """
    with _locked(folder, shared=False, doing="is at work on it", patience_s=patience_s):
        yield


@contextmanager
def reading(*folders: Path) -> Iterator[None]:
    """Keep commands that would change these runs or sweeps from them. Raises MachineError if one has one."""
    with ExitStack() as stack:
        for folder in folders:
            stack.enter_context(_locked(folder, shared=True, doing="makes or analyses it"))
        yield


def is_over(folder: Path) -> bool:
    """Whether a run or sweep has begun, and no command makes or analyses it."""
    try:
        with folder_lock(folder, wait=False, shared=True, needed=False):
            pass
    except (HeldError, OSError):
        return False
    run = RunDirectory(folder)
    try:
        return not run.run_json.is_file() or _has_begun(run)
    except InputError:  # which whoever reads it says
        return True


def _has_begun(run: RunDirectory) -> bool:
    record = run.read_run()
    return record.phase is not Phase.PLANNED or record.outcome is not None


@contextmanager
def _locked(folder: Path, *, shared: bool, doing: str, patience_s: float = PATIENCE_S) -> Iterator[None]:
    until_s = time.monotonic() + patience_s
    with ExitStack() as stack:
        while True:
            try:
                stack.enter_context(folder_lock(folder, wait=False, shared=shared, needed=False))
                break
            except HeldError as error:
                if time.monotonic() > until_s:
                    said = f"another command {doing} ({error}): wait until it is over"
                    raise MachineError(f"{folder}: {said}") from None
            except OSError as error:
                raise MachineError(f"{folder} cannot be read: {error.strerror}") from None
            time.sleep(LOOK_S)
        yield
