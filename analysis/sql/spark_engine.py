"""The Spark engine: for runs too large for one machine, or a cluster with the runs at the same path."""

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
from py4j.protocol import Py4JError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as spark_functions
from pyspark.sql.datasource import DataSource, DataSourceReader, InputPartition
from pyspark.sql.types import StructType

from analysis.errors import AnalysisError
from analysis.jobs.spark import cause
from analysis.schemas import spark_schema
from analysis.session import spark_session
from analysis.sql.functions import SqlFunction
from analysis.sql.questions import Case, QueryResult, Questions
from analysis.sql.streams import TableStream

if TYPE_CHECKING:
    from analysis.sql.dialect import Translation

_SETTINGS: Final = {"spark.sql.ansi.enabled": "true", "spark.sql.caseSensitive": "false"}
_TYPES: Final = {"VARCHAR": "string", "DOUBLE": "double", "BOOLEAN": "boolean", "BIGINT": "bigint"}


def spark_questions(cases: Sequence[Case], master: str | None = None) -> Questions:
    """Open a new session for questions about these runs. Raises AnalysisError if Spark fails."""
    return Questions(SparkEngine(spark_session(master).newSession()), cases)


def spark_frame(case: Case, table: str, master: str | None = None) -> DataFrame:
    """Return a table of a run as a Spark data frame. Raises AnalysisError if Spark fails."""
    session = spark_session(master).newSession()
    Questions(SparkEngine(session), [case]).add(table)
    return session.table(table)


class SparkEngine:
    """The engine of Spark; see `analysis.sql.questions.SqlEngine`."""

    def __init__(self, session: SparkSession) -> None:
        """Use a session of its own. Settings that change answers are set, since a cluster has its own."""
        self._session = session
        for name, value in _SETTINGS.items():
            session.conf.set(name, value)

    def add_files(self, name: str, files: Sequence[str], columns: pa.Schema) -> None:
        """See `SqlEngine`."""
        frame = self._session.read.schema(spark_schema(columns)).parquet(*map(_plain, files))
        frame.createOrReplaceTempView(name)

    def add_rows(self, name: str, rows: pa.Table) -> None:
        """See `SqlEngine`."""
        self._session.createDataFrame(rows, spark_schema(rows.schema)).createOrReplaceTempView(name)

    def add_stream(self, name: str, rows: TableStream) -> None:
        """See `SqlEngine`."""
        self._session.dataSource.register(_source(name, rows))
        self._session.read.format(name).load().createOrReplaceTempView(name)

    def add_view(self, name: str, select: str) -> None:
        """See `SqlEngine`."""
        self._session.sql(f"CREATE OR REPLACE TEMPORARY VIEW {name} AS {select}")

    def add_function(self, name: str, function: SqlFunction) -> None:
        """See `SqlEngine`."""
        call, kinds = function.call, tuple(function.parameters)
        over_arrays: Any = spark_functions
        taken = over_arrays.arrow_udf(_of_arrays(call, len(kinds)), _TYPES[function.gives])
        self._session.udf.register(name, taken)

    def literal(self, text: str) -> str:
        """See `SqlEngine`."""
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    def answer(self, question: "Translation") -> QueryResult:
        """See `SqlEngine`."""
        try:
            table = self._session.sql(question.spark).toArrow()
        except (PySparkException, Py4JError) as error:
            said = cause(error).removeprefix(f"{AnalysisError.__module__}.{AnalysisError.__name__}: ")
            raise AnalysisError(said) from error
        return QueryResult(table.schema, iter(table.to_batches()))


def _source(name: str, rows: TableStream) -> type[DataSource]:
    """Return a data source of this name that computes the rows in one task."""
    schema = spark_schema(rows.schema)
    called = name

    class StreamReader(DataSourceReader):
        def read(self, partition: InputPartition) -> Iterator[Any]:
            return rows.compute()

    class StreamSource(DataSource):
        @classmethod
        def name(cls) -> str:
            return called

        def schema(self) -> StructType:
            return schema

        def reader(self, schema: StructType) -> StreamReader:
            return StreamReader()

    return StreamSource


def _plain(path: str) -> str:
    """Escape a path, so that Hadoop does not interpret it as a pattern."""
    return re.sub(r"([\\*?\[\]{}])", r"\\\1", path)


def _of_arrays(call: Any, parameters: int) -> Any:
    """Return the function with this number of parameters, annotated as Spark requires."""

    def one(a: pa.Array) -> pa.Array:
        return call(a)

    def two(a: pa.Array, b: pa.Array) -> pa.Array:
        return call(a, b)

    return {1: one, 2: two}[parameters]
