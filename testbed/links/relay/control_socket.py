"""The protocol of the relay's control socket: one JSON object per line, one answer to every order.

{"do": "start", "seed", "links": [{"name", "a", "b", "lan", "mac", "parameters": {direction: ...},
    "traces": {direction: ...}}, ...]}
    -> {"did": "start", "scheduling": text}
{"do": "begin", "zero_ns"}: the time at which the traces begin
    -> {"did": "begin"}
{"do": "change", "link", "direction", "parameters": parameters, "blackhole", "requested_ns"}
    -> {"did": "change", "applied_ns"}
{"do": "counters"}
    -> {"did": "counters", "rows": [{"link", "direction", ...LinkCounters}, ...]}
{"do": "stop"}
    -> {"did": "stop"}, and the process ends. It also ends when the socket closes.

The answer to an order that fails is {"error": text}; after a failed start the process ends.
"""

import socket
from collections import deque
from typing import Any

from testbed.json_lines import Message, MessageParser, line_of
from topologies.link_trace import LinkTrace, TraceSteps

LINE_BYTES_MAX = 16 << 20


def trace_from_json(fields: dict[str, Any] | None) -> LinkTrace | None:
    """Return a trace from its fields by name; None for None."""
    if fields is None:
        return None
    steps = {
        name: TraceSteps(**{**given, "values": tuple(given["values"])})
        for name, given in fields.items()
        if given is not None
    }
    return LinkTrace(**steps)


class ControlSocket:
    """One end of the control socket, which sends and receives whole objects."""

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._parser = MessageParser(LINE_BYTES_MAX)
        self._received: deque[Message] = deque()

    def fileno(self) -> int:
        """Return the descriptor to wait on."""
        return self._socket.fileno()

    def send(self, message: Message) -> None:
        """Send one object. Raises OSError if the other end is closed."""
        self._socket.sendall(line_of(message))

    def receive(self) -> Message | None:
        """Return the next object, within the socket's timeout; None at the end.

        Raises OSError, and ValueError for a line over `LINE_BYTES_MAX` or invalid JSON.
        """
        while not self._received:
            chunk = self._socket.recv(1 << 16)
            if not chunk:
                return None
            self._received += self._parser.feed(chunk)
        return self._received.popleft()

    def close(self) -> None:
        """Close the socket; idempotent."""
        self._socket.close()
