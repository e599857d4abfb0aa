"""The codings in which an event's payload may be on the wire: one list for all searches.

- As text: raw, base64 (RFC 4648, section 4), hexadecimal digits. See `encodings`.
- In a transfer coding, which puts other bytes in between: HTTP's chunked coding (RFC 9112, section 7.1) and
  WebSocket's frames with masked payloads (RFC 6455, section 5). See `JoinedBytes` and
  `analysis.capture.websocket`. Both may hold any of the above.

Encrypted or compressed bytes are not read. Compressed WebSocket messages (permessage-deflate, RFC 7692) are
recognised and reported.
"""

import base64
import binascii
import bisect
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from node.core.marker import MAGIC, Marker, read_marker

CHUNK_LINE = re.compile(rb"\r\n[0-9a-fA-F]{1,8}\r\n")
UNFINISHED_LINE = re.compile(rb"\r(\n([0-9a-fA-F]{1,8}\r?)?)?\Z")
LINE_BYTES_MAX = 12


@dataclass(frozen=True, slots=True)
class MarkerEncoding:
    """An encoding of events on the wire: first bytes, length in bytes, and a function that decodes it."""

    begin: bytes
    length: int
    payload: Callable[[bytes], bytes]

    def read(self, text: bytes) -> Marker | None:
        """Return the marker of the event in `text`, or None if the event is absent or incomplete."""
        if len(text) < self.length:
            return None
        try:
            marker = read_marker(self.payload(text))
        except ValueError:  # not in this encoding
            return None
        return marker if marker is not None and marker.is_whole else None


def encodings(size_bytes: int) -> tuple[MarkerEncoding, ...]:
    """Return the encodings that an event of this size can have on the wire."""
    digits = MAGIC.hex()
    return (
        MarkerEncoding(MAGIC, size_bytes, bytes),
        MarkerEncoding(base64.b64encode(MAGIC)[:5], (size_bytes + 2) // 3 * 4, base64.b64decode),
        MarkerEncoding(digits.encode(), 2 * size_bytes, binascii.unhexlify),
        MarkerEncoding(digits.upper().encode(), 2 * size_bytes, binascii.unhexlify),
    )


@dataclass(frozen=True, slots=True)
class JoinedBytes:
    """Content without its transfer coding: the bytes of `text` from `starts[i]` on came from `positions[i]`
    on.

    end: the position from which the search goes on if nothing before it is left. is_final: no bytes that
    belong to `text` follow. plain: the content, if what was removed may be part of it after all.
    """

    text: bytes
    starts: list[int]
    positions: list[int]
    end: int
    is_final: bool
    plain: bytes = b""

    @classmethod
    def from_pieces(cls, pieces: Iterable[tuple[int, bytes]], end: int, *, is_final: bool) -> "JoinedBytes":
        """Join pieces, each with its position."""
        parts, starts, positions, size = [], [], [], 0
        for position, part in pieces:
            parts.append(part)
            starts.append(size)
            positions.append(position)
            size += len(part)
        return cls(b"".join(parts), [*starts, size], [*positions, end], end, is_final)

    @classmethod
    def from_chunked(cls, content: bytes, begin: int, *, is_final: bool) -> "JoinedBytes":
        """Remove chunk-size lines, or what looks like them. Unless `is_final`, also remove an unfinished line
        at the end.
        """
        parts, starts, positions, size = [], [], [], 0
        for line in CHUNK_LINE.finditer(content, begin):
            parts.append(content[begin : line.start()])
            starts.append(size)
            positions.append(begin)
            size += len(parts[-1])
            begin = line.end()
        end = len(content)
        if not is_final and (unfinished := UNFINISHED_LINE.search(content, max(begin, end - LINE_BYTES_MAX))):
            end = unfinished.start()
        text = b"".join([*parts, content[begin:end]])
        return cls(text, [*starts, size], [*positions, begin], len(content), is_final, content)

    def position(self, index: int) -> int:
        """Return the original position of a byte of `text`."""
        piece = bisect.bisect_right(self.starts, index) - 1
        return self.positions[piece] + index - self.starts[piece]

    def index(self, position: int) -> int:
        """Return the index in `text` of the first byte at or after an original position."""
        piece = bisect.bisect_right(self.positions, position) - 1
        index = self.starts[piece] + position - self.positions[piece]
        return min([index, *self.starts[piece + 1 : piece + 2]])
