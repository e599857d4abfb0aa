"""Spark's Java classes in an archive, so that Spark starts in half the time.

Java can keep loaded and checked classes in a file and map it at the next start (application class-data
sharing, JEP 310 and 350). On 2 cores that took the start of a session from 5.0 to 2.7 s and the first query
from 2.8 to 1.4 s. The archive belongs to one Java and one PySpark and is named after both; with others it
is simply not found. `python -m analysis.archive` makes it where it is missing, in about 30 s; nothing
depends on it being there.
"""

import hashlib
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyspark
from pyspark.sql import DataFrame, SparkSession, Window
from pyspark.sql import functions as F  # noqa: N812  (PySpark's own convention)

FOLDER = Path(__file__).resolve().parent.parent / ".cache"
WAIT_S = 120.0  # for Java to write the archive while it exits


def archive_path() -> Path:
    """Where the archive for this Java and this PySpark stands, or would."""
    java = Path(shutil.which("java") or "java").resolve()
    changed = java.stat().st_mtime_ns if java.exists() else 0
    key = hashlib.sha256(f"{pyspark.__version__} {pyspark.__file__} {java} {changed}".encode()).hexdigest()
    return FOLDER / f"spark-{key[:12]}.jsa"


def archive_options() -> tuple[str, ...]:
    """Java's options for using the archive; none if it is not there."""
    path = archive_path()
    return (f"-XX:SharedArchiveFile={path}", "-Xshare:auto") if path.is_file() else ()


def make_archive() -> bool:
    """Make the archive if it is missing: load what an analysis loads, then let Java write it. Returns if it
    did."""
    from analysis.session import JAVA_OPTIONS, spark_session  # noqa: PLC0415  (it asks for the options above)

    path = archive_path()
    if path.is_file():
        return False
    path.parent.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent) as folder:
        written = Path(folder) / "spark.jsa"
        java = " ".join((*JAVA_OPTIONS, f"-XX:ArchiveClassesAtExit={written}"))
        spark = spark_session(settings={"spark.driver.extraJavaOptions": java})
        _exercise(spark, Path(folder) / "table.parquet")
        gateway: Any = spark.sparkContext._gateway
        process = gateway.proc
        spark.stop()
        process.stdin.close()  # Java exits when its input ends
        process.wait(WAIT_S)
        if not written.is_file():  # this Java cannot: Spark starts without
            return False
        written.replace(path)
    return True


def _exercise(spark: SparkSession, path: Path) -> None:
    """Do a little of everything that an analysis does."""
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
    if make_archive():
        sys.stderr.write("made Spark's class archive: it starts faster now\n")
