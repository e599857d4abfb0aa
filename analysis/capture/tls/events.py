"""Events in the TLS connections of one host's capture: their markers, in what tshark makes of the records.

The plaintext of a stream's records is searched as a stream in the clear is (`analysis.capture.markers`). An
event stands in its stream where its bytes would if they were not encrypted: today's ciphers keep bytes in
their places, from the record's header on (some of TLS 1.2 have 8 bytes between), so the packets that carry it
are found by its place.

Nobody can read a record before it is whole, for its end says whether it is genuine. So an event is whole
when the last record with bytes of it was, that is when that record's last segment was there; and its first
byte is dated by when the first such record's was seen.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from analysis.capture.markers import Markers, Written, event_columns, find_markers, message_batch
from analysis.capture.pcap.format import Bytes
from analysis.capture.pcap.reassemble import SettledRange
from analysis.capture.tls.records import APPLICATION, HEADER, TlsRecords
from analysis.capture.tls.sessions import ROW, Sessions, Share, TlsStream
from analysis.capture.tls.tshark import Tshark
from analysis.errors import AnalysisError
from analysis.schemas import DECODING
from experiments.key_log import client_randoms

Emit = Callable[[str, pa.RecordBatch], None]

SEARCHED_BYTES = 1 << 18
"""Plaintext of a stream is searched so many bytes at a time."""
EMPTY_BYTES_MAX = 24
"""Of the body of a record without payload: what the cipher adds. It need not be decrypted."""
NO_KEY_LOG = "no key log of TLS connections was kept"
NO_KEYS = "the key log has no keys of the TLS connection"
NOT_DECRYPTED = "tshark did not decrypt records of the TLS connection, though the key log has keys of it"
_COUNTS_ROWS = 4_096


@dataclass(frozen=True, slots=True)
class TlsKeys:
    """How to read TLS: by this key log, if there is one. why_not: why there is none."""

    key_log: Path | None
    why_not: str = NO_KEY_LOG


class TlsConnections:
    """All TLS connections of one capture, while its streams come and when they have. A context manager."""

    def __init__(self, markers: Markers, keys: TlsKeys, folder: Path) -> None:
        """folder: for files that are only needed until all is decrypted."""
        self._markers = markers
        self._keys = keys
        self._folder = folder
        self._sessions = Sessions(folder)

    def __enter__(self) -> "TlsConnections":
        return self

    def __exit__(self, *_: object) -> None:
        self._sessions.close()

    def decoder(self, data: Bytes, names: Mapping[str, Any], *, synchronised: bool) -> "TlsDecoder":
        """Of a stream that has begun."""
        records = TlsRecords(data, self._markers, names, synchronised=synchronised)
        return TlsDecoder(records, self._sessions)

    def settled(self) -> None:
        """What came since the last time is all that there is of that time."""
        self._sessions.write()

    def end(self, emit: Emit, ended: list[tuple[dict[str, Any], "TlsDecoder"]]) -> None:
        """Decrypt all, and hand out the events and the counts. ended: rows of DECODING without what decoders
        count, with theirs.
        """
        self._sessions.write()
        self._sessions.close()
        for share, events in self._decrypted():
            for batch in events:
                emit("messages", batch)
            share.capture.unlink()
            share.rows.unlink()
        for first in range(0, len(ended), _COUNTS_ROWS):
            rows = [row | asdict(decoder.counts) for row, decoder in ended[first : first + _COUNTS_ROWS]]
            emit("decoding", pa.RecordBatch.from_pylist(rows, schema=DECODING))

    def _decrypted(self) -> Iterator[tuple[Share, Iterator[pa.RecordBatch]]]:
        shares, streams = self._sessions.shares, self._sessions.streams
        if not shares:
            return
        try:
            known, tshark = self._means()
        except AnalysisError as error:
            for share in shares:
                yield share, Decryption(share, streams, self._markers, frozenset()).none(str(error))
            return
        for share in shares:
            decryption = Decryption(share, streams, self._markers, known)
            yield share, decryption.events(tshark, self._key_log)

    @property
    def _key_log(self) -> Path:
        if self._keys.key_log is None:
            raise AnalysisError(self._keys.why_not)
        return self._keys.key_log

    def _means(self) -> tuple[frozenset[bytes], Tshark]:
        """What it takes to decrypt. Raises AnalysisError if something is missing."""
        try:
            known = client_randoms(self._key_log)
        except OSError as error:
            raise AnalysisError(f"the key log of TLS connections cannot be read: {error}") from error
        profile = self._folder / "profile"
        profile.mkdir()
        return known, Tshark(profile)


class TlsDecoder:
    """One stream, as `Conversations` takes it."""

    def __init__(self, records: TlsRecords, sessions: Sessions) -> None:
        self._records = records
        self._sessions = sessions
        self._stream: TlsStream | None = None

    @property
    def counts(self) -> Any:
        """What was found."""
        return self._records.counts

    @property
    def names(self) -> Mapping[str, Any]:
        """The columns of its messages."""
        return self._records.names

    def decode(self, part: SettledRange | None, *, ended: bool) -> Iterator[pa.RecordBatch]:
        """Events of a stream in the clear; those of TLS come at the end."""
        taken: list[Any] = []
        yield from self._records.decode(part, ended=ended, take=taken.append)
        if taken and self._stream is None:
            self._stream = self._sessions.stream(self._records.names, self._records.counts)
        for record in taken:
            assert self._stream is not None
            self._sessions.take(self._stream, self._records, record)


class Decryption:
    """One share of a capture's connections."""

    def __init__(
        self, share: Share, streams: list[TlsStream], markers: Markers, known: frozenset[bytes]
    ) -> None:
        """known: client randoms of which there are keys."""
        self._share = share
        self._streams = streams
        self._markers = markers
        self._known = known

    def none(self, why: str) -> Iterator[pa.RecordBatch]:
        """Say that nothing was decrypted."""
        rows = np.memmap(self._share.rows, ROW, "r") if self._share.records else np.zeros(0, ROW)
        self._note_unread(rows, np.zeros(rows.size, np.bool_), rows["kind"], why)
        return iter(())

    def events(self, tshark: Tshark, key_log: Path) -> Iterator[pa.RecordBatch]:
        """Decrypt it and search it."""
        rows = np.memmap(self._share.rows, ROW, "r") if self._share.records else np.zeros(0, ROW)
        is_read, kinds = np.zeros(rows.size, np.bool_), bytearray(rows.size)
        found: dict[int, _Plaintext] = {}
        why = ""
        try:
            for place, plaintext in tshark.decrypted(
                self._share.capture, key_log, len(self._share.sessions), kinds
            ):
                is_read[place] = True
                row = rows[place]
                number = int(row["stream"])
                if number not in found:
                    found[number] = _Plaintext(self._streams[number], self._markers)
                yield from found[number].add(row, plaintext)
        except AnalysisError as error:
            why = str(error)
        for each in found.values():
            yield from each.end()
        self._note_unread(rows, is_read, np.frombuffer(kinds, np.uint8), why)

    def _note_unread(self, rows: Any, is_read: Any, kinds: Any, why: str) -> None:
        """Count what was not read of each stream, and say why. why: of all of them; "" if it is their own."""
        is_application = (rows["kind"] == APPLICATION) & ((kinds == APPLICATION) | (kinds == 0))
        unread = ~is_read & is_application & (rows["length"] > HEADER.size + EMPTY_BYTES_MAX)
        numbers, lengths = rows["stream"][unread], rows["length"][unread]
        for number in np.unique(numbers).tolist():
            stream = self._streams[number]
            assert stream.session is not None
            own = NOT_DECRYPTED if stream.session.client_random in self._known else NO_KEYS
            stream.counts.stopped = stream.counts.stopped or why or own
            stream.counts.undecoded_bytes += int(lengths[numbers == number].sum())


@dataclass(slots=True)
class _Plaintext:
    """What a stream's records held, as far as it was not searched yet. rows: the records that it is of;
    starts: where each begins in it.
    """

    stream: TlsStream
    markers: Markers
    ways: tuple[Written, ...] = field(init=False)
    content: bytes = b""
    more: list[bytes] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    rows: list[Any] = field(default_factory=list)
    size: int = 0

    def __post_init__(self) -> None:
        self.ways = self.markers.written()

    def add(self, row: Any, plaintext: bytes) -> Iterator[pa.RecordBatch]:
        """The next record's."""
        self.starts.append(self.size)
        self.rows.append(row)
        self.more.append(plaintext)
        self.size += len(plaintext)
        if self.size >= SEARCHED_BYTES:
            yield from self._search(is_final=False)

    def end(self) -> Iterator[pa.RecordBatch]:
        """Nothing more comes."""
        yield from self._search(is_final=True)

    def _search(self, *, is_final: bool) -> Iterator[pa.RecordBatch]:
        content = b"".join((self.content, *self.more))
        found = find_markers(content, 0, self.ways, is_final=is_final)
        counts = self.stream.counts
        counts.messages += len(found.at)
        counts.malformed += found.malformed
        counts.unfinished_bytes += found.unfinished_bytes
        if found.at:
            yield self._batch(found.at, found.end, found.stream, found.seq)
        self.content, self.more = content[found.rest :], []
        first = max(int(np.searchsorted(self.starts, found.rest, side="right")) - 1, 0)
        self.starts = [start - found.rest for start in self.starts[first:]]
        self.rows = self.rows[first:]
        self.size = len(self.content)

    def _batch(self, at: list[int], end: list[int], stream: list[int], seq: list[int]) -> pa.RecordBatch:
        starts, rows = np.array(self.starts), np.array(self.rows, ROW)
        begin, last = np.array(at, np.int64), np.array(end, np.int64) - 1
        first_row = np.searchsorted(starts, begin, side="right") - 1
        last_row = np.searchsorted(starts, last, side="right") - 1
        offset = _in_stream(begin, starts, rows, first_row)
        following = _in_stream(last, starts, rows, last_row) + 1
        again = np.concatenate(([0], np.cumsum(rows["again"].astype(np.int64))))
        columns = event_columns(stream, seq, self.markers.size_bytes) | {
            "stream_offset": pa.array(offset),
            "length": pa.array(np.maximum(following - offset, 1)),
            "t_first_ns": pa.array(rows["first_ns"][first_row]),
            "t_complete_ns": pa.array(rows["complete_ns"][last_row]),
            "retransmitted": pa.array(again[last_row + 1] > again[first_row]),
        }
        names = self.stream.names
        kind = pa.scalar(self.markers.type_from(names["src"].as_py()))
        return message_batch({**names, "type": kind}, columns, offset.size)


def _in_stream(at: Any, starts: Any, rows: Any, row: Any) -> Any:
    """Where bytes of the plaintext stand in the stream: within their record."""
    place = np.minimum(HEADER.size + at - starts[row], rows["length"][row].astype(np.int64) - 1)
    return rows["at"][row] + place
