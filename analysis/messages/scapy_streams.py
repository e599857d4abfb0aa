"""Scapy's hook for streams: extracts complete messages from the segments that its TCPSession sees.

Scapy (2.5 to 2.8) keeps the data of a direction for the hook, but forgets its position once all data was
consumed. Retransmitted data then looks new, and a segment before or after a gap may be put in the wrong
place. So the hook answers every segment with a packet, often one without messages. Scapy's buffer then always
holds only that segment, and the hook orders the segments itself.
"""

import contextlib
from dataclasses import dataclass, field
from typing import Any

from scapy.config import conf
from scapy.packet import Packet

from node.core.errors import RemoteProtocolError
from node.core.framing import FRAME_LIMIT_BYTES, HEADER_BYTES, frames_in, read_header

_SEQUENCE_NUMBERS = 1 << 32
_REACH_BYTES = 1 << 26  # a larger distance means another connection with the same ports


@dataclass(slots=True)
class _Direction:
    """One direction of a connection: the next sequence number, early segments, and incomplete data."""

    next: int
    early: dict[int, bytes] = field(default_factory=dict)  # by sequence number
    left: bytes = b""
    is_broken: bool = False  # a bad header: there are no more messages

    def take(self, seq: int, data: bytes) -> None:
        """Add a segment. Data that is new and contiguous is appended to `left`."""
        self.early[seq] = max(data, self.early.get(seq, b""), key=len)
        while True:
            ready = [at for at in self.early if self._ahead(at) <= 0]
            if not ready:
                return
            for at in ready:
                fresh = self.early.pop(at)[-self._ahead(at) :]
                self.left += fresh
                self.next = (self.next + len(fresh)) % _SEQUENCE_NUMBERS

    def is_far(self, seq: int) -> bool:
        """Return whether this sequence number cannot belong to this connection."""
        return abs(self._ahead(seq)) > _REACH_BYTES

    def _ahead(self, seq: int) -> int:
        """Return the distance from the expected sequence number; negative if behind."""
        half = _SEQUENCE_NUMBERS // 2
        return (seq - self.next + half) % _SEQUENCE_NUMBERS - half


def complete_frames(data: bytes) -> list[tuple[int, int]]:
    """Return length and type of each complete frame at the beginning of the data, up to a bad header."""
    found: list[tuple[int, int]] = []
    with contextlib.suppress(RemoteProtocolError):
        found.extend((len(frame.whole), frame.type) for frame in frames_in(data))
    return found


def tcp_reassemble(
    cls: type[Packet], data: bytes, metadata: dict[str, Any], session: dict[str, Any]
) -> Packet | None:
    """Return the messages that this segment completes, in a packet of class `cls`.

    After a bad header there are no more messages, as the nodes close the connection there: the remaining
    bytes are returned unparsed.
    """
    if "ident" not in metadata:
        return _of_socket(cls, data)
    if not data:
        return None
    key, seq = repr(metadata["ident"]), metadata["relative_seq"] + 1
    direction = session.get(key)
    if direction is None or direction.is_far(seq):
        direction = session[key] = _Direction(seq)
    direction.take(seq, data)
    end = sum(length for length, _ in complete_frames(direction.left))
    direction.is_broken = direction.is_broken or _is_bad(direction.left[end:])
    if direction.is_broken:
        end = len(direction.left)
    packet, direction.left = cls(direction.left[:end]), direction.left[end:]
    return packet


def _of_socket(cls: type[Packet], data: bytes) -> Packet | None:
    """Return the complete messages in bytes from a socket. The rest is passed in again with later bytes."""
    end = sum(length for length, _ in complete_frames(data))
    rest = data[end:]
    if _is_bad(rest):
        return cls(data)
    if not end:
        return None
    packet = cls(data[:end])
    if rest:
        packet.add_payload(conf.padding_layer(rest))
    return packet


def _is_bad(rest: bytes) -> bool:
    """Return whether this begins with an invalid header."""
    if len(rest) < HEADER_BYTES:
        return False
    try:
        read_header(memoryview(rest), 0, FRAME_LIMIT_BYTES)
    except RemoteProtocolError:
        return True
    return False
