"""Scapy's hook for streams: whole messages out of the data that its TCPSession collected.

Scapy (2.5 to 2.8) forgets how far it got once it has given all data of a direction out, so a segment that
is sent again afterwards comes as new data; and one that is sent again earlier is put before what is left of
a message. Both are undone here, with what the session remembers of each direction.
"""

from dataclasses import dataclass
from typing import Any

from scapy.config import conf
from scapy.packet import Packet

from node.core.errors import RemoteProtocolError
from node.core.framing import FRAME_LIMIT_BYTES, HEADER_BYTES, read_header

_SEQUENCE_NUMBERS = 1 << 32
_REPEATED_MAX = 1 << 20  # bytes: farther back it is another connection with the same ports


@dataclass(slots=True)
class _Direction:
    """How far messages were given out, as a sequence number, and the start of the next one."""

    end: int | None = None
    left: bytes = b""


def whole_frames(data: bytes) -> list[tuple[int, int]]:
    """Length and type of every whole frame at the beginning of the data, up to a bad header."""
    view, start, found = memoryview(data), 0, []
    while len(view) - start >= HEADER_BYTES:
        try:
            length, kind = read_header(view, start, FRAME_LIMIT_BYTES)
        except RemoteProtocolError:
            break
        if len(view) - start < length:
            break
        found.append((length, kind))
        start += length
    return found


def tcp_reassemble(
    cls: type[Packet], data: bytes, metadata: dict[str, Any], session: dict[str, Any]
) -> Packet | None:
    """Whole messages, with the start of the next one as padding; None where there is no whole one yet.

    After a bad header there are no more messages: the nodes close the connection there. The bytes are given
    as they are. Without the metadata of TCP (a socket, or data that was left) the data is taken as it is.
    """
    direction = _Direction()
    if "ident" in metadata:
        direction = session.setdefault(repr(metadata["ident"]), direction)
    start = _repeated(direction, data, metadata)
    data = data[start:]
    end = sum(length for length, _ in whole_frames(data))
    rest = data[end:]
    if direction.end is None or not direction.left:
        direction.end = metadata.get("seq", 0) + start
    if _is_bad(rest):
        end, rest = len(data), b""
    direction.end = (direction.end + end) % _SEQUENCE_NUMBERS
    direction.left = rest
    if not end:
        return None
    packet = cls(data[:end])
    if rest:
        packet.add_payload(conf.padding_layer(rest))
    return packet


def _repeated(direction: _Direction, data: bytes, metadata: dict[str, Any]) -> int:
    """Bytes at the beginning of the data that were given out before."""
    if direction.left:
        return max(0, data.find(direction.left))
    if direction.end is None or "seq" not in metadata:
        return 0
    behind = (direction.end - metadata["seq"]) % _SEQUENCE_NUMBERS
    return min(behind, len(data)) if behind <= _REPEATED_MAX else 0


def _is_bad(rest: bytes) -> bool:
    """Whether this begins with a header that is none."""
    if len(rest) < HEADER_BYTES:
        return False
    try:
        read_header(memoryview(rest), 0, FRAME_LIMIT_BYTES)
    except RemoteProtocolError:
        return True
    return False
