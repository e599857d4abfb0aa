"""A controller's connection to a supervisor: its orders, and the messages that it still has to be sent.

The controller may read slowly: retained messages wait, and short-lived ones are dropped when there is no
room. Messages of the run are numbered in order, so that a controller that reconnects misses nothing that
matters. Messages that steer the run are retained to its end: barriers, phases, its outcome; the plan bounds
their number. Of kinds of which only the last counts, and of those that are only shown, `LAST_KEPT` are
retained; the numbers of the others stay empty.
"""

import socket
from collections import deque
from collections.abc import Iterator

from testbed.machines.agent.messages import Message, MessageParser, line_of

LAST_KEPT = {"counts": 1, "change": 10_000}


class RetainedMessages:
    """The messages of a run that a supervisor retains: lines as they are sent, by number."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._last: dict[str, deque[int]] = {did: deque() for did in LAST_KEPT}

    def __len__(self) -> int:
        """The number of the next message."""
        return len(self._lines)

    def __getitem__(self, number: int) -> bytes:
        """The line; empty if it is no longer retained."""
        return self._lines[number]

    def add(self, message: Message) -> None:
        """Number and retain a message."""
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
        self._next: int | None = None  # of what is kept; None until they have said from where on
        self._unsent = bytearray()

    def hear(self) -> Iterator[Message] | None:
        """The controller's messages; None if nothing came. Raises ConnectionError when it has disconnected;
        while reading, LineError.
        """
        try:
            data = self.socket.recv(PIECE_BYTES)
        except BlockingIOError:
            return None
        if not data:
            raise ConnectionResetError
        return self._lines.feed(data)

    def begin(self, number: int) -> None:
        """Start to send the retained messages from this number on."""
        self._next = max(0, number)

    def tell(self, line: bytes) -> None:
        """Send a short-lived message, if the controller has begun and there is room."""
        if self._next is not None and len(self._unsent) < UNSENT_BYTES_MAX:
            self._unsent += line

    def flush(self) -> bool:
        """Send as much as the socket accepts; returns whether that was all. Raises ConnectionError."""
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
        """Load the next retained message; returns whether there is anything to send."""
        while self._next is not None and self._next < len(self._retained) and len(self._unsent) < PIECE_BYTES:
            self._unsent += self._retained[self._next]
            self._next += 1
        return bool(self._unsent)
