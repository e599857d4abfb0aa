"""All TLS connections of one host's capture: collects their streams, and finds events after the last packet.

Unreadable bytes of a stream are counted as undecoded, and its row of DECODING gives the reason.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from analysis.arrays import Bools, Bytes
from analysis.capture.markers import MarkerSearch
from analysis.capture.pcap.decode import DecodingCounts, Emit
from analysis.capture.pcap.reassemble import SettledRange
from analysis.capture.tls.plaintext import StreamPlaintext
from analysis.capture.tls.records import APPLICATION, HEADER, TlsRecord, TlsRecords
from analysis.capture.tls.sessions import ROW, SessionShare, TlsSession, TlsSessions, TlsStream
from analysis.capture.tls.tshark import Tshark
from analysis.errors import AnalysisError
from analysis.schemas import DECODING
from experiments.records.key_log import client_randoms

EMPTY_BYTES_MAX = 24
"""The largest body of a record without payload: the cipher's overhead. It need not be decrypted."""
NO_KEY_LOG = "no key log of TLS connections was kept"
NO_KEYS = "the key log has no keys of the TLS connection"
NOT_DECRYPTED = "tshark did not decrypt records of the TLS connection, though the key log has keys of it"
_COUNTS_ROWS = 4_096


@dataclass(frozen=True, slots=True)
class TlsKeys:
    """The key log with which to read TLS, if there is one. why_not: the reason if there is none."""

    key_log: Path | None
    why_not: str = NO_KEY_LOG


class TlsConnections:
    """All TLS connections of one capture, during and after the reading of its streams. A context manager."""

    def __init__(self, markers: MarkerSearch, keys: TlsKeys, folder: Path) -> None:
        """folder: for temporary files, needed until all is decrypted."""
        self._markers = markers
        self._keys = keys
        self._folder = folder
        self._sessions = TlsSessions(folder)

    def __enter__(self) -> "TlsConnections":
        return self

    def __exit__(self, *_: object) -> None:
        self._sessions.close()

    def decoder(self, data: Bytes, names: Mapping[str, Any], *, synchronised: bool) -> "TlsDecoder":
        """Return the decoder of a new stream."""
        records = TlsRecords(data, self._markers, names, synchronised=synchronised)
        return TlsDecoder(records, self._sessions)

    def settled(self) -> None:
        """Write the records of a completed time window."""
        self._sessions.write()

    def end(self, emit: Emit, ended: list[tuple[dict[str, Any], "TlsDecoder"]]) -> None:
        """Decrypt all records, and emit the events and the counts.

        ended: rows of DECODING without decoding counts, each with the decoder that has them.
        """
        self._sessions.write()
        self._sessions.close()
        for batch in self._events() if self._sessions.shares else ():
            emit("messages", batch)
        for first in range(0, len(ended), _COUNTS_ROWS):
            rows = [row | asdict(decoder.counts) for row, decoder in ended[first : first + _COUNTS_ROWS]]
            emit("decoding", pa.RecordBatch.from_pylist(rows, schema=DECODING))

    def _events(self) -> Iterator[pa.RecordBatch]:
        shares = [Decryption(each, self._sessions.streams, self._markers) for each in self._sessions.shares]
        try:
            key_log, tshark = self._means()
            known = client_randoms(key_log)
        except (AnalysisError, OSError) as error:
            for share in shares:
                share.give_up(str(error))
            return
        for share in shares:
            yield from share.events(tshark, key_log, known)
            share.remove()

    def _means(self) -> tuple[Path, Tshark]:
        """Return the key log and tshark. Raises AnalysisError if either is missing."""
        if self._keys.key_log is None:
            raise AnalysisError(self._keys.why_not)
        profile = self._folder / "profile"
        profile.mkdir()
        return self._keys.key_log, Tshark(profile)


class TlsDecoder:
    """The decoder of one stream, for `CaptureStreams`."""

    def __init__(self, records: TlsRecords, sessions: TlsSessions) -> None:
        self._records = records
        self._sessions = sessions
        self._stream: TlsStream | None = None

    @property
    def counts(self) -> DecodingCounts:
        """The counts so far."""
        return self._records.counts

    def decode(self, part: SettledRange | None, *, ended: bool) -> Iterator[pa.RecordBatch]:
        """Return the events of a cleartext stream; events in TLS follow after the last packet."""
        taken: list[TlsRecord] = []
        yield from self._records.decode(part, ended=ended, take=taken.append)
        if taken and self._stream is None:
            self._stream = self._sessions.stream(self._records.names, self._records.counts)
        for record in taken:
            assert self._stream is not None
            self._sessions.take(self._stream, self._records, record)


class Decryption:
    """One share of a capture's connections."""

    def __init__(self, share: SessionShare, streams: Sequence[TlsStream], markers: MarkerSearch) -> None:
        """streams: the streams of all shares, by number."""
        self._share = share
        self._streams = streams
        self._markers = markers
        self._rows = np.memmap(share.rows, ROW, "r")  # a share has at least the record that began it

    def give_up(self, why: str) -> None:
        """Count all records as unread, with this reason."""
        nothing = np.zeros(self._rows.size, np.uint8)
        self._note_unread(nothing.astype(np.bool_), nothing, lambda _: why)

    def events(self, tshark: Tshark, key_log: Path, known: frozenset[bytes]) -> Iterator[pa.RecordBatch]:
        """Decrypt the share and search it for events. known: the client randoms with keys in the key log."""
        is_read, kinds = np.zeros(self._rows.size, np.bool_), bytearray(self._rows.size)
        found: dict[int, StreamPlaintext] = {}
        failure = ""
        try:
            sessions = len(self._share.sessions)
            for place, plaintext in tshark.decrypted(self._share.capture, key_log, sessions, kinds):
                is_read[place] = True
                number = int(self._rows["stream"][place])
                if number not in found:
                    found[number] = StreamPlaintext(self._streams[number], self._markers)
                yield from found[number].add(self._rows[place], plaintext)
        except AnalysisError as error:
            failure = str(error)
        for each in found.values():
            yield from each.search(is_final=True)

        def why(session: TlsSession) -> str:
            return failure or (NOT_DECRYPTED if session.client_random in known else NO_KEYS)

        self._note_unread(is_read, np.frombuffer(kinds, np.uint8), why)

    def remove(self) -> None:
        """Remove the share's files, to free the disk for the next share."""
        self._share.capture.unlink()
        self._share.rows.unlink()

    def _note_unread(
        self, is_read: Bools, kinds: npt.NDArray[np.uint8], why: Callable[[TlsSession], str]
    ) -> None:
        """Count each stream's unread bytes and note the reason. kinds: 0 if unknown."""
        rows = self._rows
        is_application = (rows["kind"] == APPLICATION) & ((kinds == APPLICATION) | (kinds == 0))
        unread = ~is_read & is_application & (rows["length"] > HEADER.size + EMPTY_BYTES_MAX)
        numbers, lengths = rows["stream"][unread], rows["length"][unread]
        for number in np.unique(numbers).tolist():
            stream = self._streams[number]
            assert stream.session is not None
            stream.counts.stopped = stream.counts.stopped or why(stream.session)
            stream.counts.undecoded_bytes += int(lengths[numbers == number].sum())
