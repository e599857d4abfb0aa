"""Frames of the shipping protocol: a kind (1 byte), a length (4 bytes, big-endian), a body.

The sender begins with a greeting. Input is untrusted: another greeting, an unknown kind or a length over the
limit ends the session.
"""

import struct
from collections.abc import Callable
from enum import Enum

from testbed.errors import TestbedError

GREETING = b"\ncutset-shipping-1\n"
"""What the sender says first; the number is the protocol's version."""
CHUNK_BYTES_MAX = 1 << 20
"""The most of a file that is asked for at once; longer ones compress no better."""
BODY_BYTES_MAX = CHUNK_BYTES_MAX + (64 << 10)
"""Room for a chunk that does not compress, and its head."""

HEAD = struct.Struct(">cI")


class ShippingError(TestbedError):
    """The other side violates the protocol."""


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
    FAILED = b"F"  # the sender cannot go on, and says why


def encode(kind: Kind, body: bytes = b"") -> bytes:
    """A frame as bytes."""
    assert len(body) <= BODY_BYTES_MAX
    return HEAD.pack(kind.value, len(body)) + body


class Frames:
    """Reads frames from a stream of bytes.

    read: returns at most so many bytes, b"" at the end.
    """

    def __init__(self, read: Callable[[int], bytes]) -> None:
        self._read = read
        self._held = bytearray()

    def greet(self) -> None:
        """Read the greeting. Raises EOFError, and ShippingError if it is another one."""
        said = self._exactly(len(GREETING))
        if said != GREETING:
            raise ShippingError(f"it says something else than a sender: {said!r}…")

    def next(self) -> tuple[Kind, bytes]:
        """The next frame. Raises EOFError when the stream ends, also within a frame, and ShippingError."""
        code, length = HEAD.unpack(self._exactly(HEAD.size))
        try:
            kind = Kind(code)
        except ValueError:
            raise ShippingError(f"a frame of the unknown kind {code!r}") from None
        if length > BODY_BYTES_MAX:
            raise ShippingError(f"a frame of {length} bytes; the most are {BODY_BYTES_MAX}")
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
