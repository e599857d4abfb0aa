"""Answers questions about runs and captures: their tables as views of one DuckDB database in memory.

A question is DuckDB's SQL, executed as it is. It only reads: DuckDB may not access files, the network or
extensions, and its settings are locked. The rows come from outside as Arrow.

Each table has a part for each *case*, a run or some captures. Its view is the union of the parts, with the
case's name as first column. A case without a table contributes no rows.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Final, TypeVar

import duckdb
import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType
from duckdb.sqltypes import DuckDBPyType

from analysis.errors import AnalysisError
from analysis.sql import records
from analysis.sql.cases import Case
from analysis.sql.functions import ip, literal, macros
from analysis.sql.tables import TABLES, has_bins
from topologies.strict import suggestion

Given = TypeVar("Given")

BATCH_ROWS: Final = 65_536
RUNS: Final = "runs"
"""The table that has the runs' settings in addition to its own columns."""
_CLOSED: Final = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "python_enable_replacements": "false",  # a name is a table, never a variable of this program
    "temp_directory": "",  # refuse queries that exceed the memory instead of spilling to disk
}
_SHOW_TABLES: Final = re.compile(r"\s*SHOW\s+(ALL\s+)?TABLES\s*;?\s*", re.IGNORECASE)
_READING: Final = {duckdb.StatementType.SELECT, duckdb.StatementType.MULTI}
"""Statements that return rows: SELECT, FROM, VALUES, DESCRIBE and so on; MULTI is PIVOT."""


@dataclass(frozen=True, slots=True)
class QueryResult:
    """The result of a query: columns, and batches of rows as they are computed."""

    columns: pa.Schema
    batches: Iterator[pa.RecordBatch]

    def table(self) -> pa.Table:
        """Return all rows."""
        return pa.Table.from_batches(list(self.batches), self.columns)


@contextmanager
def open_questions(cases: Sequence[Case]) -> "Iterator[Questions]":
    """Open a database for questions about these runs or captures."""
    with closing(duckdb.connect(config=dict(_CLOSED))) as connection, ThreadPoolExecutor(1) as thread:
        with _short_errors():
            connection.execute("SET lock_configuration = true")
            questions = Questions(connection, thread, cases)
        yield questions


class Questions:
    """Answers questions about runs in a database, to which it adds the tables that they name."""

    def __init__(
        self, connection: duckdb.DuckDBPyConnection, thread: ThreadPoolExecutor, cases: Sequence[Case]
    ) -> None:
        """Add the functions. thread: runs the queries."""
        self._connection, self._thread, self._cases = connection, thread, cases
        self._added: set[str] = set()
        spans = [found for case in cases if (found := case.span) is not None]
        integer, text = DuckDBPyType("BIGINT"), DuckDBPyType("VARCHAR")
        null = FunctionNullHandling.SPECIAL
        connection.create_function(
            "ip", ip, [integer, integer], text, type=PythonUDFType.ARROW, null_handling=null
        )
        for name, definition in macros(spans).items():
            connection.execute(f"CREATE MACRO {name} AS {definition}")

    def divided(self, text: str) -> list[str]:
        """Return the questions in a text, which `;` separates. Raises AnalysisError as `ask` does."""
        with _short_errors():
            statements = self._connection.extract_statements(text)
        for each in statements:
            if each.type not in _READING:
                word = next(iter(re.findall(r"\w+", each.query)), "")
                raise AnalysisError(f"{word}: only statements that return rows are allowed, as SELECT")
        return [each.query for each in statements]

    def ask(self, question: str) -> QueryResult:
        """Return the answer. Raises AnalysisError that names the part of the question that is wrong."""
        if len(self.divided(question)) != 1:
            raise AnalysisError("a single question is needed: SELECT ... without another one behind `;`")
        if _SHOW_TABLES.fullmatch(question):  # DuckDB has only those that earlier questions named
            there = (
                name for name in sorted(TABLES) if any(case.rows(name) is not None for case in self._cases)
            )
            question = f"SELECT unnest([{', '.join(map(self.literal, there))}]) AS name"
        for word in set(re.findall(r"\w+", question.lower())) & TABLES.keys():
            self.add(word)
        reader = self._done(lambda: self._reader(question))
        columns = distinct(pa.schema([field.with_type(_number(field.type)) for field in reader.schema]))
        return QueryResult(columns, self._batches(reader, columns))

    def _reader(self, question: str) -> pa.RecordBatchReader:
        try:
            return self._connection.sql(question).to_arrow_reader(BATCH_ROWS)
        except duckdb.Error:
            self._connection.execute(f"EXPLAIN {question}")  # its error has the line and words
            raise

    def _batches(self, reader: pa.RecordBatchReader, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        with closing(reader):  # an open result would keep the database from the next question
            while (batch := self._done(lambda: next(reader, None))) is not None:
                try:
                    yield batch.rename_columns(columns.names).cast(columns)
                except pa.ArrowInvalid:
                    raise AnalysisError("a number exceeds 64 bits: cast it, as in sum(x::DOUBLE)") from None

    def _done(self, work: Callable[[], Given]) -> Given:
        """Run the work in a thread, because DuckDB in the main thread would ignore Ctrl-C."""
        with _short_errors():
            doing = self._thread.submit(work)
            try:
                return doing.result()
            except KeyboardInterrupt:
                self._connection.interrupt()
                wait([doing])
                raise

    literal = staticmethod(literal)

    def add(self, name: str) -> None:
        """Add a table, if it is not there yet: all parts with the run's name and, if rows are bins, their
        start time.
        """
        if name in self._added:
            return
        columns, selects = TABLES[name].columns, []
        for number, case in enumerate(self._cases):
            rows = case.rows(name)
            self._connection.register(f"{name}__{number}", columns.empty_table() if rows is None else rows)
            begin = f", CAST(round(start_s * 1000000000) AS BIGINT) + {case.zero_ns} AS t_ns"
            bins = begin if has_bins(columns) else ""
            selects.append(f"SELECT {self.literal(case.name)} AS run, *{bins} FROM {name}__{number}")  # noqa: S608
        view = " UNION ALL ".join(selects)
        if name == RUNS:
            of_cases = {case.name: found for case in self._cases if (found := case.settings) is not None}
            self._connection.register("settings__all", records.settings_table(of_cases))
            view = f"SELECT * FROM ({view}) JOIN settings__all USING (run)"  # noqa: S608
        self._connection.execute(f"CREATE VIEW {name} AS {view}")
        self._added.add(name)


@contextmanager
def _short_errors() -> Iterator[None]:
    """Turn errors of DuckDB, and of our functions within it, into AnalysisError with one line."""
    try:
        yield
    except (duckdb.Error, pa.ArrowException, OSError, UnicodeError) as error:
        raise AnalysisError(_line(str(error))) from error


def _line(message: str) -> str:
    """Return DuckDB's error on one line that begins with the line and words of the question."""
    ours = f"{AnalysisError.__name__}: "
    if ours in message:
        return " ".join(message.rpartition(ours)[2].split())
    text, _, place = message.partition("\n\nLINE ")
    unknown = re.search(r"Table with name (\S+) does not exist!", text)
    if unknown:
        text = f"there is no table {unknown[1]}{suggestion(unknown[1], TABLES)}"
    text = " ".join(text.partition("\n\tCandidate")[0].split())
    text = re.sub(r"^[A-Z][A-Za-z ]* Error: |,? (?:or|Use) \"?SET .*$", "", text)
    shown, _, marks = place.partition("\n")
    number, _, _ = shown.partition(":")
    words = f"LINE {shown}"[marks.find("^") : marks.rfind("^") + 1] if "^" in marks else ""
    return (
        f"line {number}: `{words}`: {text}" if words.strip() else f"line {number}: {text}" if place else text
    )


def _number(kind: pa.DataType) -> pa.DataType:
    """Return BIGINT for sums of integers and DOUBLE for other decimals: programs have no wider numbers."""
    if not pa.types.is_decimal(kind):
        return kind
    return pa.float64() if kind.scale else pa.int64()


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
