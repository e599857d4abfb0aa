"""Frames of the shipping protocol: a kind (1 byte), a length (4 bytes, big-endian), a body.

The sender begins with a greeting. Input is untrusted: a different greeting, an unknown kind or a length over
the limit ends the session.
"""

import struct
from collections.abc import Callable
from enum import Enum

from testbed.errors import TestbedError

GREETING = b"\ncutset-shipping-1\n"
"""The sender's first bytes; the number is the protocol's version."""
CHUNK_BYTES_MAX = 1 << 20
"""The most bytes of a file in one request; longer chunks compress no better."""
BODY_BYTES_MAX = CHUNK_BYTES_MAX + (64 << 10)
"""Room for a chunk that does not compress, and its header."""

HEAD = struct.Struct(">cI")


class ShippingError(TestbedError, ValueError):
    """The other side violates the protocol. It is also an error of validation."""


class Kind(Enum):
    """The kind of a frame."""

    LIST = b"l"  # requests
    READ = b"r"
    HASH = b"h"
    LISTING = b"L"  # answers, in the order of the requests
    DATA = b"D"
    DIGEST = b"H"
    CHANGED = b"C"
    GONE = b"G"
    BUSY = b"B"  # no answer yet, but alive
    FAILED = b"F"  # the sender cannot continue; the body is the reason


def encode(kind: Kind, body: bytes = b"") -> bytes:
    """Return a frame as bytes."""
    assert len(body) <= BODY_BYTES_MAX
    return HEAD.pack(kind.value, len(body)) + body


class FrameReader:
    """A reader of frames from a stream of bytes.

    read: returns at most the given number of bytes, b"" at the end.
    """

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self._held = bytearray()

    def greet(self) -> None:
        """Read the greeting. Raises EOFError, and ShippingError if it is a different one."""
        greeting = self._exactly(len(GREETING))
        if greeting != GREETING:
            raise ShippingError(f"its greeting is not that of a sender: {greeting!r}…")

    def next(self) -> tuple[Kind, bytes]:
        """Return the next frame. Raises EOFError if the stream ends (also within a frame), ShippingError."""
        code, length = HEAD.unpack(self._exactly(HEAD.size))
        try:
            kind = Kind(code)
        except ValueError:
            raise ShippingError(f"a frame of the unknown kind {code!r}") from None
        if length > BODY_BYTES_MAX:
            raise ShippingError(f"a frame of {length} bytes; the maximum is {BODY_BYTES_MAX}")
        return kind, self._exactly(length)

    def _exactly(self, size: int) -> bytes:
        while len(self._held) < size:
            self._fill()
        taken = bytes(memoryview(self._held)[:size])
        del self._held[:size]
        return taken

    def _fill(self) -> None:
        data = self._read(BODY_BYTES_MAX)
        if not data:
            raise EOFError("the connection ended")
        self._held += data
