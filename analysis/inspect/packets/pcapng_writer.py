"""Writes pcapng: packets of many interfaces in one file, named interfaces, times in nanoseconds.

The file has one little-endian section with an Interface Description Block for each interface before its first
packet, Enhanced Packet Blocks, with a comment if there is one, a Name Resolution Block, so that Wireshark
shows host names, and a Decryption Secrets Block, so that it decrypts TLS. Source: draft-ietf-opsawg-pcapng,
section 3.5 on options and the sections on these blocks. `analysis.capture.pcap.files.pcapng` reads the
format.
"""

import struct
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from typing import BinaryIO

_SECTION, _INTERFACE, _NAMES, _PACKET, _SECRETS = 0x0A0D0D0A, 1, 4, 6, 10
_TLS_KEY_LOG = 0x544C534B  # "TLSK"
_BYTE_ORDER_MAGIC = 0x1A2B3C4D
_LENGTH_UNKNOWN = 0xFFFF_FFFF_FFFF_FFFF
_END, _COMMENT, _APPLICATION, _NAME, _RESOLUTION = 0, 1, 4, 2, 9  # codes of options
_NANOSECONDS = bytes([9])  # if_tsresol: 10^-9 s
_NAME_OF_IPV4, _NAME_OF_IPV6 = 1, 2  # kinds of name records
_PACKET_HEAD = struct.Struct("<IIIIIII")
_PACKET_HEAD_BYTES, _TRAILER_BYTES = _PACKET_HEAD.size, 4
_PADDING = (b"", b"\0\0\0", b"\0\0", b"\0")  # by length modulo 4


class PcapngWriter:
    """Writes the blocks of one file in order."""

    def __init__(self, stream: BinaryIO, application: str, comment: str) -> None:
        """Begin the section. application: the writing program. comment: a note for readers."""
        self._write = stream.write
        self._interfaces = 0
        head = struct.pack("<IHHQ", _BYTE_ORDER_MAGIC, 1, 0, _LENGTH_UNKNOWN)
        about = [(_COMMENT, comment.encode()), (_APPLICATION, application.encode())]
        self._block(_SECTION, head + _options(about))

    def names(self, names: Mapping[str, str]) -> None:
        """Write the names of addresses."""
        records = [
            (
                _NAME_OF_IPV4 if ip_address(address).version == 4 else _NAME_OF_IPV6,
                ip_address(address).packed + name.encode() + b"\0",
            )
            for address, name in names.items()
        ]
        self._block(_NAMES, _options(records))

    def tls_keys(self, key_log: bytes) -> None:
        """Embed a key log in SSLKEYLOGFILE format for all packets that follow."""
        head = struct.pack("<II", _TLS_KEY_LOG, len(key_log))
        self._block(_SECRETS, head + key_log + _PADDING[len(key_log) % 4])

    def interface(self, name: str, link_type: int) -> int:
        """Begin an interface without a snap length. Returns its number."""
        head = struct.pack("<HHI", link_type, 0, 0)
        self._block(_INTERFACE, head + _options([(_NAME, name.encode()), (_RESOLUTION, _NANOSECONDS)]))
        self._interfaces += 1
        return self._interfaces - 1

    def packet(self, interface: int, t_ns: int, data: bytes, wire_length: int, options: bytes = b"") -> None:
        """Add a packet. t_ns: ns since 1970. options: from `comment_option`, or none."""
        padding = _PADDING[len(data) % 4]
        size = _PACKET_HEAD_BYTES + len(data) + len(padding) + len(options) + _TRAILER_BYTES
        head = _PACKET_HEAD.pack(
            _PACKET, size, interface, t_ns >> 32, t_ns & 0xFFFF_FFFF, len(data), wire_length
        )
        self._write(head + data + padding + options + size.to_bytes(4, "little"))

    def _block(self, kind: int, body: bytes) -> None:
        size = struct.pack("<I", 12 + len(body))
        self._write(struct.pack("<I", kind) + size + body + size)


def comment_option(text: str) -> bytes:
    """Return a comment as packet options."""
    return _options([(_COMMENT, text.encode())])


def _options(options: Iterable[tuple[int, bytes]]) -> bytes:
    """Return options or name records, which share a format.

    Each has code, length, and value padded to 32 bits; an end record follows.
    """
    parts = [
        struct.pack("<HH", code, len(value)) + value + _PADDING[len(value) % 4] for code, value in options
    ]
    return b"".join(parts) + struct.pack("<HH", _END, 0)
