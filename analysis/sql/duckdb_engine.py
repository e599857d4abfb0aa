"""DuckDB as the engine: no Java, an answer on a small run within a second.

It reads Parquet files as Arrow's data sets, so that columns of another version's tables are null here as in
Spark, and touches nothing itself: no file, no network, no extension.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

import duckdb
import pyarrow as pa
from duckdb.func import FunctionNullHandling, PythonUDFType
from duckdb.sqltypes import DuckDBPyType
from pyarrow import dataset

from analysis.errors import AnalysisError
from analysis.sql.functions import Function
from analysis.sql.questions import Answer, Case, prepare

BATCH_ROWS: Final = 65_536
_CLOSED: Final = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
}


@contextmanager
def duckdb_engine(cases: Sequence[Case]) -> Iterator["DuckDbEngine"]:
    """An engine that knows these runs, in this process' memory."""
    connection = duckdb.connect(config=dict(_CLOSED))
    try:
        engine = DuckDbEngine(connection)
        prepare(engine, cases)
        connection.execute("SET lock_configuration = true")
        yield engine
    finally:
        connection.close()


class DuckDbEngine:
    """See `analysis.sql.questions.Engine`."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._connection = connection

    def add_files(self, name: str, files: Sequence[str], columns: pa.Schema) -> None:
        """See `Engine`."""
        self._connection.register(name, dataset.dataset(list(files), schema=columns, format="parquet"))

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
        """See `Engine`."""
        with _said_in_a_line():
            relation = self._connection.sql(query)
            if relation is None:
                raise AnalysisError("that is no question: SELECT, DESCRIBE or the like gives rows")
            reader = relation.to_arrow_reader(BATCH_ROWS)
        columns = pa.schema([field.with_type(_narrow(field.type)) for field in reader.schema])
        return Answer(columns, _read(reader, columns))


def _read(reader: pa.RecordBatchReader, columns: pa.Schema) -> Iterator[pa.RecordBatch]:
    with _said_in_a_line():
        for batch in reader:
            yield batch if batch.schema == columns else batch.cast(columns)


def _narrow(kind: pa.DataType) -> pa.DataType:
    """64 bits, as Spark has them, for the 128 of a sum of whole numbers."""
    return pa.int64() if pa.types.is_decimal(kind) and kind.scale == 0 else kind


@contextmanager
def _said_in_a_line() -> Iterator[None]:
    """Raises AnalysisError for what DuckDB, or one of our functions within it, says."""
    try:
        yield
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        raise AnalysisError(_line(str(error))) from error


def _line(said: str) -> str:
    """What is wrong, without the query, which DuckDB shows again below."""
    ours = f"{AnalysisError.__name__}: "
    text = said.rpartition(ours)[2] if ours in said else said.partition("\n\nLINE ")[0]
    return " ".join(text.split())
