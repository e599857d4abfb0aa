"""The tables of captures, computed once into files, for the many questions of a page."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.sql.cases import CapturesCase, Rows, read_parquet
from analysis.sql.questions import Questions, open_questions
from analysis.sql.tables import TABLES
from analysis.taps.connections import ConnectionTracker
from analysis.taps.crossing import ComparedTaps
from analysis.taps.tables import TapTables
from analysis.timelines.schemas import CONNECTIONS, SILENCES

SPOOLED = ("throughput", "transfers", "messages")
"""Tables written into files beside those of connections; `messages` if they are decoded."""


@dataclass(frozen=True, slots=True)
class SpooledCase(CapturesCase):
    """Captures whose computed tables are in a folder. retransmissions: by capture and second."""

    folder: Path = Path()
    retransmissions: dict[str, Counter[int]] = field(default_factory=dict)

    def rows(self, table: str) -> "Rows | None":
        """See `Case`."""
        file = self.folder / f"{table}.parquet"
        if file.is_file():
            return read_parquet([str(file)], TABLES[table].columns)
        return CapturesCase.rows(self, table)


@dataclass(frozen=True, slots=True)
class TapQuestions:
    """Answers questions about captures."""

    case: SpooledCase
    questions: Questions

    @property
    def compared(self) -> ComparedTaps:
        """The captures with their clocks and paths."""
        return self.case.tables.compared

    def ask(self, question: str) -> list[dict[str, Any]]:
        """Return the rows of an answer."""
        rows: list[dict[str, Any]] = self.questions.ask(question).table().to_pylist()
        return rows


@contextmanager
def spooled(tables: TapTables, folder: Path) -> Iterator[TapQuestions]:
    """Compute the tables into a folder, and answer questions within the block."""
    case = SpooledCase(tables, folder=folder, retransmissions=_follow(tables, folder))
    for name in SPOOLED:
        stream = tables.stream(name)
        if stream is None:
            continue
        with pq.ParquetWriter(folder / f"{name}.parquet", stream.schema) as writer:
            for batch in stream.compute():
                writer.write_batch(batch)
    with open_questions([case]) as questions:
        yield TapQuestions(case, questions)


def _follow(tables: TapTables, folder: Path) -> dict[str, Counter[int]]:
    """Write the tables of connections and silences in one pass; return the retransmissions."""
    found = {}
    with (
        pq.ParquetWriter(folder / "connections.parquet", CONNECTIONS) as connections,
        pq.ParquetWriter(folder / "silences.parquet", SILENCES) as silences,
    ):
        for tap in tables.compared.taps.taps:
            tracker = ConnectionTracker(tap, tables.times, tables.silence_s)
            for ended, silent in tracker.run():
                _write(connections, ended)
                _write(silences, silent)
            found[tap.name] = tracker.retransmissions
    return found


def _write(writer: pq.ParquetWriter, rows: pa.Table) -> None:
    if rows.num_rows:
        writer.write_table(rows)
