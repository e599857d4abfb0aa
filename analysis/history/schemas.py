"""The three tables of a history, as Arrow schemas: runs, their metrics, their expectations.

A row says in `schema` which version of this layout its writer knew; readers bring older rows forward
(`analysis.history.migration`). The column `night` stands in the name of a file's folder and not in the file,
as Hive has it, so that Spark, DuckDB and pandas all find it there.
"""

from typing import Final

import pyarrow as pa

SCHEMA: Final = 2
"""Raised whenever a column is renamed, changes its meaning, or comes with a value that older rows must get; a
new column that is empty in older rows needs no new number."""

VERDICTS: Final = ("crashed", "failed", "invalid", "passed")
"""Of a run, the worst first."""

NIGHT: Final = "night"
"""The column that stands in the folder's name."""

RUNS: Final = "runs"
METRICS: Final = "metrics"
EXPECTATIONS: Final = "expectations"

_RUN = [
    pa.field("schema", pa.int32()),
    pa.field("run", pa.string()),  # the name of its directory
    pa.field("suite", pa.string()),
    pa.field("entry", pa.string()),  # its name within the suite
]

SCHEMAS: Final[dict[str, pa.Schema]] = {
    # A row for each run. It is written last of the three: a run counts when it has a row here.
    RUNS: pa.schema(
        [
            *_RUN,
            pa.field("path", pa.string()),  # of the run's directory, from the history's folder
            pa.field("experiment", pa.string()),
            pa.field("settings", pa.string()),  # JSON: overrides
            pa.field("seed", pa.int64()),
            pa.field("repeat", pa.int32()),
            pa.field("commit", pa.string()),
            pa.field("cutset", pa.string()),
            pa.field("python", pa.string()),
            pa.field("kernel", pa.string()),
            pa.field("machine", pa.string()),  # JSON: hostname, cpus, memory_bytes
            pa.field("links", pa.string()),
            pa.field("place", pa.string()),  # local, simulator or hosts
            pa.field("outcome", pa.string()),  # run.json's, or "not started"
            pa.field("verdict", pa.string()),  # one of VERDICTS
            pa.field("valid", pa.bool_()),
            pa.field("allow_failure", pa.bool_()),  # whether its night passes without it
            pa.field("reasons", pa.list_(pa.string())),  # of fidelity
            pa.field("problems", pa.list_(pa.string())),
            pa.field("started_ns", pa.int64()),  # since 1970
            pa.field("duration_s", pa.float64()),
            pa.field("captures_bytes", pa.int64()),
        ]
    ),
    # A row for each run and number of its summary.
    METRICS: pa.schema(
        [
            *_RUN,
            pa.field("metric", pa.string()),  # its path in summary.json, as latency.p95_ms
            pa.field("value", pa.float64()),
            pa.field("unit", pa.string()),
            pa.field("better", pa.string()),  # lower, higher, or nothing where neither is
        ]
    ),
    # A row for each run and expectation.
    EXPECTATIONS: pa.schema(
        [
            *_RUN,
            pa.field("text", pa.string()),
            pa.field("value", pa.float64()),  # null: none was measured, or it is no number
            pa.field("held", pa.bool_()),
        ]
    ),
}
"""What stands in a file of each table, in this order."""


def shown_schema(table: str) -> pa.Schema:
    """What readers get: the file's columns, with the night behind `schema`."""
    return SCHEMAS[table].insert(1, pa.field(NIGHT, pa.string()))
