"""The frames of one direction of a WebSocket connection (RFC 6455), and the payload in them.

A connection is WebSocket if it begins with the opening handshake (section 1.3), or with two frames from a
client, whose payloads are masked (section 5.1). Frames are followed by their lengths. Payloads of data frames
are unmasked with the key in the header (section 5.3); control frames may come between those of one message.
Messages that are compressed (RSV1, RFC 7692) are left out and counted. Bytes after one that cannot begin a
frame, or after a header that is missing from the capture, are taken as they are.
"""

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from analysis.capture.codings import JoinedBytes

COMPRESSED = "WebSocket messages are compressed (permessage-deflate)"
HANDSHAKE_BYTES_MAX = 1 << 14
FIRST_FRAME_BYTES_MAX = 1 << 20  # without a handshake, a larger frame is not accepted
HEADER_BYTES_MAX = 14
_HANDSHAKE = re.compile(
    rb"(?:GET |HTTP/1\.1 101)[^\0]*?\r\nsec-websocket-(?:key|accept):[^\0]*?\r\n\r\n", re.I
)
_HANDSHAKES = (b"GET ", b"HTTP/1.1 101")
_CONTINUATION, _DATA, _CONTROL = 0, (1, 2), (8, 9, 10)


@dataclass(frozen=True, slots=True)
class WebSocketFrame:
    """A frame. begin, end: stream offsets of its payload. key: masks the payload; empty if it is unmasked."""

    begin: int
    end: int
    opcode: int
    is_last: bool  # of its message
    is_compressed: bool  # its message, in the first frame of one
    key: bytes

    def unmasked(self, part: bytes, at: int) -> bytes:
        """Return a part of the payload, at this stream offset, without the mask."""
        if not self.key or not part:
            return part
        turn = (at - self.begin) % len(self.key)
        keys = (self.key[turn:] + self.key[:turn]) * (len(part) // len(self.key) + 1)
        return (int.from_bytes(part) ^ int.from_bytes(keys[: len(part)])).to_bytes(len(part))


def read_frame(content: bytes, at: int, start: int) -> WebSocketFrame | None:
    """Return the frame whose header begins at this index; None if the header is not complete.

    start: the stream offset of the content. Raises ValueError if no frame begins there (section 5.2).
    """
    head = content[at : at + HEADER_BYTES_MAX]
    if len(head) < 2:
        return None
    opcode, short, size_bytes = head[0] & 0x0F, head[1] & 0x7F, {126: 2, 127: 8}.get(head[1] & 0x7F, 0)
    is_last, is_control = bool(head[0] & 0x80), opcode in _CONTROL
    is_known = is_control or opcode in {_CONTINUATION, *_DATA}
    if not is_known or head[0] & 0x30 or (is_control and (head[0] & 0x40 or not is_last or short > 125)):
        raise ValueError("no frame begins like this")
    key_bytes = 4 if head[1] & 0x80 else 0
    header_bytes = 2 + size_bytes + key_bytes
    if len(head) < header_bytes:
        return None
    length = int.from_bytes(head[2 : 2 + size_bytes]) if size_bytes else short
    if length >> 63:
        raise ValueError("a length has 63 bits")
    begin = start + at + header_bytes
    key = head[header_bytes - key_bytes : header_bytes]
    return WebSocketFrame(begin, begin + length, opcode, is_last, bool(head[0] & 0x40), key)


class WebSocketStream:
    """One direction, given in parts that may overlap. `is_websocket` is None until the first bytes have
    decided.
    """

    def __init__(self) -> None:
        self.is_websocket: bool | None = None
        self.compressed_bytes = 0  # payload that was left out since this was last set to 0
        self._next = 0  # stream offset of the next frame's header
        self._frames: deque[WebSocketFrame] = deque()  # data frames whose payload is not yet processed
        self._is_compressed = False  # the latest message

    def decide(self, content: bytes, start: int, *, is_final: bool) -> None:
        """Determine whether the stream is WebSocket from its first bytes."""
        if start > 0:
            self.is_websocket = False
        elif content.startswith(_HANDSHAKES) or any(each.startswith(content) for each in _HANDSHAKES):
            found = _HANDSHAKE.match(content[:HANDSHAKE_BYTES_MAX])
            self._next = found.end() if found else 0
            ended = b"\r\n\r\n" in content or len(content) >= HANDSHAKE_BYTES_MAX or is_final
            self.is_websocket = True if found else False if ended else None
        else:
            self.is_websocket = _begins_with_masked_frames(content, is_final=is_final)

    def joined(self, content: bytes, start: int, begin: int, *, is_final: bool) -> JoinedBytes:
        """Return the payload in the content from index `begin` on. start: the content's stream offset."""
        end = start + len(content)
        self._follow(content, start, end)
        while self._frames and self._frames[0].end <= start + begin:
            self._frames.popleft()
        done = max(min(self._next, end) - start, begin)
        pieces = list(self._pieces(content, start, begin))
        if not self.is_websocket:
            return JoinedBytes.from_pieces([*pieces, (done, content[done:])], len(content), is_final=is_final)
        return JoinedBytes.from_pieces(pieces, done, is_final=is_final or self._is_compressed)

    def _pieces(self, content: bytes, start: int, begin: int) -> Iterator[tuple[int, bytes]]:
        for frame in self._frames:
            first, last = max(frame.begin, start + begin), min(frame.end, start + len(content))
            if first < last:
                yield first - start, frame.unmasked(content[first - start : last - start], first)

    def _follow(self, content: bytes, start: int, end: int) -> None:
        """Read the headers in the content."""
        while start <= self._next < end:
            try:
                frame = read_frame(content, self._next - start, start)
            except ValueError:
                self.is_websocket = False
                return
            if frame is None:
                return
            self._next = frame.end
            if frame.opcode in _CONTROL:
                continue
            if frame.opcode in _DATA:
                self._is_compressed = frame.is_compressed
            if self._is_compressed:
                self.compressed_bytes += frame.end - frame.begin
            else:
                self._frames.append(frame)
        if self._next < start:
            self.is_websocket = False


def _begins_with_masked_frames(content: bytes, *, is_final: bool) -> bool | None:
    """Return whether a client's first two frames are here, or a single one that is all; None if unknown."""
    at = 0
    for number in range(2):
        try:
            frame = read_frame(content, at, 0)
        except ValueError:
            return False
        if frame is None:
            return number > 0 and at == len(content) if is_final else None
        if not frame.key or frame.end - frame.begin > FIRST_FRAME_BYTES_MAX:
            return False
        if number == 0 and (frame.opcode not in _DATA or not frame.is_last):
            return False
        at = frame.end
    return True
