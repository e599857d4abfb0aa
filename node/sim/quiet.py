"""No looking for cycles among hundreds of millions of objects that all stay."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet() -> Iterator[None]:
    """Collect no garbage by cycles meanwhile.

    A hundred thousand nodes live as long as their study, and messages are freed by their counts; looking
    through all of them again and again took half of the time.
    """
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
