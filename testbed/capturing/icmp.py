"""ICMP echoes (RFC 792) and the internet checksum (RFC 1071).

Needs only the standard library and supports old Python versions: it is sent to machines together with
programs (`testbed.machines.software.deploy`).
"""

from __future__ import annotations

import struct
from typing import NamedTuple

_HEADER = struct.Struct("!BBHHH")  # type, code, checksum, identifier, sequence number
_REQUEST, _REPLY = 8, 0
IP_AND_ICMP_BYTES = 20 + _HEADER.size


class EchoReply(NamedTuple):
    """A received echo reply."""

    identifier: int
    sequence: int
    payload: bytes


def echo_request(identifier: int, sequence: int, payload: bytes) -> bytes:
    """Build an echo request for a raw socket."""
    checksum = internet_checksum(_HEADER.pack(_REQUEST, 0, 0, identifier, sequence) + payload)
    return _HEADER.pack(_REQUEST, 0, checksum, identifier, sequence) + payload


def echo_reply(packet: bytes) -> EchoReply | None:
    """Parse the echo reply in an IPv4 packet from a raw socket; return None for any other packet."""
    start = (packet[0] & 0x0F) * 4
    if len(packet) < start + _HEADER.size:
        return None
    kind, _, _, identifier, sequence = _HEADER.unpack_from(packet, start)
    return EchoReply(identifier, sequence, packet[start + _HEADER.size :]) if kind == _REPLY else None


def internet_checksum(data: bytes | bytearray) -> int:
    """Return the ones' complement of the ones' complement sum of 16-bit words; odd data is padded with 0."""
    data = data + b"\0" * (len(data) % 2)
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF
