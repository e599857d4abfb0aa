"""The DuckDB engine: needs no Java, and answers queries on a small run within a second.

It reads Parquet files as Arrow data sets, so that columns missing from another version's tables are null, as
in Spark. DuckDB itself may not access files, the network or extensions.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import duckdb
import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType
from duckdb.sqltypes import DuckDBPyType

from analysis.errors import AnalysisError
from analysis.sql.functions import SqlFunction
from analysis.sql.questions import Case, QueryResult, Questions
from analysis.sql.streams import TableStream

if TYPE_CHECKING:
    from analysis.sql.dialect import Translation

Given = TypeVar("Given")

BATCH_ROWS: Final = 65_536
_CLOSED: Final = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "temp_directory": "",  # refuse queries that exceed the memory instead of spilling to disk
}


@contextmanager
def duckdb_questions(cases: Sequence[Case]) -> Iterator[Questions]:
    """Open an in-memory engine for questions about these runs."""
    with closing(duckdb.connect(config=dict(_CLOSED))) as connection, ThreadPoolExecutor(1) as thread:
        engine = DuckDbEngine(connection, thread)
        with _short_errors():
            connection.execute("SET lock_configuration = true")
            questions = Questions(engine, cases)
        yield questions


class DuckDbEngine:
    """The engine of DuckDB; see `analysis.sql.questions.SqlEngine`."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, thread: ThreadPoolExecutor) -> None:
        self._connection, self._thread = connection, thread

    def add_files(self, name: str, files: Sequence[str], columns: pa.Schema) -> None:
        """See `SqlEngine`."""
        from pyarrow.dataset import dataset  # noqa: PLC0415 - captures are no files of tables
        from pyarrow.fs import LocalFileSystem  # noqa: PLC0415

        found = dataset(list(files), schema=columns, format="parquet", filesystem=LocalFileSystem())
        self._connection.register(name, found)

    def add_rows(self, name: str, rows: pa.Table) -> None:
        """See `SqlEngine`."""
        self._connection.register(name, rows)

    def add_stream(self, name: str, rows: TableStream) -> None:
        """See `SqlEngine`."""
        self._connection.register(name, rows)

    def add_view(self, name: str, select: str) -> None:
        """See `SqlEngine`."""
        self._connection.execute(f"CREATE VIEW {name} AS {select}")

    def add_function(self, name: str, function: SqlFunction) -> None:
        """See `SqlEngine`."""
        types: list[Any] = [DuckDBPyType(kind) for kind in function.parameters.values()]
        self._connection.create_function(
            name,
            function.call,
            types,
            DuckDBPyType(function.gives),
            type=PythonUDFType.ARROW,
            null_handling=FunctionNullHandling.SPECIAL,
        )

    def literal(self, text: str) -> str:
        """See `SqlEngine`."""
        return "'" + text.replace("'", "''") + "'"

    def answer(self, question: "Translation") -> QueryResult:
        """See `SqlEngine`. An interrupt also ends the query."""
        reader = self._done(lambda: self._connection.sql(question.duckdb).to_arrow_reader(BATCH_ROWS))
        return QueryResult(reader.schema, self._read(reader))

    def _read(self, reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
        while (batch := self._done(lambda: next(reader, None))) is not None:
            yield batch

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


@contextmanager
def _short_errors() -> Iterator[None]:
    """Turn errors of DuckDB, and of our functions within it, into AnalysisError with one line."""
    try:
        yield
    except (duckdb.Error, pa.ArrowException, OSError, UnicodeError) as error:
        raise AnalysisError(_line(str(error))) from error


def _line(message: str) -> str:
    """Return the error on one line, without the query, which DuckDB appends."""
    ours = f"{AnalysisError.__name__}: "
    text = message.rpartition(ours)[2] if ours in message else message.partition("\n\nLINE ")[0]
    text = text.removeprefix("Invalid Input Error: ")  # raised by error(), in words of ours
    text = re.sub(
        r"(?s)^Conversion Error: Could not convert string '(line \d+: `.*|`.*)' to INT32$", r"\1", text
    )
    return " ".join(text.split()).partition(' Use "SET ')[0]
