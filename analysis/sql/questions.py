"""Runs, and captures without a run, as the views of one database, for any engine.

Each table has a part for each *case*, a run or some captures. Its view is the union of the parts, with the
case's name as first column. A case without a table contributes no rows.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

import pyarrow as pa

from analysis.errors import AnalysisError, raise_not_analysed
from analysis.sql import records
from analysis.sql.functions import RunSpan, SqlFunction, functions, span
from analysis.sql.streams import TableStream
from analysis.sql.tables import TABLES, SqlTable, has_bins
from analysis.taps.tables import OF_RUNS, TapTables, stream_of_run
from experiments.records.run_record import RunRecord
from experiments.records.rundir import RunDirectory
from topologies.errors import InputError

if TYPE_CHECKING:
    from analysis.sql.dialect import Translation


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

    def add_part(self, engine: "SqlEngine", part: str, name: str, table: SqlTable) -> bool:
        """Add its part of a table to an engine; return whether it has one."""
        if table.rows is not None:
            engine.add_rows(part, table.rows_of_run(self.run, self.record))
            return True
        if name in OF_RUNS:
            engine.add_stream(part, stream_of_run(self.run, name))
            return True
        files = self.files(name)
        if files:
            engine.add_files(part, files, table.columns)
        return bool(files)

    def files(self, table: str) -> list[str]:
        """Return the Parquet files of a table of the analysis; none if the run has no such table."""
        path = self.run.table(table)
        found = sorted(path.glob("[!.]*.parquet")) if path.is_dir() else [path]
        return [str(each.absolute()) for each in found if each.is_file() and _is_text(each)]


class SqlEngine(Protocol):
    """An SQL engine."""

    def add_files(self, name: str, files: Sequence[str], columns: pa.Schema) -> None:
        """Add a relation of files with these columns; files may lack some."""

    def add_rows(self, name: str, rows: pa.Table) -> None:
        """Add a relation of these rows."""

    def add_stream(self, name: str, rows: TableStream) -> None:
        """Add a relation of rows that are computed when a query reads them."""

    def add_view(self, name: str, select: str) -> None:
        """Add a view."""

    def add_function(self, name: str, function: SqlFunction) -> None:
        """Add a function."""

    def literal(self, text: str) -> str:
        """Quote a text as an SQL literal."""

    def answer(self, question: "Translation") -> "QueryResult":
        """Answer a question. Raises AnalysisError if it fails."""


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The result of a query: columns, and batches of rows as they are computed."""

    columns: pa.Schema
    batches: Iterator[pa.RecordBatch]

    def table(self) -> pa.Table:
        """Return all rows."""
        return pa.Table.from_batches(list(self.batches), self.columns)


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
        if not case.run.summary_json.is_file():
            raise_not_analysed(case.run)
    return list(cases.values())


class Questions:
    """Answers questions about runs on an engine, to which it adds the tables that they name."""

    def __init__(self, engine: SqlEngine, cases: "Sequence[Case]") -> None:
        """Add the functions to the engine."""
        self._engine, self._cases = engine, cases
        self._added: set[str] = set()
        spans = [found for case in cases if (found := case.span) is not None]
        for name, function in functions(spans).items():
            engine.add_function(name, function)

    def ask(self, question: str) -> QueryResult:
        """Return the answer. Raises AnalysisError that names the part of the question that is wrong."""
        from analysis.sql.dialect import located, translate  # noqa: PLC0415 - a prompt opens without it

        translation = translate(question, self._columns)
        for table in translation.tables:
            self.add(table)
        try:
            answer = self._engine.answer(translation)
        except AnalysisError as error:
            said = str(error)
            raise AnalysisError(located(question, said) if "Binder Error" in said else said) from error
        columns = distinct(_renamed(answer.columns, translation.columns))
        return QueryResult(columns, (batch.rename_columns(columns.names) for batch in answer.batches))

    def ask_plainly(self, question: str) -> QueryResult:
        """Return the answer to a question of our own, in the engine's words."""
        from analysis.sql.dialect import Translation  # noqa: PLC0415 - a prompt opens without it

        tables = tuple(name for name in TABLES if re.search(rf"\b{name}\b", question))
        for table in tables:
            self.add(table)
        return self._engine.answer(Translation(question, question, (), tables))

    def literal(self, text: str) -> str:
        """Quote a text as a literal for `ask_plainly`."""
        return self._engine.literal(text)

    def add(self, name: str) -> None:
        """Add a table to the engine, if it is not there yet."""
        if name in self._added:
            return
        table, engine = TABLES[name], self._engine
        parts = [
            (part, case)
            for number, case in enumerate(self._cases)
            if case.add_part(engine, part := f"{name}__{number}", name, table)
        ]
        if not parts:
            engine.add_rows(f"{name}__0", table.columns.empty_table())
            parts = [(f"{name}__0", self._cases[0])]
        engine.add_view(name if name != RUNS else f"{RUNS}__all", _view(engine, table, parts))
        if name == RUNS:
            self._add_settings()
        self._added.add(name)

    def _add_settings(self) -> None:
        """Add the view `runs`: its columns, followed by every setting as a column."""
        self._engine.add_rows("settings__all", self._settings)
        columns = "".join(f", s.{name}" for name in self._settings.column_names[1:])
        select = f"SELECT r.*{columns} FROM {RUNS}__all r JOIN settings__all s ON r.run = s.run"  # noqa: S608
        self._engine.add_view(RUNS, select)

    @cached_property
    def _settings(self) -> pa.Table:
        of_cases = {case.name: case.settings for case in self._cases}
        return records.settings_table({name: each for name, each in of_cases.items() if each is not None})

    def _columns(self, table: str) -> dict[str, str] | None:
        """Return the types of a table's columns, in Spark's words; None if there is no such table."""
        if table not in TABLES:
            return None
        found = dict.fromkeys(columns_of(table), "string")
        found |= {"t_ns": "bigint"} if has_bins(TABLES[table].columns) else {}
        settings = self._settings.schema if table == RUNS else pa.schema([])
        return found | {each.name: spark_type(each.type) for each in (*TABLES[table].columns, *settings)}


RUNS = "runs"
"""The table that has the runs' settings in addition to its own columns."""


def spark_type(kind: pa.DataType) -> str:
    """Return the name that Spark has for a type of our tables."""
    if pa.types.is_list(kind):
        return f"array<{spark_type(kind.value_type)}>"
    if pa.types.is_struct(kind):
        return f"struct<{', '.join(f'{each.name}: {spark_type(each.type)}' for each in kind)}>"
    return _SPARK_TYPES.get(str(kind), str(kind))


_SPARK_TYPES: Final = {"bool": "boolean", "int32": "int", "int64": "bigint"}


def _renamed(columns: pa.Schema, names: Sequence[str]) -> pa.Schema:
    assert len(columns) == len(names), "a translation has the columns of its question"
    return pa.schema([field.with_name(name) for field, name in zip(columns, names, strict=True)])


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
        return RunSpan(self.name, taps.zero_ns, taps.end_ns, taps.zero_ns, ())

    @property
    def settings(self) -> dict[str, Any] | None:
        """See `RunCase`."""
        return None

    def add_part(self, engine: "SqlEngine", part: str, name: str, table: SqlTable) -> bool:
        """See `RunCase`."""
        stream = self.tables.stream(name)
        if stream is not None:
            engine.add_stream(part, stream)
        return stream is not None


Case: TypeAlias = RunCase | CapturesCase
"""A run, or captures without one, in the database."""


def _view(engine: SqlEngine, table: SqlTable, parts: Sequence[tuple[str, Case]]) -> str:
    """Return the query of a view: all parts with the run's name and, if rows are bins, their start time.

    Values from runs are quoted as literals.
    """
    selects = []
    for part, case in parts:
        begin = f", CAST(ROUND(start_s * 1000000000) AS BIGINT) + {case.zero_ns} AS t_ns"
        bins = begin if has_bins(table.columns) else ""
        selects.append(f"SELECT {engine.literal(case.name)} AS run, *{bins} FROM {part}")  # noqa: S608
    return " UNION ALL ".join(selects)


def _is_text(path: Path) -> bool:
    """Return whether a path is valid Unicode, as Arrow requires."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def distinct(columns: pa.Schema) -> pa.Schema:
    """Return the columns with unique names: repeated names get a number."""
    names: list[str] = []
    for name in columns.names:
        numbered = (f"{name}_{number}" for number in range(2, len(columns) + 2))
        names.append(name if name not in names else next(each for each in numbered if each not in names))
    return pa.schema([field.with_name(name) for field, name in zip(columns, names, strict=True)])


def columns_of(table: str) -> list[str]:
    """Return the names of a table's columns in queries."""
    own = TABLES[table].columns
    return ["run", *own.names, *(["t_ns"] if has_bins(own) else [])]
