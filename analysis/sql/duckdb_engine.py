"""DuckDB as the engine: no Java, an answer on a small run within a second.

It reads Parquet files as Arrow's data sets, so that columns of another version's tables are null here as in
Spark, and touches nothing itself: no file, no network, no extension.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from typing import Any, Final, TypeVar

import duckdb
import pyarrow as pa
import pyarrow.fs
from duckdb.func import FunctionNullHandling, PythonUDFType
from duckdb.sqltypes import DuckDBPyType
from pyarrow import dataset

from analysis.errors import AnalysisError
from analysis.sql.functions import Function
from analysis.sql.questions import Answer, Case, distinct, prepare

Given = TypeVar("Given")

BATCH_ROWS: Final = 65_536
_CLOSED: Final = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "temp_directory": "",  # what does not fit into memory is refused, rather than written
}


@contextmanager
def duckdb_engine(cases: Sequence[Case]) -> Iterator["DuckDbEngine"]:
    """An engine that knows these runs, in this process' memory."""
    with closing(duckdb.connect(config=dict(_CLOSED))) as connection, ThreadPoolExecutor(1) as thread:
        engine = DuckDbEngine(connection, thread)
        with _said_in_a_line():
            prepare(engine, cases)
            connection.execute("SET lock_configuration = true")
        yield engine


class DuckDbEngine:
    """See `analysis.sql.questions.Engine`."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, thread: ThreadPoolExecutor) -> None:
        self._connection, self._thread = connection, thread

    def add_files(self, name: str, files: Sequence[str], columns: pa.Schema) -> None:
        """See `Engine`."""
        found = dataset.dataset(
            list(files), schema=columns, format="parquet", filesystem=pa.fs.LocalFileSystem()
        )
        self._connection.register(name, found)

    def add_rows(self, name: str, rows: pa.Table) -> None:
        """See `Engine`."""
        self._connection.register(name, rows)

    def add_view(self, name: str, select: str) -> None:
        """See `Engine`."""
        self._connection.execute(f"CREATE VIEW {name} AS {select}")

    def add_function(self, name: str, function: Function) -> None:
        """See `Engine`."""
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
        """See `Engine`."""
        return "'" + text.replace("'", "''") + "'"

    def ask(self, query: str) -> Answer:
        """See `Engine`. An interrupt ends the query, too."""
        reader = self._done(lambda: self._open(query))
        columns = distinct(pa.schema([field.with_type(_narrow(field.type)) for field in reader.schema]))
        return Answer(columns, self._read(reader, columns))

    def _open(self, query: str) -> pa.RecordBatchReader:
        relation = self._connection.sql(query)
        if relation is None:
            raise AnalysisError("that is no question: SELECT, DESCRIBE or the like gives rows")
        return relation.to_arrow_reader(BATCH_ROWS)

    def _read(self, reader: pa.RecordBatchReader, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
        while (batch := self._done(lambda: next(reader, None))) is not None:
            with _said_in_a_line():
                yield batch.rename_columns(columns.names).cast(columns)

    def _done(self, work: Callable[[], Given]) -> Given:
        """What it gives, done in a thread: DuckDB in this one would not hear Ctrl-C."""
        with _said_in_a_line():
            doing = self._thread.submit(work)
            try:
                return doing.result()
            except KeyboardInterrupt:
                self._connection.interrupt()
                wait([doing])
                raise


def _narrow(kind: pa.DataType) -> pa.DataType:
    """64 bits, as Spark has them, for the 128 of a sum of whole numbers."""
    return pa.int64() if pa.types.is_decimal(kind) and kind.scale == 0 else kind


@contextmanager
def _said_in_a_line() -> Iterator[None]:
    """Raises AnalysisError for what DuckDB, or one of our functions within it, says."""
    try:
        yield
    except (duckdb.Error, pa.ArrowException, OSError, UnicodeError) as error:
        raise AnalysisError(_line(str(error))) from error


def _line(said: str) -> str:
    """What is wrong, without the query, which DuckDB shows again below."""
    ours = f"{AnalysisError.__name__}: "
    text = said.rpartition(ours)[2] if ours in said else said.partition("\n\nLINE ")[0]
    return " ".join(text.split())
