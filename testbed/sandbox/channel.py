"""The control channel between the CLI and the inside of a sandbox: JSON lines, both ways, over a socket
pair.

The same class serves both ends. Reading never blocks beyond the time given, so that signals and other
sources can be served between lines. It knows nothing of what the messages mean.
"""

import json
import os
import select
import socket
import time
from collections.abc import Mapping
from typing import Any

from testbed.errors import TestbedError

FD_VARIABLE = "CUTSET_CONTROL_FD"
"""Environment variable that tells the sandbox's command which descriptor is its end of the channel."""

LINE_BYTES_MAX = 16 << 20
SEND_TIMEOUT_S = 10.0


class Channel:
    """One end. Closed by `close`, or by the other end's death (then `receive` returns None and `ended` is
    true).
    """

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._buffer = b""
        self._scanned = 0
        self.ended = False

    @classmethod
    def inherited(cls) -> "Channel":
        """The end that this process inherited inside a sandbox. Raises TestbedError outside of one."""
        number = os.environ.get(FD_VARIABLE)
        if number is None:
            raise TestbedError(f"{FD_VARIABLE} is not set: this program runs only inside a sandbox")
        end = socket.socket(fileno=int(number))
        end.set_inheritable(False)
        return cls(end)

    def fileno(self) -> int:
        """For select and poll."""
        return self._socket.fileno()

    def send(self, message: Mapping[str, Any]) -> None:
        """Send one message; waits at most SEND_TIMEOUT_S. Raises OSError when the other end is gone or
        stuck.
        """
        self._socket.settimeout(SEND_TIMEOUT_S)
        self._socket.sendall(json.dumps(message, separators=(",", ":")).encode() + b"\n")

    def receive(self, timeout_s: float) -> dict[str, Any] | None:
        """The next message, or None when none came in time or the other end is gone (`ended`)."""
        deadline = time.monotonic() + timeout_s
        while True:
            line = self._next_line()
            if line is not None:
                message: dict[str, Any] = json.loads(line)
                return message
            if self.ended or not self._fill(max(0.0, deadline - time.monotonic())):
                return None

    def close(self) -> None:
        """Close this end; idempotent."""
        self.ended = True
        self._socket.close()

    def _next_line(self) -> bytes | None:
        end = self._buffer.find(b"\n", self._scanned)
        if end < 0:
            self._scanned = len(self._buffer)
            if self._scanned > LINE_BYTES_MAX:
                raise TestbedError(f"a control message is longer than {LINE_BYTES_MAX} bytes")
            return None
        line, self._buffer, self._scanned = self._buffer[:end], self._buffer[end + 1 :], 0
        return line

    def _fill(self, timeout_s: float) -> bool:
        """Read what there is; false when nothing came in time."""
        if not select.select([self._socket], [], [], timeout_s)[0]:
            return False
        try:
            data = self._socket.recv(1 << 16)
        except ConnectionResetError:
            data = b""
        self.ended = not data
        self._buffer += data
        return True
