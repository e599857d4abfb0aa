"""Standard output and standard error, on which a terminal is shown only what can be shown.

Names in a run, an archive or an inventory may come from anybody, and each of many commands prints some: so
not each of them, but both streams are filtered (`experiments.files.sanitize`) for as long as a command goes
on. Bytes are not; what moves the cursor itself, as a bar of progress, writes unfiltered and filters its
texts.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from experiments.files.sanitize import printable_lines

_NAMES = ("stdout", "stderr")


class PrintableStream:
    """A text stream as `unfiltered`, on which only what can be shown is written."""

    def __init__(self, unfiltered: TextIO) -> None:
        self.unfiltered = unfiltered

    def write(self, text: str) -> int:
        """As of any text stream."""
        self.unfiltered.write(printable_lines(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """As of any text stream."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unfiltered, name)


@contextmanager
def only_printable() -> Iterator[None]:
    """Filter what is written on both streams until the end of the block."""
    before = {name: stream for name in _NAMES if (stream := getattr(sys, name)) is not None}
    filtered = {name: PrintableStream(stream) for name, stream in before.items()}
    for name, stream in filtered.items():
        setattr(sys, name, stream)
    try:
        yield
    finally:
        for name, stream in filtered.items():
            if getattr(sys, name) is stream:  # else it was silenced for the rest of the process
                setattr(sys, name, before[name])


def unfiltered(stream: TextIO) -> TextIO:
    """The stream itself, for what moves the cursor."""
    return stream.unfiltered if isinstance(stream, PrintableStream) else stream
