"""DuckDB, pandas and Spark read a history's files directly, including the night."""

import duckdb
import pandas as pd
import pytest
from pyspark.sql import SparkSession

from analysis.history import History
from tests.analysis.history.records import make_record

COUNTS = [("2026-03-14", 4), ("2026-03-15", 2)]


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    """Return a history of two nights, with an incomplete file of a killed writer."""
    history = History(tmp_path_factory.mktemp("read") / "history")
    history.append(make_record("a"))
    history.append(make_record("b"))
    history.append(make_record("c", night="2026-03-15"))
    (history.folder / "metrics/night=2026-03-15/.run-d.parquet.tmp").write_bytes(b"PAR1 torn")
    return history


def test_duckdb_reads_it(history: History) -> None:
    found = duckdb.sql(
        f"select night::varchar, count(value) from read_parquet('{history.folder}/metrics/*/*.parquet', "
        "hive_partitioning = true) group by night order by night"
    )
    assert found.fetchall() == COUNTS


def test_pandas_reads_it(history: History) -> None:
    counts = pd.read_parquet(history.folder / "metrics").groupby("night", observed=True)["value"].count()
    assert [(str(night), count) for night, count in counts.items()] == COUNTS


@pytest.mark.spark
def test_spark_reads_it(spark: SparkSession, history: History) -> None:
    table = spark.read.parquet(str(history.folder / "metrics"))
    rows = table.groupBy("night").count().orderBy("night").collect()
    assert [(str(row["night"]), row["count"]) for row in rows] == COUNTS
