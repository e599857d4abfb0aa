"""Messages as lines of JSON, one object each, with a limit on their length."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

Message = dict[str, Any]

LINE_BYTES_MAX = 1 << 20


class LineError(ValueError):
    """A line is too long, or not a JSON object."""


def line_of(message: Mapping[str, Any]) -> bytes:
    """Return a message as a line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


class MessageParser:
    """A parser of messages from bytes. bytes_max: the longest line."""

    def __init__(self, bytes_max: int = LINE_BYTES_MAX) -> None:
        self._bytes_max = bytes_max
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Message]:
        """Yield the messages that are complete now. Raises LineError."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > self._bytes_max:
            raise LineError(f"a line of more than {self._bytes_max} bytes")
        for line in lines:
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                raise LineError(f"not JSON: {line[:80]!r}") from None
            if not isinstance(message, dict):
                raise LineError(f"not a JSON object: {line[:80]!r}")
            yield message
