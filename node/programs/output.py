"""A program's output as lines of its host's log, bounded."""

from collections.abc import Callable

from node.core.machine import Log

LINE_BYTES_MAX = 8192
LAST_WORDS_MAX = 160
OUTPUT_BYTES_MAX = 64 << 20
"""Limit for one process generation of a program; the rest is omitted and the log reports that."""


class ProgramOutput:
    """Splits a program's output into lines. log: takes log lines. seen: called with each line."""

    def __init__(self, log: Callable[[Log], None], seen: Callable[[str], None]) -> None:
        self.last = ""
        """The last non-empty line, shortened: it usually contains the reason for a program's end."""
        self._log, self._seen = log, seen
        self._rest = b""
        self._left_bytes = OUTPUT_BYTES_MAX

    def feed(self, data: bytes) -> None:
        """Process received bytes."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._line(line)
        while len(self._rest) > LINE_BYTES_MAX:
            self._line(self._rest[:LINE_BYTES_MAX])
            self._rest = self._rest[LINE_BYTES_MAX:]

    def end(self) -> None:
        """Process an unfinished last line at the end of the output."""
        if self._rest:
            self._line(self._rest)
            self._rest = b""

    def _line(self, line: bytes) -> None:
        text = line.decode(errors="backslashreplace").rstrip("\r")
        self._seen(text)
        if text.strip():
            shown = "".join(each if each.isprintable() else " " for each in text).strip()
            self.last = shown if len(shown) <= LAST_WORDS_MAX else f"{shown[:LAST_WORDS_MAX]}…"
        if self._left_bytes <= 0:
            return
        self._left_bytes -= len(line) + 1
        if self._left_bytes <= 0:
            self._log(Log("output_left_out", {"after_bytes": OUTPUT_BYTES_MAX}, "warning"))
            return
        self._log(Log("output", {"text": text}))
