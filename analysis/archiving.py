"""Creates the archive of Spark's Java classes (`analysis.spark_home`): `python -m analysis.archiving`.

Part of set-up; takes about 50 s. A Spark session runs a sample of the operations that an analysis uses, so
that their classes are loaded. Java writes the archive when it exits.
"""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812  (PySpark's own convention)

from analysis.session import JAVA_OPTIONS, spark_session
from analysis.spark_home import archive_path
from experiments.files.scratch import scratch

WAIT_S = 120.0  # until Java has written the archive and exited


def make_archive() -> None:
    """Create the archive of the classes that an analysis loads. Raises any error of Spark on this machine."""
    path = archive_path()
    path.parent.mkdir(exist_ok=True)
    with scratch(".archiving-", path.parent) as folder:
        written = folder / "spark.jsa"
        java = " ".join((*JAVA_OPTIONS, f"-XX:ArchiveClassesAtExit={written}"))
        spark = spark_session(settings={"spark.driver.extraJavaOptions": java})
        _exercise(spark, folder / "table.parquet")
        gateway: Any = spark.sparkContext._gateway
        process = gateway.proc
        spark.stop()
        process.stdin.close()  # Java exits when its input ends
        try:
            process.wait(WAIT_S)
        finally:
            process.kill()  # in case it hangs; no effect if it has exited
        if written.is_file():  # this Java may not support archives; Spark starts without one
            written.replace(path)


def _exercise(spark: SparkSession, path: Path) -> None:
    """Run a sample of the operations that an analysis uses."""
    spark.sparkContext.parallelize([1, 2], 2).map(str).collect()
    numbers = spark.range(1000).selectExpr(
        "id", "id % 7 as part", "cast(id as string) as name", "id / 3.0 as x"
    )
    numbers.mapInArrow(_same, numbers.schema).write.parquet(str(path))
    table = spark.read.schema(numbers.schema).parquet(str(path)).where("x > 1")
    ordered = table.withColumn("before", F.lag("id").over(Window.partitionBy("part").orderBy("id")))
    sums = table.groupBy("part").agg(F.sum("x"), F.max("name"), F.percentile_approx("x", 0.5))
    joined: DataFrame = ordered.join(F.broadcast(sums), "part", "left").join(table, "id", "inner")
    joined.orderBy("before").toArrow()
    table.groupBy("part").applyInArrow(_same_table, table.schema).collect()


def _same(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    return batches


def _same_table(table: pa.Table) -> pa.Table:
    return table


if __name__ == "__main__":
    if not archive_path().is_file():
        sys.stderr.write(
            "setting up .cache: an archive of Spark's classes, so that it starts in half the time\n"
        )
        try:
            make_archive()
        except Exception as error:  # noqa: BLE001 - Spark works without the archive
            first = str(error).partition("\n")[0]
            sys.stderr.write(f"no archive was made, so Spark starts slowly: {first}\n")
