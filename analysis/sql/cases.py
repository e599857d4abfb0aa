"""Runs, and captures without a run, as cases of one database: where each finds the rows of a table."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import pyarrow as pa

from analysis.errors import raise_not_analysed
from analysis.sql import records
from analysis.sql.functions import RunSpan, span
from analysis.sql.streams import TableStream
from analysis.sql.tables import TABLES
from analysis.taps.tables import OF_RUNS, TapTables, stream_of_run
from experiments.records.run_record import RunRecord
from experiments.records.rundir import RunDirectory
from topologies.errors import InputError

if TYPE_CHECKING:
    from pyarrow.dataset import Dataset

Rows: TypeAlias = "pa.Table | TableStream | Dataset"
"""The rows of a table of a case, as DuckDB reads them."""


@dataclass(frozen=True, slots=True)
class RunCase:
    """A run in the database."""

    run: RunDirectory
    record: RunRecord

    @property
    def name(self) -> str:
        """Its value of the column `run`."""
        return self.run.full_name

    @property
    def zero_ns(self) -> int:
        """Its time 0, CLOCK_REALTIME ns."""
        return self.record.times.zero_ns or 0

    @property
    def span(self) -> RunSpan | None:
        """The time that belongs to it; None if it never began."""
        return span(self.name, self.record, list(records.faults(self.run, self.record)))

    @property
    def settings(self) -> dict[str, Any] | None:
        """Its settings by column; None if it has no row in `runs`."""
        return records.settings(self.record)

    def rows(self, table: str) -> "Rows | None":
        """Return its rows of a table; None if it has no such table."""
        if TABLES[table].rows is not None:
            return TABLES[table].rows_of_run(self.run, self.record)
        if table in OF_RUNS:
            return stream_of_run(self.run, table)
        files = self.files(table)
        return read_parquet(files, TABLES[table].columns) if files else None

    def files(self, table: str) -> list[str]:
        """Return the Parquet files of a table of the analysis; none if the run has no such table."""
        path = self.run.table(table)
        found = sorted(path.glob("[!.]*.parquet")) if path.is_dir() else [path]
        return [str(each.absolute()) for each in found if each.is_file() and _is_text(each)]


@dataclass(frozen=True, slots=True)
class CapturesCase:
    """Captures without a run in the database."""

    tables: TapTables
    name: str = "captures"

    @property
    def zero_ns(self) -> int:
        """See `RunCase`."""
        return self.tables.compared.taps.zero_ns

    @property
    def span(self) -> RunSpan | None:
        """See `RunCase`."""
        taps = self.tables.compared.taps
        return RunSpan(self.name, taps.zero_ns, taps.end_ns, taps.zero_ns, frozenset(), ())

    @property
    def settings(self) -> dict[str, Any] | None:
        """See `RunCase`."""
        return None

    def rows(self, table: str) -> "Rows | None":
        """See `RunCase`."""
        return self.tables.stream(table)


Case: TypeAlias = RunCase | CapturesCase
"""A run, or captures without one, in the database."""


def read_cases(runs: Sequence[RunDirectory]) -> list[RunCase]:
    """Return the runs, each once. Raises InputError for a run that cannot be read or was not analysed, and
    for two different runs with the same name.
    """
    cases: dict[str, RunCase] = {}
    for run in runs:
        case = RunCase(run, run.read_run())
        other = cases.setdefault(case.name, case)
        if not other.run.path.samefile(run.path):
            problem = f"has the same name as {other.run.path}: query one of them, or rename it"
            raise InputError(str(run.path), None, "", problem)
    for case in cases.values():
        if not (case.run.summary_json.is_file() and case.run.analysis.is_dir()):
            raise_not_analysed(case.run)
    return list(cases.values())


def read_parquet(files: Sequence[str], columns: pa.Schema) -> "Dataset":
    """Return files of a table with these columns; those missing from an older version's files are null."""
    from pyarrow.dataset import dataset  # noqa: PLC0415 - captures are no files of tables
    from pyarrow.fs import LocalFileSystem  # noqa: PLC0415

    return dataset(list(files), schema=columns, format="parquet", filesystem=LocalFileSystem())


def _is_text(path: Path) -> bool:
    """Return whether a path is valid Unicode, as Arrow requires."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True
