"""One night at a time: a lock on the history that nights are written to."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from testbed.errors import MachineError
from testbed.holding import HeldError, holding

NAME = "nightly.lock"


@contextmanager
def night_lock(history: Path, *, who: str) -> Iterator[None]:
    """Have a history for oneself. Raises MachineError if somebody else has it, or it cannot be written.

    who: what to tell others, in a few words.
    """
    with ExitStack() as stack:
        try:
            history.mkdir(parents=True, exist_ok=True)
            stack.enter_context(holding(history / NAME, who=who))
        except HeldError as error:
            raise MachineError(
                f"another night is on in {history}: {error}; "
                "wait until it is over, or give --history another folder"
            ) from None
        except OSError as error:
            raise MachineError(f"cannot write the history {history}: {error.strerror}") from error
        yield
