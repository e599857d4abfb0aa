"""One TCP connection of a node: decodes received bytes, encodes sent messages, and reports room for more.

The connection knows its node only through `Owner`. Reading goes through `node.core.framing` and the
protocol's codec; invalid data is reported once, and then reading stops. "Writable" means that nearly all sent
data has gone to the kernel.

A connection closes by halves: this side sends a FIN and discards what still arrives until the peer closes,
too. If it closed at once with unread data, the kernel would send a reset (RFC 9293, section 3.6.1), and the
peer might lose the last messages.
"""

import asyncio
import socket
import struct
import time
from collections.abc import Sequence
from typing import Any, Protocol, cast

from node.core.errors import RemoteProtocolError
from node.core.framing import FrameBuffer
from node.core.message_layout import Codec

WRITABLE_BYTES = 65_536  # at most this much may still wait in the process when a connection takes more
NOT_SENT_BYTES = 131_072  # unsent data in the kernel: advertisements queue behind it
UNREAD_BYTES = 65_536  # read and discarded at a time, after invalid data
PROGRESS_S = 0.1  # interval of reports about parts of a long message
LINGER_S = 2.0  # for a peer that still sends to receive the reason for the close


class Owner(Protocol):
    """The node that owns a connection; receives its notifications."""

    def connected(self, connection: "NodeConnection") -> None:
        """Handle that the connection is open."""

    def received(self, connection: "NodeConnection", messages: Sequence[Any]) -> None:
        """Handle messages that arrived together, in order; none, if so far there is only a part of one."""

    def malformed(self, connection: "NodeConnection", problem: str) -> None:
        """Handle bytes from the peer that are not a message."""

    def disconnected(self, connection: "NodeConnection", reason: str) -> None:
        """Handle the loss of the connection."""

    def writable(self, connection: "NodeConnection") -> None:
        """Handle that the connection takes more, after `await_writable`."""


class NodeConnection(asyncio.BufferedProtocol):
    """One TCP connection.

    peer: the name of the dialled process; None if the connection was accepted, from `accepted_from`.
    """

    def __init__(self, owner: Owner, codec: Codec, frame_limit_bytes: int, peer: str | None = None) -> None:
        self.number = 0  # set by the owner when it is open
        self.peer = peer
        self.accepted_from = ""
        self._owner = owner
        self._codec = codec
        self._limit_bytes = frame_limit_bytes
        self._buffer = FrameBuffer(frame_limit_bytes)
        self._transport: asyncio.Transport | None = None
        self._full = False
        self._awaited = False
        self._discards_input = False
        self._part_s = (
            0.0  # when a part arrived first or was last reported; 0: the last bytes completed a message
        )

    # --- asyncio's callbacks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.BufferedProtocol."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's have no common base class
        raw: socket.socket = transport.get_extra_info("socket")
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # asyncio omits it if proto is 0
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, NOT_SENT_BYTES)
        if self.peer is None:
            self.accepted_from = (transport.get_extra_info("peername") or ("",))[0]
        self._transport.set_write_buffer_limits(high=WRITABLE_BYTES, low=WRITABLE_BYTES)
        self._owner.connected(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """See asyncio.BufferedProtocol."""
        return self._buffer.room() if not self._discards_input else memoryview(bytearray(UNREAD_BYTES))

    def buffer_updated(self, nbytes: int) -> None:
        """Decode complete messages; those before an invalid one still count.

        During a long message, the owner is notified periodically: a peer that sends one is not silent.
        """
        if self._discards_input:
            return
        messages: list[Any] = []
        problem, decode = "", self._codec.decode
        try:
            for frame in self._buffer.filled(nbytes):
                messages.append(decode(frame))
        except RemoteProtocolError as error:
            self._discards_input = True
            problem = str(error)
        if messages:
            self._part_s = 0.0
            self._owner.received(self, messages)
        elif not problem:
            self._part_received()
        if problem:
            self._owner.malformed(self, problem)

    def _part_received(self) -> None:
        """Notify the owner of a part of a message every `PROGRESS_S` until the message is complete."""
        now_s = time.monotonic()
        if not self._part_s:
            self._part_s = now_s
        elif now_s - self._part_s >= PROGRESS_S:
            self._part_s = now_s
            self._owner.received(self, ())

    def pause_writing(self) -> None:
        """See asyncio.BufferedProtocol."""
        self._full = True

    def resume_writing(self) -> None:
        """See asyncio.BufferedProtocol."""
        self._full = False
        if self._awaited:
            self._awaited = False
            self._owner.writable(self)

    def connection_lost(self, exc: Exception | None) -> None:
        """See asyncio.BufferedProtocol. A second call is ignored."""
        if self._transport is None:
            return
        self._transport = None
        self._owner.disconnected(
            self, "closed by the peer" if exc is None else str(exc) or type(exc).__name__
        )

    # --- Requests of the owner

    def send(self, messages: Sequence[Any]) -> None:
        """Write messages in order.

        A transport with a broken connection reports it a little later, and raises until then.
        """
        if self._transport is None or self._transport.is_closing():
            return
        if len(messages) == 1:
            buffers = self._codec.encode(messages[0], self._limit_bytes)
        else:
            buffers = [
                buffer for message in messages for buffer in self._codec.encode(message, self._limit_bytes)
            ]
        self._transport.writelines(buffers)

    def await_writable(self) -> bool:
        """Return True if it is writable now; otherwise the owner is notified later, once."""
        self._awaited = self._full
        return not self._full

    def pause_reading(self) -> None:
        """Stop reading from the socket, so that the peer has to wait."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read from the socket again."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def close(self, *, abort: bool) -> None:
        """Close at once, or after all data is sent and the peer has closed or `LINGER_S` have passed."""
        self._awaited = False
        if self._transport is None:
            return
        if abort:
            self._abort(self._transport)
        elif not self._transport.is_closing():
            self._discards_input = True
            self._transport.write_eof()
            self._transport.resume_reading()
            asyncio.get_running_loop().call_later(LINGER_S, self._transport.close)

    @staticmethod
    def _abort(transport: asyncio.Transport) -> None:
        if not transport.is_closing():
            # Otherwise the kernel would continue to send its data to a peer that is considered lost, for as
            # long as its own back-off lasts (socket(7), SO_LINGER).
            linger = struct.pack("ii", 1, 0)
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        transport.abort()
