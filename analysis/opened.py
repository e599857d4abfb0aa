"""Runs in Python and notebooks: tables as Arrow (hence pandas and Polars) or Spark, and SQL queries.

import analysis

run = analysis.open("latest")
run.table("latency").to_pandas()
run.sql("SELECT client, sum(lost) AS lost FROM deliveries GROUP BY client")
"""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from analysis.errors import AnalysisError
from analysis.sql.cases import RunCase, read_cases
from analysis.sql.questions import open_questions
from analysis.sql.tables import TABLES, has_bins
from experiments.records.run_record import RunRecord
from experiments.records.rundir import RUNS, RunDirectory
from topologies.errors import InputError
from topologies.strict import suggestion

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

LATEST = "latest"


@dataclass(frozen=True, slots=True)
class OpenRun:
    """A run that was analysed."""

    case: RunCase

    @property
    def name(self) -> str:
        """Its name."""
        return self.case.name

    @property
    def path(self) -> Path:
        """Its directory."""
        return self.case.run.path

    @property
    def record(self) -> RunRecord:
        """The record of the run: run.json."""
        return self.case.record

    @property
    def summary(self) -> dict[str, Any]:
        """The results: summary.json. Raises InputError if it cannot be read any more."""
        return self.case.run.read_summary()

    def table(self, name: str) -> pa.Table:
        """Return a table of docs/tables.md. Raises AnalysisError if no table has that name."""
        return self.sql(f"SELECT * FROM {_known(name)}")  # noqa: S608

    def sql(self, question: str) -> pa.Table:
        """Return the answer to a query (docs/sql.md). Raises AnalysisError that names the mistake in it."""
        with open_questions([self.case]) as questions:
            return questions.ask(question).table()

    def spark(self, name: str, master: str | None = None) -> "DataFrame":
        """Return a table in this process's Spark session.

        master: a Spark master URL; None uses this machine's processors. Raises AnalysisError if no table has
        that name or Spark does not start.
        """
        from pyspark.sql.functions import lit  # noqa: PLC0415 - few need Java

        from analysis.schemas import spark_schema  # noqa: PLC0415
        from analysis.session import spark_session  # noqa: PLC0415

        columns = TABLES[_known(name)].columns
        session = spark_session(master).newSession()
        files = self.case.files(name) if TABLES[name].rows is None else []
        if not files or has_bins(columns):
            return session.createDataFrame(self.table(name))
        paths = (re.sub(r"([\\*?\[\]{}])", r"\\\1", path) for path in files)  # patterns of Hadoop
        frame = session.read.schema(spark_schema(columns)).parquet(*paths)
        return frame.select(lit(self.name).alias("run"), "*")


def open_run(run: str | Path = LATEST, runs: Path = RUNS) -> OpenRun:
    """Open a run by its path, by its name below a folder of runs, or the latest one there that was analysed.

    Raises InputError if there is none, or if it was not analysed.
    """
    [case] = read_cases([RunDirectory.open(_found(Path(run), runs))])
    return OpenRun(case)


def _found(run: Path, runs: Path) -> Path:
    if str(run) == LATEST and not run.exists():
        analysed = sorted(path.parent for path in runs.glob("*/summary.json"))
        if not analysed:
            raise InputError(str(runs), None, "", "has no run that was analysed yet: `cutset run` makes one")
        return analysed[-1]
    return run if run.is_dir() else runs / run


def _known(name: str) -> str:
    if name not in TABLES:
        raise AnalysisError(f"there is no table {name}{suggestion(name, TABLES)}")
    return name
