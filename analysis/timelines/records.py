"""The nodes' records of deliveries as a table: what each client got and what each driver knows to be
published.

One Spark task reads some files whole, vectorised, through the field list of node.core.deliveries. A torn
record at a file's end (a crash) is left out. Files are named, not shipped: workers must see the run
directory.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from analysis.errors import AnalysisError
from analysis.schemas import spark_schema
from analysis.timelines import schemas
from analysis.timelines.facts import Facts
from experiments.rundir import RunDirectory
from node.core.deliveries import HEADER, RECORD_FIELDS, RecordKind, check_file_header, whole_bytes

RECORD = np.dtype(list(RECORD_FIELDS))
FILES = pa.schema([pa.field("host", pa.string(), False), pa.field("path", pa.string(), False)])


def records(spark: SparkSession, run: RunDirectory, facts: Facts) -> DataFrame:
    """Rows of `schemas.RECORDS` of every host that has a file with at least one record."""
    found = [(name, str(run.host_deliveries(name).absolute())) for name in facts.hosts]
    files = [(name, path) for name, path in found if Path(path).is_file()]
    listed = spark.createDataFrame(files, spark_schema(FILES))
    tasks = max(1, min(len(files), spark.sparkContext.defaultParallelism))
    return listed.repartition(tasks).mapInArrow(_read_all, spark_schema(schemas.RECORDS))


def _read_all(listed: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in listed:
        for row in batch.to_pylist():
            yield from read_file(row["host"], Path(row["path"])).to_batches()


def read_file(host: str, path: Path) -> pa.Table:
    """One file as rows of `schemas.RECORDS`. Raises AnalysisError if it is no record of deliveries."""
    data = path.read_bytes()
    end = whole_bytes(len(data))
    if end:
        try:
            check_file_header(data)
        except ValueError as error:
            raise AnalysisError(f"{path}: {error}") from None
    rows = np.frombuffer(data[HEADER.size : end], RECORD)
    starts = np.cumsum(rows["kind"] == RecordKind.SESSION)
    columns = [
        pa.array([host] * len(rows), pa.string()),
        np.maximum(starts - 1, 0).astype(np.int32),
        np.arange(len(rows), dtype=np.int64),
        *(rows[name].astype(np.int32) for name in ("kind", "stream")),
        *(
            rows[name].astype(np.int64)
            for name in ("first_seq", "count", "time_ns", "batch_crc", "running_crc")
        ),
    ]
    return pa.Table.from_arrays([pa.array(column) for column in columns], schema=schemas.RECORDS)
