"""Standard output and standard error without unprintable characters.

Names in a run, an archive or an inventory may come from anyone, and many commands print them. Therefore both
streams are filtered (`experiments.files.sanitize`) as long as a command runs. Bytes are not filtered. A
progress bar, which moves the cursor, writes unfiltered and filters its own texts.
"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TextIO

from experiments.files.sanitize import printable_lines

_NAMES = ("stdout", "stderr")


class PrintableStream:
    """A text stream that writes only printable characters to `unfiltered`."""

    def __init__(self, unfiltered: TextIO) -> None:
        self.unfiltered = unfiltered

    def write(self, text: str) -> int:
        """Write the printable characters of a text; return the length of the whole text."""
        self.unfiltered.write(printable_lines(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each line with `write`."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.unfiltered, name)


@contextmanager
def only_printable() -> Iterator[None]:
    """Filter both streams until the end of the block."""
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
    """Return the stream without the filter, for output that moves the cursor."""
    return stream.unfiltered if isinstance(stream, PrintableStream) else stream
