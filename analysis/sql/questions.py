"""One or many runs as the views of one database, whichever engine answers.

Of each table there is a part for each run; the view puts the parts together, with the run's name before the
columns. A run that lacks a table has no rows of it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import pyarrow as pa

from analysis.errors import refuse
from analysis.sql import records
from analysis.sql.functions import Function, functions, span
from analysis.sql.tables import TABLES, Table, has_bins
from experiments.records.run_record import RunRecord
from experiments.records.rundir import RunDirectory
from topologies.errors import InputError


@dataclass(frozen=True, slots=True)
class Case:
    """A run that is asked about."""

    run: RunDirectory
    record: RunRecord

    @property
    def name(self) -> str:
        """What the column `run` says."""
        return self.run.full_name

    def files(self, table: str) -> list[str]:
        """The Parquet files of a table of the analysis; none if the run has no such table."""
        path = self.run.table(table)
        found = sorted(path.glob("[!.]*.parquet")) if path.is_dir() else [path]
        return [str(each.absolute()) for each in found if each.is_file() and _is_text(each)]


class Engine(Protocol):
    """Who answers in SQL."""

    def add_files(self, name: str, files: Sequence[str], columns: pa.Schema) -> None:
        """A relation of these files, which have these columns, or had fewer once."""

    def add_rows(self, name: str, rows: pa.Table) -> None:
        """A relation of these rows."""

    def add_view(self, name: str, select: str) -> None:
        """A view."""

    def add_function(self, name: str, function: Function) -> None:
        """A function."""

    def literal(self, text: str) -> str:
        """A text as it stands in a query."""

    def ask(self, query: str) -> "Answer":
        """Answer a question. Raises AnalysisError that says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a question gives: its columns, and its rows as they come."""

    columns: pa.Schema
    batches: Iterator[pa.RecordBatch]

    def table(self) -> pa.Table:
        """All rows at once."""
        return pa.Table.from_batches(list(self.batches), self.columns)


def read_cases(runs: Sequence[RunDirectory]) -> list[Case]:
    """The runs, each once. Raises InputError for one that cannot be read, or was not analysed, and for two of
    the same name, which nothing would tell apart.
    """
    cases: dict[str, Case] = {}
    for run in runs:
        case = Case(run, run.read_run())
        other = cases.setdefault(case.name, case)
        if not other.run.path.samefile(run.path):
            problem = f"has the same name as {other.run.path}: ask one of them, or rename it"
            raise InputError(str(run.path), None, "", problem)
    for case in cases.values():
        if not case.run.summary_json.is_file():
            refuse(case.run)
    return list(cases.values())


def prepare(engine: Engine, cases: Sequence[Case]) -> None:
    """Give an engine all tables of these runs, and the functions."""
    for name, table in TABLES.items():
        parts = [
            (part, case)
            for number, case in enumerate(cases)
            if _add_part(engine, part := f"{name}__{number}", name, table, case)
        ]
        if not parts:
            engine.add_rows(f"{name}__0", table.columns.empty_table())
            parts = [(f"{name}__0", cases[0])]
        engine.add_view(name if name != RUNS else f"{RUNS}__all", _view(engine, table, parts))
    _add_settings(engine, cases)
    spans = [span(case.name, case.record, list(records.faults(case.run, case.record))) for case in cases]
    for name, function in functions([each for each in spans if each is not None]).items():
        engine.add_function(name, function)


RUNS = "runs"
"""The table that has the settings of the runs beside its own columns."""


def _add_part(engine: Engine, part: str, name: str, table: Table, case: Case) -> bool:
    if table.rows is not None:
        engine.add_rows(part, table.of(case.run, case.record))
        return True
    files = case.files(name)
    if files:
        engine.add_files(part, files, table.columns)
    return bool(files)


def _view(engine: Engine, table: Table, parts: Sequence[tuple[str, Case]]) -> str:
    """All parts with the run's name, and where rows are bins, with the time at which each begins.

    What comes from runs stands in it as literals.
    """
    selects = []
    for part, case in parts:
        zero_ns = case.record.times.zero_ns or 0
        begin = f", CAST(ROUND(start_s * 1000000000) AS BIGINT) + {zero_ns} AS t_ns"
        bins = begin if has_bins(table.columns) else ""
        selects.append(f"SELECT {engine.literal(case.name)} AS run, *{bins} FROM {part}")  # noqa: S608
    return " UNION ALL ".join(selects)


def _add_settings(engine: Engine, cases: Sequence[Case]) -> None:
    """The view `runs`: its columns, and after them every setting as a column."""
    settings = records.settings_table({case.name: records.settings(case.record) for case in cases})
    engine.add_rows("settings__all", settings)
    columns = "".join(f", s.{name}" for name in settings.column_names[1:])
    select = f"SELECT r.*{columns} FROM {RUNS}__all r JOIN settings__all s ON r.run = s.run"  # noqa: S608
    engine.add_view(RUNS, select)


def _is_text(path: Path) -> bool:
    """Whether a path has a name that Arrow takes."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def distinct(columns: pa.Schema) -> pa.Schema:
    """The columns, none of whose names stands there twice: what comes again gets a number."""
    names: list[str] = []
    for name in columns.names:
        numbered = (f"{name}_{number}" for number in range(2, len(columns) + 2))
        names.append(name if name not in names else next(each for each in numbered if each not in names))
    return pa.schema([field.with_name(name) for field, name in zip(columns, names, strict=True)])


def columns_of(table: str) -> list[str]:
    """The columns of a table, as a question may name them."""
    own = TABLES[table].columns
    return ["run", *own.names, *(["t_ns"] if has_bins(own) else [])]
