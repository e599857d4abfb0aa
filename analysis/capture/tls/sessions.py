"""Pairs the two streams of each TLS connection, and writes its records to captures for tshark to decrypt.

Records of both directions are written in the order in which they were complete. tshark can follow the
handshake in this order, because an endpoint has a complete record before it answers. Each record is one
packet, between addresses that number the connection, so tshark need not reassemble, and each packet yields
the plaintext of one record. A file of rows beside the capture identifies the record of each packet.

A new capture is begun when one is large. Each capture is decrypted by its own process, whose memory grows
with the capture.
"""

import struct
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from analysis.capture.pcap.decode import DecodingCounts
from analysis.capture.tls.records import HANDSHAKE, HEADER, NO_BEGINNING, TlsRecord, TlsRecords

SHARE_BYTES = 64 << 20
"""A capture of this size takes no further connections."""
SHARE_SESSIONS_MAX = 256
CLIENT_PORT, SERVER_PORT = 40_000, 4433
CLIENT_HELLO = 1  # RFC 8446, section 4
RANDOM_AT, RANDOM_BYTES = HEADER.size + 6, 32  # after the message's type, length and version
ROW = np.dtype(
    [("stream", "<i4"), ("kind", "u1"), ("again", "u1"), ("at", "<i8"), ("length", "<i4"),
     ("first_ns", "<i8"), ("complete_ns", "<i8")]
)  # fmt: skip
_ROW = struct.Struct("<iBBqiqq")
_LINK_RAW_IP, _SNAPLEN = 101, 65_535
_PCAP_HEAD = struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, _SNAPLEN, _LINK_RAW_IP)
_PACKET_HEAD = struct.Struct("<IIII")
_IP = struct.Struct(">BBHHHBBHII")
_TCP = struct.Struct(">HHIIBBHHH")
_CLIENTS, _SERVERS = 10 << 24, 11 << 24  # addresses
_ACK_AND_PUSH = 0x18


@dataclass(slots=True)
class TlsStream:
    """One direction of a connection. names: constant columns of its messages; counts: its decoding."""

    number: int
    names: Mapping[str, Any]
    counts: DecodingCounts
    ends: frozenset[tuple[str, int]]
    session: "TlsSession | None" = None
    is_client: bool = False
    position: int = 0  # in the capture for tshark


@dataclass(slots=True)
class TlsSession:
    """One connection. client_random: its key in a key log; b"" if the first record is too short."""

    share: "SessionShare"
    place: int  # among the connections of its share
    client_random: bytes
    has_server: bool = False


@dataclass(slots=True)
class SessionShare:
    """A capture for tshark, and the rows of its packets."""

    capture: Path
    rows: Path
    packets: BinaryIO
    row_file: BinaryIO
    bytes: int = 0
    records: int = 0
    sessions: list[TlsSession] = field(default_factory=list)

    @property
    def is_full(self) -> bool:
        """Whether the share takes no further connections."""
        return self.bytes >= SHARE_BYTES or len(self.sessions) >= SHARE_SESSIONS_MAX


class TlsSessions:
    """The TLS connections of a capture, whose records come roughly in order of time."""

    def __init__(self, folder: Path) -> None:
        """folder: for temporary files, needed until all is decrypted."""
        self._folder = folder
        self.shares: list[SessionShare] = []
        self.streams: list[TlsStream] = []
        self._latest: dict[frozenset[tuple[str, int]], TlsSession] = {}
        self._waiting: list[tuple[TlsStream, TlsRecords, TlsRecord]] = []
        self._open = ExitStack()

    def stream(self, names: Mapping[str, Any], counts: DecodingCounts) -> TlsStream:
        """Register a new stream."""
        source = names["src"].as_py(), names["sport"].as_py()
        target = names["dst"].as_py(), names["dport"].as_py()
        found = TlsStream(len(self.streams), names, counts, frozenset((source, target)))
        self.streams.append(found)
        return found

    def take(self, stream: TlsStream, source: TlsRecords, record: TlsRecord) -> None:
        """Take the next record of a stream, for the next `write`."""
        self._waiting.append((stream, source, record))

    def write(self) -> None:
        """Write the records taken since the last `write`, in order of time."""
        waiting, self._waiting = self._waiting, []
        for stream, source, record in sorted(waiting, key=lambda each: each[2].complete_ns):
            if stream.session is None and not self._begin(stream, record):
                source.stop(NO_BEGINNING)
                stream.counts.undecoded_bytes += len(record.data)
            if stream.session is not None:
                _write(stream.session, stream, record)

    def close(self) -> None:
        """Close the files. Idempotent."""
        self._open.close()

    def _begin(self, stream: TlsStream, record: TlsRecord) -> bool:
        """Assign the connection of a stream with this first record, and return whether there is one."""
        data = record.data
        if data[0] == HANDSHAKE and data[HEADER.size : HEADER.size + 1] == bytes([CLIENT_HELLO]):
            share = self._share()
            random = data[RANDOM_AT : RANDOM_AT + RANDOM_BYTES]
            session = TlsSession(share, len(share.sessions), random if len(random) == RANDOM_BYTES else b"")
            share.sessions.append(session)
            stream.session = self._latest[stream.ends] = session
            stream.is_client = True
            return True
        answered = self._latest.get(stream.ends)
        if answered is None or answered.has_server:
            return False
        answered.has_server = True
        stream.session = answered
        return True

    def _share(self) -> SessionShare:
        if not self.shares or self.shares[-1].is_full:
            capture, rows = (self._folder / f"{len(self.shares)}.{kind}" for kind in ("pcap", "rows"))
            packets, row_file = (self._open.enter_context(path.open("wb")) for path in (capture, rows))
            packets.write(_PCAP_HEAD)
            self.shares.append(SessionShare(capture, rows, packets, row_file))
        return self.shares[-1]


def _write(session: TlsSession, stream: TlsStream, record: TlsRecord) -> None:
    """Add a packet with one record, and its row."""
    share, data = session.share, record.data
    client, server = (_CLIENTS + session.place, CLIENT_PORT), (_SERVERS + session.place, SERVER_PORT)
    (source, sport), (target, dport) = (client, server) if stream.is_client else (server, client)
    size = _IP.size + _TCP.size + len(data)
    seq = (stream.position + 1) % (1 << 32)
    packet = (
        _PACKET_HEAD.pack(0, share.records % 10**9, size, size)
        + _IP.pack(0x45, 0, size, 0, 0, 64, 6, 0, source, target)
        + _TCP.pack(sport, dport, seq, 0, 0x50, _ACK_AND_PUSH, 0xFFFF, 0, 0)
        + data
    )
    share.packets.write(packet)
    share.row_file.write(
        _ROW.pack(
            stream.number,
            record.kind,
            record.is_repeated,
            record.at,
            len(data),
            record.first_ns,
            record.complete_ns,
        )
    )
    stream.position += len(data)
    share.bytes += len(packet)
    share.records += 1
