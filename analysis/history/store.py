"""A history on disk: runs are appended one by one and read as three tables.

A run is appended by writing the night's file of each table again, `runs` last. A run counts when its row in
`runs` exists, so a crash leaves either a complete run or nothing that counts. Files that cannot be read are
listed in `problems` and skipped; a damaged file that is in the way of a run gets another name and stays.

This module also turns records into rows.
"""

import os
from collections.abc import Iterable, Mapping
from itertools import count
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from analysis.errors import AnalysisError
from analysis.history.files import files_of, foreign, named_in, night_file, nights, read_rows, write_rows
from analysis.history.history_schemas import (
    EVERYTHING,
    EXPECTATIONS,
    METRICS,
    NIGHT,
    RUNS,
    SCHEMA,
    SCHEMAS,
    HistoryFilter,
    rows_of_runs,
    shown_schema,
)
from analysis.history.record import HistoryRecord, settings_json
from analysis.history.row_checks import UnusableError
from experiments.files.locks import folder_lock
from experiments.files.sanitize import sanitize

TABLES = (METRICS, EXPECTATIONS, RUNS)
"""The order in which tables are written."""

INT64 = range(-(1 << 63), 1 << 63)


class History:
    """The history in a folder, which may not exist yet. Each read opens the files again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._problems: dict[Path, str] = {}

    @property
    def problems(self) -> list[str]:
        """Files that the last read skipped, each with the reason, as printable text."""
        return [sanitize(f"{path} {why}") for path, why in sorted(self._problems.items())]

    def nights(self) -> list[str]:
        """Return the nights that have runs, oldest first."""
        return nights(self.folder, RUNS)

    def append(self, record: HistoryRecord) -> bool:
        """Add a run. Returns False and changes nothing if the run is already in the history, in any night.

        Raises AnalysisError if the run cannot be written.
        """
        night = night_file(self.folder, RUNS, record.night).parent
        added = rows_of(record, self._stored(record.path))
        try:
            night.mkdir(parents=True, exist_ok=True)
            with folder_lock(night, wait=True, needed=False):
                if any(self._counted(each, record.run) for each in reversed(self.nights())):
                    return False
                for table in TABLES:
                    self._add(table, record, added[table])
        except OSError as error:
            raise AnalysisError(
                f"{self.folder}: {record.run} cannot be added to the history: {error.strerror}"
            ) from error
        return True

    def runs(self, where: HistoryFilter = EVERYTHING) -> pa.Table:
        """Return a row for each run, by night and name. `path` is its directory, or empty."""
        self._forget(RUNS)
        return self._with_paths(self._runs(where))

    def metrics(self, where: HistoryFilter = EVERYTHING) -> pa.Table:
        """Return a row for each run and metric."""
        return self._of_runs(METRICS, where)

    def expectations(self, where: HistoryFilter = EVERYTHING) -> pa.Table:
        """Return a row for each run and expectation."""
        return self._of_runs(EXPECTATIONS, where)

    def tables(self, where: HistoryFilter = EVERYTHING) -> tuple[pa.Table, pa.Table, pa.Table]:
        """Return runs, metrics and expectations of the same runs; the runs are read once."""
        self._forget(*TABLES)
        runs = self._runs(where)
        metrics, expectations = (
            rows_of_runs(self._read(table, where), runs) for table in (METRICS, EXPECTATIONS)
        )
        return self._with_paths(runs), metrics, expectations

    def _of_runs(self, table: str, where: HistoryFilter) -> pa.Table:
        self._forget(RUNS, table)
        runs = self._runs(where)  # first: a run that is appended meanwhile has its other rows already
        return rows_of_runs(self._read(table, where), runs)

    def _runs(self, where: HistoryFilter) -> pa.Table:
        return where.of_runs(self._read(RUNS, where))

    def _read(self, table: str, where: HistoryFilter) -> pa.Table:
        for path in foreign(self.folder, table):
            self._problems[path] = "is not a file of the history: left out"
        found = []
        for night in filter(where.night, nights(self.folder, table)):
            rows = self._night(table, night)
            found.append(rows.add_column(1, NIGHT, pa.repeat(pa.scalar(night), rows.num_rows)))
        return pa.concat_tables(found) if found else shown_schema(table).empty_table()

    def _night(self, table: str, night: str) -> pa.Table:
        """Return the night's rows by run. The rows of a run count in the first file that has any."""
        rows = SCHEMAS[table].empty_table()
        for path in files_of(self.folder, table, night):
            try:
                found = read_rows(path, table)
            except UnusableError as error:
                self._problems[path] = f"{error}: left out"
                continue
            new = pc.invert(pc.is_in(found["run"], rows["run"].combine_chunks()))
            rows = pa.concat_tables([rows, found.filter(new)])
        return rows.combine_chunks().sort_by("run")

    def _counted(self, night: str, run: str) -> bool:
        if not any(run in named_in(path) for path in files_of(self.folder, RUNS, night)):
            return False
        return bool(pc.is_in(pa.scalar(run), self._night(RUNS, night)["run"].combine_chunks()).as_py())

    def _add(self, table: str, record: HistoryRecord, added: pa.Table) -> None:
        """Write the night's file again with these rows; rows that a crash left of this run go."""
        file = night_file(self.folder, table, record.night)
        self._forget(table)
        rows = self._night(table, record.night)
        if file in self._problems:
            names = (file.with_suffix(f".damaged{number or ''}") for number in count())
            file.rename(next(name for name in names if not name.exists()))
        write_rows(file, pa.concat_tables([rows.filter(pc.not_equal(rows["run"], record.run)), added]))

    def _forget(self, *tables: str) -> None:
        """Drop the problems of these tables; the next read finds them again."""
        for path in list(self._problems):
            if any(self.folder / table in path.parents for table in tables):
                del self._problems[path]

    def _stored(self, path: str) -> str:
        """Return the path relative to the history's folder, so that history and runs can move together."""
        return os.path.relpath(path, self.folder.absolute()) if path else ""

    def _with_paths(self, runs: pa.Table) -> pa.Table:
        base = self.folder.absolute()
        paths = [os.path.normpath(base / path) if path else "" for path in runs["path"].to_pylist()]
        column = runs.schema.get_field_index("path")
        return runs.set_column(column, runs.schema.field(column), pa.array(paths, pa.string()))


_COPIED_FIELDS = (
    "path", "experiment", "repeat", "commit", "cutset", "python", "kernel", "links", "place",
    "outcome", "verdict", "valid", "allow_failure", "started_ns", "duration_s", "captures_bytes",
)  # fmt: skip


def rows_of(record: HistoryRecord, path: str) -> dict[str, pa.Table]:
    """Return a record's rows in each table. path: its directory as the history stores it.

    Raises AnalysisError if a number is too large for its column.
    """
    key = {"schema": SCHEMA, "run": record.run, "suite": record.suite, "entry": record.entry}
    run = {
        **key,
        **{name: getattr(record, name) for name in _COPIED_FIELDS},
        "path": path,
        "seed": record.seed if record.seed in INT64 else None,
        "large_seed": "" if record.seed in INT64 else str(record.seed),
        "settings": settings_json(record.settings),
        "machine": settings_json(record.machine),
        "reasons": list(record.reasons),
        "problems": list(record.problems),
    }
    metrics = (
        {**key, "metric": metric.name, "value": metric.value, "unit": metric.unit, "better": metric.better}
        for metric in record.metrics
    )
    expectations = (
        {**key, "text": each.text, "value": each.value, "held": each.held} for each in record.expectations
    )
    return {
        METRICS: _table(METRICS, metrics),
        EXPECTATIONS: _table(EXPECTATIONS, expectations),
        RUNS: _table(RUNS, [run]),
    }


def _table(table: str, rows: Iterable[Mapping[str, Any]]) -> pa.Table:
    try:
        return pa.Table.from_pylist(list(rows), schema=SCHEMAS[table])
    except (pa.ArrowException, OverflowError) as error:
        raise AnalysisError(f"a row of the history's {table} cannot be written: {error}") from None
