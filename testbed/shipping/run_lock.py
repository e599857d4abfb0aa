"""One receiver of a run at a time: two would append to the same files."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from experiments.locks import HeldError, file_lock
from experiments.rundir import RunDirectory
from testbed.errors import MachineError, TestbedError


@contextmanager
def run_lock(run: RunDirectory, *, who: str) -> Iterator[None]:
    """Be the only one that brings files of this run here.

    who: what to tell others, in a few words. Raises TestbedError if somebody else does, MachineError if the
    run directory cannot be written.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(file_lock(run.shipping_lock, who=who))
        except HeldError as error:
            raise TestbedError(
                f"the files of {run.name} are being brought here by {error}: wait until that has ended"
            ) from None
        except OSError as error:
            raise MachineError(f"cannot write {run.path}: {error.strerror}") from error
        yield
