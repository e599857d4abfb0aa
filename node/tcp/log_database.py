"""A process's log on disk: an SQLite database with one row for each Append, and for what a Rewrite leaves.

SQLite makes a group of operations durable together, with one sync of its write-ahead log. At the next start
it discards what was not completely written when the process or its host crashed, and what follows damage in
the write-ahead log, which looks the same. Each row has a CRC, so that damage of the database is reported and
not served; SQLite's own check covers the rest: the number of rows, their order and their types. An empty file
is a log without data. Blocking; `node.tcp.storage` calls it from a thread.
"""

import sqlite3
import zlib
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from node.core import machine as m
from node.core.errors import RemoteProtocolError, StorageError
from node.core.framing import FRAME_LIMIT_BYTES, frames_in
from node.core.message_layout import Codec

Operation = m.Append | m.Rewrite
FILE = "log.sqlite"
FULL = "SQLITE_FULL"
SETUP = (
    "PRAGMA locking_mode=EXCLUSIVE",  # no other process may use it
    "PRAGMA journal_mode=WAL",
    "PRAGMA synchronous=FULL",  # each transaction is on disk when it is committed
    "PRAGMA journal_size_limit=0",  # otherwise a full disk would still take what fits into the old one
    """CREATE TABLE IF NOT EXISTS log (
       number INTEGER PRIMARY KEY, segment INTEGER NOT NULL, crc INTEGER NOT NULL, frames BLOB NOT NULL
       ) STRICT""",  # so that the check finds damaged types
    "CREATE INDEX IF NOT EXISTS segments ON log (segment)",
)
SELECT = "SELECT segment, number, crc, frames FROM log ORDER BY segment, number"
INSERT = "INSERT INTO log (segment, crc, frames) VALUES (?, ?, ?)"
REMEDY = (
    "Restore the file from a copy; or move its folder away: then the process starts empty and recovers from "
    "its peers"
)


class LogDatabase:
    """The log in one folder, which the first Append makes. codec: of the messages."""

    def __init__(self, folder: Path, codec: Codec, limit_bytes: int = FRAME_LIMIT_BYTES) -> None:
        """Create a log. limit_bytes: of a frame."""
        self.path = folder / FILE
        self._codec = codec
        self._limit_bytes = limit_bytes
        self._database: sqlite3.Connection | None = None

    def read(self) -> Iterator[m.StoredSegment]:
        """Yield the stored segments in order, one in memory at a time.

        Raises StorageError if the log is damaged, or if another process uses it.
        """
        if not self.path.exists():
            return
        try:
            database = self._opened()
            for (problem,) in database.execute("PRAGMA integrity_check(1)"):
                if problem != "ok":
                    raise StorageError(f"{self.path}: {problem}. {REMEDY}")
            for segment, rows in groupby(database.execute(SELECT), lambda row: row[0]):
                yield m.StoredSegment(segment, [message for row in rows for message in self._decoded(*row)])
        except (sqlite3.Error, UnicodeDecodeError) as error:  # Python cannot decode some of SQLite's messages
            name = getattr(error, "sqlite_errorname", "")
            if name == FULL:
                return  # only the creation of the table writes, so nothing was stored yet
            if name == "SQLITE_BUSY":
                problem = f"{self.path} is used by another process; end that one first"
            else:
                problem = f"{self.path}: {error}. {REMEDY}"
            raise StorageError(problem) from error

    def perform(self, operations: Iterable[Operation]) -> None:
        """Execute operations in order and make them durable, all or none. Raises sqlite3.Error or OSError."""
        database = self._opened()
        with database:
            for each in operations:
                if isinstance(each, m.Append):
                    database.execute(INSERT, self._row(each.segment, each.messages))
                    continue
                database.executemany("DELETE FROM log WHERE segment = ?", [(old,) for old in each.segments])
                if each.messages:
                    database.execute(INSERT, self._row(each.segments[0], each.messages))

    def close(self) -> None:
        """Release the file."""
        if self._database is not None:
            self._database.close()
            self._database = None

    def _opened(self) -> sqlite3.Connection:
        if self._database is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            database = sqlite3.connect(self.path, timeout=0, check_same_thread=False)
            try:
                for statement in SETUP:
                    database.execute(statement)
            except sqlite3.Error:
                database.close()
                raise
            self._database = database
        return self._database

    def _row(self, segment: int, messages: Sequence[Any]) -> tuple[int, int, bytes]:
        buffers = (self._codec.encode(message, self._limit_bytes) for message in messages)
        frames = b"".join(buffer for each in buffers for buffer in each)
        return segment, _crc(segment, frames), frames

    def _decoded(self, segment: int, number: int, crc: int, frames: bytes) -> Iterator[Any]:
        if _crc(segment, frames) != crc:
            raise StorageError(f"{self.path}: row {number} is damaged. {REMEDY}")
        try:
            for frame in frames_in(frames, self._limit_bytes):
                yield self._codec.decode(frame)
        except RemoteProtocolError as error:
            raise StorageError(
                f"{self.path}: row {number} has no message of this version: {error}. {REMEDY}"
            ) from error


def _crc(segment: int, frames: bytes) -> int:
    return zlib.crc32(frames, segment)
