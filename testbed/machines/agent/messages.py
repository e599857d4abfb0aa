"""The messages between a supervisor and its controller: JSON lines.

The controller sends

    {"from": N}                            first: send the messages from number N on
    {"do": "clock", "id": K}               answered at once with the machine's time; renews the lease
    {"do": "go on", "at": PLACE, …}        to the run (`testbed.runner.barrier`)
    {"do": "stop", "why": TEXT}            to the run: end in order
    {"do": "bye"}                          the files are shipped, or never will be: end

The supervisor sends the messages of the run (`testbed.runner.record`), each with its number `n`, so that a
controller that reconnects misses none (`attachment.py`). Messages that are soon out of date (`PASSING`) have
no number and are not repeated. After the run it sends {"did": "ended"}.
"""

import json
from collections.abc import Iterator, Mapping
from typing import Any

Message = dict[str, Any]

LINE_BYTES_MAX = 1 << 20
PASSING = frozenset({"progress", "clock"})


class LineError(ValueError):
    """A line is too long, or not a JSON object."""


def line_of(message: Mapping[str, Any]) -> bytes:
    """Return a message as a line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


class MessageParser:
    """A parser of messages from bytes."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Message]:
        """Yield the messages that are complete now. Raises LineError."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LINE_BYTES_MAX:
            raise LineError(f"a line of more than {LINE_BYTES_MAX} bytes")
        for line in lines:
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                raise LineError(f"not JSON: {line[:80]!r}") from None
            if not isinstance(message, dict):
                raise LineError(f"not a JSON object: {line[:80]!r}")
            yield message
