"""One night at a time: locks on the history that nights go into, and on the folder of their records."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from experiments.locks import HeldError, file_lock
from experiments.nights import NIGHTS
from testbed.errors import MachineError

NAME = "nightly.lock"
LOOK_S = 0.2


@contextmanager
def night_locks(
    history: Path, runs: Path, *, who: str, wait_s: float = 0.0, say: Callable[[str], None] = lambda _: None
) -> Iterator[None]:
    """Have a history and a folder of runs for oneself.

    who: what to tell others, in a few words. wait_s: how long to wait until nobody else has them, in all;
    say is told that. Raises MachineError if somebody else has one still, or it cannot be written.
    """
    until_s = time.monotonic() + wait_s
    with ExitStack() as stack:  # in this order for everyone, so that no two wait for each other
        for folder, option in ((history, "--history"), (runs / NIGHTS, "--out")):
            try:
                folder.mkdir(parents=True, exist_ok=True)
                _enter(stack, folder, who, until_s, say)
            except HeldError as error:
                raise MachineError(
                    f"another night is on in {folder}: {error}; "
                    f"wait until it is over, as --wait does, or give {option} another folder"
                ) from None
            except OSError as error:
                raise MachineError(f"cannot write {folder} ({option}): {error.strerror}") from error
        yield


def _enter(stack: ExitStack, folder: Path, who: str, until_s: float, say: Callable[[str], None]) -> None:
    """Raises HeldError, OSError."""
    told = False
    while True:
        try:
            stack.enter_context(file_lock(folder / NAME, who=who))
        except HeldError as error:
            if time.monotonic() >= until_s:
                raise
            if not told:
                say(f"waiting until another night in {folder} is over: {error}")
            told = True
            time.sleep(LOOK_S)
        else:
            return
