"""One TCP connection of a node: bytes in become messages, messages out become bytes, and room is watched.

The connection knows its node only through `Owner`. Reading goes through `node.core.framing` and the
protocol's codec; what cannot be read is reported once, and then nothing more is read. "Writable" means that
nearly all that was handed over has gone to the kernel.

A connection closes by halves: we say that nothing more comes, and throw away what still arrives until the
peer closes, too. Closed at once, with anything unread, the kernel would send a reset (RFC 9293, section
3.6.1), and the peer might lose our last words.
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
NOT_SENT_BYTES = 131_072  # waiting in the kernel, never sent: advertisements stand in line behind it
UNREAD_BYTES = 65_536  # taken and thrown away at a time, after what could not be read
PROGRESS_S = 0.1  # how often the owner hears of parts of a long message
LINGER_S = 2.0  # that a peer which still sends has to hear why we closed


class Owner(Protocol):
    """The node that a connection belongs to: learns what happens on it."""

    def connected(self, connection: "Connection") -> None:
        """The connection is open."""

    def received(self, connection: "Connection", messages: Sequence[Any]) -> None:
        """Messages came in together, in order; none, if so far there is only a part of one."""

    def malformed(self, connection: "Connection", problem: str) -> None:
        """The peer sent bytes that are no message."""

    def disconnected(self, connection: "Connection", reason: str) -> None:
        """The connection is gone."""

    def writable(self, connection: "Connection") -> None:
        """The connection takes more, after `await_writable`."""


class Connection(asyncio.BufferedProtocol):
    """One TCP connection.

    peer: the name of the process that we dialled; None if it was accepted, from `accepted_from`.
    """

    def __init__(self, owner: Owner, codec: Codec, frame_limit_bytes: int, peer: str | None = None) -> None:
        self.number = 0  # given by the owner when it is open
        self.peer = peer
        self.accepted_from = ""
        self._owner = owner
        self._codec = codec
        self._limit_bytes = frame_limit_bytes
        self._buffer = FrameBuffer(frame_limit_bytes)
        self._transport: asyncio.Transport | None = None
        self._full = False
        self._awaited = False
        self._deaf = False
        self._part_s = 0.0  # when a part came first, or was told last; 0: the last bytes made a message whole

    # --- asyncio's callbacks

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """See asyncio.BufferedProtocol."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's have no common base class
        raw: socket.socket = transport.get_extra_info("socket")
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # asyncio forgets it where proto is 0
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, NOT_SENT_BYTES)
        if self.peer is None:
            self.accepted_from = (transport.get_extra_info("peername") or ("",))[0]
        self._transport.set_write_buffer_limits(high=WRITABLE_BYTES, low=WRITABLE_BYTES)
        self._owner.connected(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        """See asyncio.BufferedProtocol."""
        return self._buffer.room() if not self._deaf else memoryview(bytearray(UNREAD_BYTES))

    def buffer_updated(self, nbytes: int) -> None:
        """Decode what is whole; messages before a bad one still count.

        While a long message comes, the owner hears so now and then: a peer that sends one is not silent.
        """
        if self._deaf:
            return
        messages: list[Any] = []
        problem, decode = "", self._codec.decode
        try:
            for frame in self._buffer.filled(nbytes):
                messages.append(decode(frame))
        except RemoteProtocolError as error:
            self._deaf = True
            problem = str(error)
        if messages:
            self._part_s = 0.0
            self._owner.received(self, messages)
        elif not problem:
            self._part_came()
        if problem:
            self._owner.malformed(self, problem)

    def _part_came(self) -> None:
        """Only a part of a message came: the owner hears it every `PROGRESS_S` until the message is whole."""
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
        """See asyncio.BufferedProtocol. Once is enough."""
        if self._transport is None:
            return
        self._transport = None
        self._owner.disconnected(
            self, "closed by the peer" if exc is None else str(exc) or type(exc).__name__
        )

    # --- What the owner asks for

    def send(self, messages: Sequence[Any]) -> None:
        """Write messages in order.

        A transport that found its connection broken tells us a little later, and raises until then.
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
        """True if it is writable now; otherwise the owner is told later, once."""
        self._awaited = self._full
        return not self._full

    def pause_reading(self) -> None:
        """Read nothing more from the socket, so that the peer has to wait."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        """Read from the socket again."""
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()

    def close(self, *, abort: bool) -> None:
        """Close after what is written has gone and the peer has closed or `LINGER_S` are over, or at once."""
        self._awaited = False
        if self._transport is None:
            return
        if abort:
            self._abort(self._transport)
        elif not self._transport.is_closing():
            self._deaf = True
            self._transport.write_eof()
            self._transport.resume_reading()
            asyncio.get_running_loop().call_later(LINGER_S, self._transport.close)

    @staticmethod
    def _abort(transport: asyncio.Transport) -> None:
        if not transport.is_closing():
            # Without this the kernel would go on sending what it holds, for as long as its own back-off
            # lasts, to a peer that has long been given up (socket(7), SO_LINGER).
            linger = struct.pack("ii", 1, 0)
            transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        transport.abort()
