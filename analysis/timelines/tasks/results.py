"""Combination of tasks' results by table, and writing of results that are too large to return."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.arrays import concatenated
from analysis.jobs import work
from analysis.jobs.work import Workers
from analysis.timelines import schemas
from experiments.files.whole_files import replacing

RESULTS = {
    "arrivals": schemas.ARRIVALS,
    "followed": schemas.FOLLOWED,
    "subscriptions": schemas.SUBSCRIPTIONS,
    "fidelity": schemas.FIDELITY,
    "tcp_outages": schemas.TCP_OUTAGES,
    "wire": schemas.WIRE,
    "traffic": schemas.TRAFFIC,
    "wan_messages": schemas.WAN_MESSAGES,
    "wan_copies": schemas.WAN_COPIES,
    "outside": schemas.OUTSIDE,
    "deliveries": schemas.DELIVERIES,
    "confirmations": schemas.CONFIRMATIONS,
    "disorder": schemas.DISORDER,
    "selectivity": schemas.SELECTIVITY,
    "measured": schemas.MEASURED,
    "publishers": schemas.PUBLISHERS,
    "samples": schemas.SAMPLES,
    "untimed": schemas.UNTIMED,
    "pairs": schemas.PAIRS,
    "coverage": schemas.COVERAGE,
    "convergence": schemas.CONVERGENCE,
}
"""Schemas of the tasks' results, by name."""
COMPRESSION = "lz4"
ROWS_TOGETHER = 1 << 20
"""Rows per row group."""

Task = work.Task[dict[str, pa.Table]]
"""A task with small results, named as in `RESULTS`."""


def concatenate_results(found: Iterable[dict[str, pa.Table]]) -> dict[str, pa.Table]:
    """Concatenate several results by table."""
    results = list(found)
    names = dict.fromkeys(name for result in results for name in result)
    return {name: pa.concat_tables([result[name] for result in results]).combine_chunks() for name in names}


def execute(workers: Workers, tasks: Sequence[Task], doing: str) -> dict[str, pa.Table]:
    """Run all tasks and concatenate their results by name; a missing result is empty.

    doing: the activity, for errors. Raises AnalysisError if a task fails.
    """
    returned = workers.execute(tasks, doing)
    return {
        name: concatenated([result[name] for result in returned if name in result], schema)
        for name, schema in RESULTS.items()
    }


def empty_results() -> dict[str, pa.Table]:
    """Return all results, empty, for a run without any work."""
    return {name: schema.empty_table() for name, schema in RESULTS.items()}


def write(table: pa.Table, path: Path, schema: pa.Schema | None = None) -> None:
    """Write one Parquet file atomically. schema: the column types in the file; None: those of the table."""
    with (
        replacing(path, sync=False) as stream,
        pq.ParquetWriter(stream, schema or table.schema, compression=COMPRESSION) as writer,
    ):
        for begin in range(0, max(1, table.num_rows), ROWS_TOGETHER):
            some = table.slice(begin, ROWS_TOGETHER)
            writer.write_table(some if schema is None else some.cast(schema))
