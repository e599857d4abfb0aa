"""Who is attached to a supervisor: what they said, and what they are still to be told.

They may read as slowly as they like: what is kept waits where it is kept, and what is soon out of date is
dropped when there is no room for it.
"""

import socket
from collections.abc import Iterator

from testbed.hosts.agent.kept import Kept
from testbed.hosts.agent.messages import Lines, Message

PIECE_BYTES = 1 << 16
UNSENT_BYTES_MAX = 1 << 20


class Attachment:
    """One connection to the supervisor's socket. Nothing here waits."""

    def __init__(self, connection: socket.socket, kept: Kept) -> None:
        connection.setblocking(False)
        self.socket = connection
        self._kept = kept
        self._lines = Lines()
        self._next: int | None = None  # of what is kept; None until they have said from where on
        self._unsent = bytearray()

    def hear(self) -> Iterator[Message] | None:
        """What they say; None if nothing came. Raises ConnectionError when they are gone; on the way,
        LineError.
        """
        try:
            data = self.socket.recv(PIECE_BYTES)
        except BlockingIOError:
            return None
        if not data:
            raise ConnectionResetError
        return self._lines.feed(data)

    def begin(self, number: int) -> None:
        """They want to hear what is kept from this number on."""
        self._next = max(0, number)

    def tell(self, line: bytes) -> None:
        """Something that is soon out of date, when they have begun and there is room."""
        if self._next is not None and len(self._unsent) < UNSENT_BYTES_MAX:
            self._unsent += line

    def flush(self) -> bool:
        """Send as much as they take; whether that was all. Raises ConnectionError."""
        try:
            while self._fill():
                del self._unsent[: self.socket.send(self._unsent)]
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        """Hang up."""
        self.socket.close()

    def _fill(self) -> bool:
        """Take the next of what is kept; whether there is something to send."""
        while self._next is not None and self._next < len(self._kept) and len(self._unsent) < PIECE_BYTES:
            self._unsent += self._kept[self._next]
            self._next += 1
        return bool(self._unsent)
