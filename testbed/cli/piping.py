"""Output that somebody may stop reading: `cutset packets … | head` ends quietly."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def reader_may_leave() -> Iterator[None]:
    """End the block without an error when standard output's reader has gone.

    What is still in the buffer goes nowhere, so that the interpreter does not complain at its end either
    (Python's documentation, signal, "Note on SIGPIPE").
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
