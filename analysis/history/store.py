"""A history on disk: runs are appended one by one and read as three tables.

A run is appended as one small file in each table, `runs` last. A run counts when its row in `runs` exists, so
a crash leaves either a complete run or nothing that counts. When a night is over, `compact` merges its files
into one for each table; it also runs earlier if there are many files. A run counts once, whatever process was
killed in between. Files that cannot be read are listed in `problems` and skipped. Only `compact` removes
files, and only those whose rows it has written and read back.

This module also turns records into rows.
"""

import contextlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from analysis.errors import AnalysisError
from analysis.history.files import (
    HistoryPartition,
    foreign,
    named_in,
    nights,
    read_rows,
    write_rows,
)
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
from analysis.history.record import HistoryRecord, check_night, settings_json
from analysis.history.row_checks import UnusableError
from experiments.files.locks import folder_lock
from experiments.files.sanitize import sanitize
from experiments.files.whole_files import sync_folder

TABLES = (METRICS, EXPECTATIONS, RUNS)
"""The order in which tables are written."""
READS_MAX = 10
"""Attempts to read a night that is compacted again and again during the read."""
LOOSE_MAX = 200
"""Single-run files that a night may have: reading one takes as long as reading a thousand rows."""
INT64 = range(-(1 << 63), 1 << 63)


class History:
    """The history in a folder, which may not exist yet. Each read opens the files again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._problems: dict[Path, str] = {}
        self._named: dict[Path, tuple[tuple[int, ...], frozenset[str]]] = {}  # (identity of the file, runs)

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
        if any(self._counted(night, record.run) for night in reversed(self.nights())):
            return False
        try:
            for table, rows in rows_of(record, self._stored(record.path)).items():
                write_rows(self._partition(table, record.night).of_run(record.run), rows)
        except OSError as error:
            raise AnalysisError(
                f"{self.folder}: {record.run} cannot be added to the history: {error.strerror}"
            ) from error
        if len(self._partition(RUNS, record.night).single()) > LOOSE_MAX:
            self.compact(record.night)
        return True

    def compact(self, night: str) -> None:
        """Merge the night's files into one for each table; unreadable files stay as they are.

        The call may be repeated at any time, also after runs were added. Raises AnalysisError if writing
        fails.
        """
        check_night(night)
        try:
            with folder_lock(self._partition(RUNS, night).path, wait=True):
                for table in TABLES:
                    self._compact(table, night)
        except FileNotFoundError:
            return  # a night without runs
        except OSError as error:
            raise AnalysisError(f"{self.folder}: {night} cannot be compacted: {error.strerror}") from error

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
        return rows_of_runs(self._read(table, where), self._runs(where))

    def _runs(self, where: HistoryFilter) -> pa.Table:
        return where.of_runs(self._read(RUNS, where))

    def _read(self, table: str, where: HistoryFilter) -> pa.Table:
        for path in foreign(self.folder, table):
            self._problems[path] = "is not a night of the history: left out"
        found = []
        for night in filter(where.night, nights(self.folder, table)):
            rows = self._steady(table, night)
            found.append(rows.add_column(1, NIGHT, pa.repeat(pa.scalar(night), rows.num_rows)))
        return pa.concat_tables(found) if found else shown_schema(table).empty_table()

    def _steady(self, table: str, night: str) -> pa.Table:
        """Return all rows of a night. If another process compacts the night meanwhile, read it again."""
        for _ in range(READS_MAX):
            with contextlib.suppress(FileNotFoundError):
                return self._night(table, night)
        raise AnalysisError(f"{self._partition(table, night).path}: its files keep vanishing")

    def _night(self, table: str, night: str) -> pa.Table:
        """Return the night's current rows. Raises FileNotFoundError if a file disappears during the read.

        Single-run files whose rows are compacted already do not count. They are listed first: the rows of a
        file that disappears later are in the file of the whole night.
        """
        partition = self._partition(table, night)
        files = partition.single()
        for path in partition.foreign():
            self._problems[path] = "is not a file of the history: left out"
        whole = [self._rows(partition.whole, table)] if partition.whole.exists() else []
        there = set(pc.unique(whole[0]["run"]).to_pylist()) if whole else set()
        single = [self._rows(path, table, run) for run, path in files.items() if run not in there]
        rows = pa.concat_tables([SCHEMAS[table].empty_table(), *whole, *single]).combine_chunks()
        return rows.take(pc.sort_indices(rows["run"])) if whole and single else rows

    def _rows(self, path: Path, table: str, run: str | None = None) -> pa.Table:
        """Return a file's rows, or none if the file cannot be used. run: name that all rows must have."""
        try:
            return read_rows(path, table, run)
        except UnusableError as error:
            self._problems[path] = f"{error}: left out"
            return SCHEMAS[table].empty_table()

    def _partition(self, table: str, night: str) -> HistoryPartition:
        return HistoryPartition.for_night(self.folder, table, night)

    def _counted(self, night: str, run: str) -> bool:
        partition = self._partition(RUNS, night)
        if not (partition.of_run(run).exists() or run in self._named_in(partition.whole)):
            return False
        for path, whose in ((partition.of_run(run), run), (partition.whole, None)):
            with contextlib.suppress(FileNotFoundError):
                if pc.is_in(pa.scalar(run), self._rows(path, RUNS, whose)["run"]).as_py():
                    return True
        return False

    def _named_in(self, path: Path) -> frozenset[str]:
        """Return the runs that a night's file names. The file is read once until it changes."""
        try:
            found = path.stat()
        except OSError:
            return frozenset()
        version = (found.st_ino, found.st_size, found.st_mtime_ns)
        if path not in self._named or self._named[path][0] != version:
            self._named[path] = (version, named_in(path))
        return self._named[path][1]

    def _compact(self, table: str, night: str) -> None:
        partition = self._partition(table, night)
        single = partition.single()
        if not single:
            return
        self._forget(RUNS, table)
        counted = self._read(RUNS, HistoryFilter(since=night, until=night))
        rows = self._read(table, HistoryFilter(since=night, until=night))
        if {partition.whole, self._partition(RUNS, night).whole} & set(self._problems):
            return  # the rows compacted before would be lost
        rows = rows_of_runs(rows, counted).drop_columns([NIGHT])
        write_rows(partition.whole, rows)
        if not read_rows(partition.whole, table).equals(rows):
            raise AnalysisError(f"{partition.whole} is not what was written: is the disk failing?")
        for run in sorted(set(single) & set(counted["run"].to_pylist())):
            if single[run] not in self._problems:  # keep damaged files for inspection
                single[run].unlink()
        sync_folder(partition.path)

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
