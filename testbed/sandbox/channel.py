"""The control channel between the CLI and the inside of a sandbox: a socket pair that carries JSON both ways.

One message is one packet (`SOCK_SEQPACKET`), so there are no partial messages, and a side that does not read
can never block the other: `post` drops a message rather than wait. The channel does not interpret messages.
"""

import json
import os
import select
import socket
import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from testbed.errors import TestbedError

FD_VARIABLE = "CUTSET_CONTROL_FD"
"""Environment variable with the descriptor of the sandbox command's end of the channel."""

MESSAGE_BYTES_MAX = 128 << 10
BEAT_S = 5.0
SILENCE_S = 120.0
"""The other end counts as hanging after this time without a message. Its thread that sends empty ones needs
nothing but some processor time.
"""


class SandboxChannel:
    """One end of the channel. `ended` becomes true when the other end is closed, or does not show life
    (`show_life`) for SILENCE_S; then `hung` does, too.
    """

    def __init__(self, end: socket.socket) -> None:
        self._socket = end
        self._socket.setblocking(False)
        self.ended = self.hung = False
        self._heard_s: float | None = None

    @staticmethod
    def pair() -> tuple[socket.socket, socket.socket]:
        """Create two connected sockets: one for this process's channel, one for the other process."""
        return socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)

    @classmethod
    def inherited(cls) -> "SandboxChannel":
        """Return the end that this process inherited in a sandbox. Raises TestbedError outside a sandbox."""
        number = os.environ.get(FD_VARIABLE)
        if number is None:
            raise TestbedError(f"{FD_VARIABLE} is not set: this program runs only inside a sandbox")
        end = socket.socket(fileno=int(number))
        end.set_inheritable(False)
        return cls(end)

    def fileno(self) -> int:
        """Return the descriptor, for select and poll."""
        return self._socket.fileno()

    def post(self, message: Mapping[str, Any]) -> bool:
        """Send a message; returns false if the other end is closed or its buffer is full."""
        data = json.dumps(message, separators=(",", ":")).encode()
        assert len(data) <= MESSAGE_BYTES_MAX
        try:
            self._socket.send(data)
        except (BlockingIOError, BrokenPipeError, ConnectionResetError):
            return False
        return True

    def show_life(self) -> None:
        """Send an empty message periodically from a thread, which shows the other end that this process does
        not hang.
        """

        def beat() -> None:
            with suppress(OSError):  # closed meanwhile
                while not self.ended:
                    self.post({})
                    time.sleep(BEAT_S)

        threading.Thread(target=beat, name="life", daemon=True).start()

    def expect_life(self) -> None:
        """Count the other end as hanging if it shows no life within SILENCE_S from now on."""
        self._heard_s = time.monotonic()

    def receive(self, timeout_s: float) -> dict[str, Any] | None:
        """Return the next message, or None after a timeout or if the other end is closed or hangs."""
        if self.ended or not select.select([self._socket], [], [], timeout_s)[0]:
            silent_s = 0.0 if self._heard_s is None else time.monotonic() - self._heard_s
            self.hung = self.hung or silent_s > SILENCE_S
            self.ended = self.ended or self.hung
            return None
        try:
            data = self._socket.recv(MESSAGE_BYTES_MAX)
        except ConnectionResetError:
            data = b""
        if not data:
            self.ended = True
            return None
        message: dict[str, Any] = json.loads(data)
        if not message or self._heard_s is not None:  # from the first sign of life on
            self._heard_s = time.monotonic()
        return message

    def close(self) -> None:
        """Close this end; idempotent."""
        self.ended = True
        self._socket.close()
