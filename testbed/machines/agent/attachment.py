"""A controller's connection to a supervisor: its orders, and the messages that still have to be sent to it.

The controller may read slowly: retained messages wait, and short-lived ones are dropped if there is no room.
Messages of the run are numbered in order, so that a controller that reconnects misses no important message.
Messages that control the run (barriers, phases, its outcome) are retained to its end; the plan bounds their
number. The kinds in `LAST_KEPT`, which are superseded by later ones or only shown, are retained up to the
given number; the numbers of dropped messages stay empty.

Messages are lines of JSON. The controller sends

    {"from": N}                            first: send the messages from number N on
    {"do": "clock", "id": K}               answered at once with the machine's time; renews the lease
    {"do": "go on", "at": PLACE, …}        to the run (`testbed.runner.barrier`)
    {"do": "stop", "why": TEXT}            to the run: end in order
    {"do": "bye"}                          the files are shipped, or never will be: end

The supervisor sends the messages of the run (`testbed.execution.record`), each with its number `n`, so that a
controller that reconnects misses none. Messages that are soon out of date (`PASSING`) have no number and are
not repeated. After the run it sends {"did": "ended"}.
"""

import socket
from collections import deque
from collections.abc import Iterator

from testbed.json_lines import Message, MessageParser, line_of

PASSING = frozenset({"progress", "clock"})
LAST_KEPT = {"counts": 1, "change": 10_000}


class RetainedMessages:
    """The messages of a run that a supervisor retains: lines as sent, by number."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._last: dict[str, deque[int]] = {did: deque() for did in LAST_KEPT}

    def __len__(self) -> int:
        """Return the number of the next message."""
        return len(self._lines)

    def __getitem__(self, number: int) -> bytes:
        """Return a line; empty if it is no longer retained."""
        return self._lines[number]

    def add(self, message: Message) -> None:
        """Add a message: number and retain it."""
        number = len(self._lines)
        self._lines.append(line_of({**message, "n": number}))
        did = message.get("did", "")
        if did in LAST_KEPT:
            self._last[did].append(number)
            if len(self._last[did]) > LAST_KEPT[did]:
                self._lines[self._last[did].popleft()] = b""


PIECE_BYTES = 1 << 16
UNSENT_BYTES_MAX = 1 << 20


class Attachment:
    """One connection to the supervisor's socket. No method blocks."""

    def __init__(self, connection: socket.socket, retained: RetainedMessages) -> None:
        connection.setblocking(False)
        self.socket = connection
        self._retained = retained
        self._lines = MessageParser()
        self._next: int | None = None  # the next retained message; None until the controller has begun
        self._unsent = bytearray()

    def messages(self) -> Iterator[Message] | None:
        """Return the controller's messages; None if it sent nothing.

        Raises ConnectionError if it has disconnected; the iterator raises LineError.
        """
        try:
            data = self.socket.recv(PIECE_BYTES)
        except BlockingIOError:
            return None
        if not data:
            raise ConnectionResetError
        return self._lines.feed(data)

    def begin(self, number: int) -> None:
        """Start sending the retained messages from this number on."""
        self._next = max(0, number)

    def send(self, line: bytes) -> None:
        """Send a short-lived message if the controller has begun and there is room."""
        if self._next is not None and len(self._unsent) < UNSENT_BYTES_MAX:
            self._unsent += line

    def flush(self) -> bool:
        """Send as much as the socket accepts; returns whether all was sent. Raises ConnectionError."""
        try:
            while self._fill():
                del self._unsent[: self.socket.send(self._unsent)]
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        """Close the connection."""
        self.socket.close()

    def _fill(self) -> bool:
        """Load the next retained messages; returns whether there is data to send."""
        while self._next is not None and self._next < len(self._retained) and len(self._unsent) < PIECE_BYTES:
            self._unsent += self._retained[self._next]
            self._next += 1
        return bool(self._unsent)
