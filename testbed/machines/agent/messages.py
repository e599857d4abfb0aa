"""What a supervisor and its controller say to each other: JSON lines.

The controller says

    {"from": N}                            first: send what you said from number N on
    {"do": "clock", "id": K}               answered at once with the machine's time; renews the lease
    {"do": "go on", "at": PLACE, …}        to the run (`testbed.runner.barrier`)
    {"do": "stop", "why": TEXT}            to the run: end tidily
    {"do": "bye"}                          the files are shipped, or never will be: end

The supervisor says what the run says (`testbed.runner.record`), each with its number `n`, so that who comes
back after a broken connection misses nothing (`attachment.py`). Only what is soon out of date, or
stands in the run's files and is of no use before (`PASSING`), has none and is not said again. Once
the run is over it says {"did": "ended"}.
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
    """A message as a line."""
    return json.dumps(message, separators=(",", ":")).encode() + b"\n"


class MessageParser:
    """Parses messages from bytes."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[Message]:
        """The messages that are complete now. Raises LineError."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > LINE_BYTES_MAX:
            raise LineError(f"a line of more than {LINE_BYTES_MAX} bytes")
        for line in lines:
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                raise LineError(f"no JSON: {line[:80]!r}") from None
            if not isinstance(message, dict):
                raise LineError(f"no JSON object: {line[:80]!r}")
            yield message
