"""Channel between a minder and the client in its program: JSON objects over a named socket.

The socket is in the abstract namespace, which each network namespace has for itself (unix(7)): no path can be
too long, and nothing stays behind. The client receives {"do": "go", "start_ns", "late_us"}, {"do":
"stop_drivers"} and {"do": "finish"}, also those sent before it connected; it sends {"did": "ready"}, {"did":
"log", "event", "fields"} and {"did": "progress", "published", "delivered", "silent"}. There is one client at
a time: a new one replaces it.
"""

import asyncio
import json
import os
import socket
from collections.abc import Callable, Mapping
from typing import Any

MESSAGE_BYTES_MAX = 1 << 20
WAITING_MAX = 4


class ClientChannel:
    """The minder's side of the channel. on_message: called with each message of the client."""

    def __init__(self, on_message: Callable[[Mapping[str, Any]], None]) -> None:
        self.name = f"cutset-{os.getpid()}"
        self._on_message = on_message
        self._sent: list[bytes] = []
        self._client: socket.socket | None = None
        self._listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._listening.bind("\0" + self.name)
        self._listening.listen(WAITING_MAX)
        self._listening.setblocking(False)
        asyncio.get_running_loop().add_reader(self._listening, self._accept)

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message to the current client, and to each client that connects later."""
        data = json.dumps(message).encode()
        self._sent.append(data)
        if self._client is not None:
            self._send(self._client, data)

    def close(self) -> None:
        """Close the channel. Idempotent."""
        self._drop()
        asyncio.get_running_loop().remove_reader(self._listening)
        self._listening.close()

    def _accept(self) -> None:
        client, _ = self._listening.accept()
        self._drop()
        client.setblocking(False)
        self._client = client
        asyncio.get_running_loop().add_reader(client, self._read)
        for data in self._sent:
            self._send(client, data)

    def _read(self) -> None:
        assert self._client is not None
        try:
            data = self._client.recv(MESSAGE_BYTES_MAX)
        except (BlockingIOError, ConnectionError):
            data = b""
        if not data:
            self._drop()
            return
        self._on_message(json.loads(data))

    def _send(self, client: socket.socket, data: bytes) -> None:
        try:
            client.send(data)
        except (BlockingIOError, ConnectionError):
            return  # a client that is stopped or ending: its end will be detected

    def _drop(self) -> None:
        if self._client is not None:
            asyncio.get_running_loop().remove_reader(self._client)
            self._client.close()
            self._client = None
