"""Who is attached to a supervisor: what they said, and what they are still to be told.

They may read as slowly as they like: what is kept waits where it is kept, and what is soon out of date is
dropped when there is no room for it. Messages of the run are numbered in the order in which they were said,
so that who comes back misses nothing that matters. Kept to the end is what steers the run: where it waits, in
which phase it is, how it ended. Its plan bounds how much that is. Of what only the last of its kind says, and
of what is only shown, `LAST_KEPT` are kept; the numbers of the others stay empty.
"""

import socket
from collections import deque
from collections.abc import Iterator

from testbed.machines.agent.messages import Lines, Message, line_of

LAST_KEPT = {"counts": 1, "change": 10_000}


class Kept:
    """What a supervisor keeps of what its run said: lines as they are sent, by number."""

    def __init__(self) -> None:
        self._lines: list[bytes] = []
        self._last: dict[str, deque[int]] = {did: deque() for did in LAST_KEPT}

    def __len__(self) -> int:
        """The number of the next message."""
        return len(self._lines)

    def __getitem__(self, number: int) -> bytes:
        """The line; nothing if it is not kept any more."""
        return self._lines[number]

    def add(self, message: Message) -> None:
        """Number and keep a message."""
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
