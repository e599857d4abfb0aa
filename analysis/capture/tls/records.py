"""The TLS records of one TCP direction (RFC 8446, 5.1; RFC 5246, 6.2.1).

A stream is TLS if its first bytes are a record header; any other stream is searched for markers directly.
Records are cut by their lengths and passed on, up to the first gap in the stream. Bytes after a gap cannot be
decrypted, not even by the receiver; they are counted.
"""

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from analysis.arrays import Bytes
from analysis.capture.markers import MarkerDecoder, MarkerSearch
from analysis.capture.pcap.decode import DecodingCounts, KnownRange, seen_columns
from analysis.capture.pcap.frames import contents, copy_pieces, runs
from analysis.capture.pcap.reassemble import SettledRange

CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE, APPLICATION = 20, 21, 22, 23
HEARTBEAT = 24
KINDS = frozenset((CHANGE_CIPHER_SPEC, ALERT, HANDSHAKE, APPLICATION, HEARTBEAT))
HEADER = struct.Struct(">BBBH")  # kind, version, length
MAJOR_VERSION = 3  # of everything since SSL 3.0
BODY_BYTES_MAX = (1 << 14) + 2048
NO_BEGINNING = "the beginning of the TLS connection is not in the capture"


@dataclass(frozen=True, slots=True)
class TlsRecord:
    """One record. at: stream offset of its first byte. first_ns: when its first byte was seen. complete_ns:
    when it and everything before it had arrived. is_repeated: whether some of it was retransmitted.
    """

    at: int
    data: bytes
    first_ns: int
    complete_ns: int
    is_repeated: bool

    @property
    def kind(self) -> int:
        """The content type; encrypted records of TLS 1.3 always have application data (RFC 8446, 5.2)."""
        return self.data[0]


Take = Callable[[TlsRecord], None]


class TlsRecords:
    """Cuts one stream, given in parts as to `MarkerDecoder`, into records; finds events in cleartext."""

    def __init__(
        self, data: Bytes, markers: MarkerSearch, names: Mapping[str, Any], *, synchronised: bool
    ) -> None:
        self._data = data
        self._synchronised = synchronised
        self._clear = MarkerDecoder(data, markers, names)
        self._waiting: list[SettledRange] = []  # until it is known whether the stream is TLS
        self._counts = DecodingCounts()
        self._known = KnownRange.nothing()
        self._position = 0  # everything before was cut into records
        self._has_ended = False  # no further records can be read
        self.is_tls: bool | None = None
        self.names = names

    @property
    def counts(self) -> DecodingCounts:
        """The counts so far."""
        return self._counts if self.is_tls else self._clear.counts

    def stop(self, why: str) -> None:
        """Read no further records, for this reason."""
        self._counts.stopped = self._counts.stopped or why
        self._has_ended = True

    def decode(self, part: SettledRange | None, *, ended: bool, take: Take) -> Iterator[pa.RecordBatch]:
        """Cut the records that the stream's next part completes. ended: no part follows."""
        self._waiting += [part] if part is not None else []
        if self.is_tls is None:
            self.is_tls = self._looks_like(ended=ended)
        if self.is_tls is None:
            return
        parts, self._waiting = self._waiting, []
        for place, each in enumerate(parts):
            is_last = place == len(parts) - 1
            if self.is_tls:
                self._follow(each, take)
            else:
                yield from self._clear.decode(each, ended=ended and is_last)
        if self.is_tls and ended:
            self._counts.unfinished_bytes += self._rest() if not self._has_ended else 0
        elif not parts and ended:
            yield from self._clear.decode(None, ended=True)

    def _looks_like(self, *, ended: bool) -> bool | None:
        """Return whether the stream is TLS, by its first bytes; None until they have arrived."""
        if not self._waiting:
            return False if ended else None
        pieces = self._waiting[0].pieces
        if not self._synchronised:
            self.stop(NO_BEGINNING)
            return True
        if pieces.start[0] > 0:
            self._has_ended = True  # as after any other gap
            return True
        begin = b""
        for part in self._waiting:
            begin += copy_pieces(self._data, part.pieces, 0, HEADER.size)  # a piece has at least one byte
            if len(begin) >= HEADER.size:
                return _is_header(begin, 0)
        return False if ended else None

    def _follow(self, part: SettledRange, take: Take) -> None:
        self._known = self._known.with_next(part)
        if not self._has_ended:
            pieces = self._known.pieces
            for first, last in runs(pieces) if pieces.start.size else ():
                if int(pieces.start[first]) > self._position:
                    self._has_ended = True  # bytes are missing: no record after them can be decrypted
                    break
                self._walk(first, last, take)
                if self._has_ended:
                    break
        if self._has_ended:
            self._counts.undecoded_bytes += self._rest()
            self._known = self._known.after(np.iinfo(np.int64).max)
        else:
            self._known = self._known.after(self._position)

    def _rest(self) -> int:
        pieces = self._known.pieces
        if not pieces.start.size:
            return 0
        return int(np.maximum(pieces.end - np.maximum(pieces.start, self._position), 0).sum())

    def _walk(self, first: int, last: int, take: Take) -> None:
        """Cut the pieces from first to last, which have no gap between them."""
        pieces = self._known.pieces
        for content, start, _ in contents(self._data, pieces, first, last, lambda: self._position):
            self._cut(content, start, take)
            if self._has_ended:
                return

    def _cut(self, content: bytes, content_start: int, take: Take) -> None:
        begins, sizes = [], []
        at = self._position - content_start
        while at + HEADER.size <= len(content):
            if not _is_header(content, at):
                self.stop(f"no TLS record begins at byte {content_start + at}")
                break
            size = HEADER.size + HEADER.unpack_from(content, at)[3]
            if at + size > len(content):
                break
            begins.append(at)
            sizes.append(size)
            at += size
        self._position = content_start + at
        if not begins:
            return
        start, length = np.array(begins, np.int64) + content_start, np.array(sizes, np.int64)
        seen = seen_columns(start, length, self._known)
        columns = (seen[name].to_pylist() for name in ("t_first_ns", "t_complete_ns", "retransmitted"))
        for begin, size, first_ns, complete_ns, again in zip(begins, sizes, *columns, strict=True):
            # no record is cut after the first gap, so complete_ns is known
            take(
                TlsRecord(begin + content_start, content[begin : begin + size], first_ns, complete_ns, again)
            )


def _is_header(content: bytes, at: int) -> bool:
    kind, major, _, length = HEADER.unpack_from(content, at)
    return kind in KINDS and major == MAJOR_VERSION and length <= BODY_BYTES_MAX
