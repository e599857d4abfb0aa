"""Arrow schemas of a history's three tables: runs, their metrics, their expectations.

The column `schema` of a row holds the version of the layout that its writer used. The column `night` is in
the name of a file's folder and not in the file (Hive partitioning), so that Spark, DuckDB and pandas all find
it.

`HistoryFilter` selects runs of a history.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

SCHEMA: Final = 2
"""Version of the layout: a reader refuses files of another one."""

VERDICTS: Final = ("crashed", "failed", "invalid", "passed")
"""Verdicts of a run, the worst first."""

BETTER: Final = ("", "lower", "higher")
"""Better directions of a metric; "" if it has none."""

NIGHT: Final = "night"
"""The column that is in the folder's name."""

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
    # One row per run. Written last of the three tables: a run counts when it has a row here.
    RUNS: pa.schema(
        [
            *_RUN,
            pa.field("path", pa.string()),  # the run's directory, relative to the history's folder
            pa.field("experiment", pa.string()),
            pa.field("settings", pa.string()),  # JSON: overrides
            pa.field("seed", pa.int64()),  # null if it takes more than 64 bits
            pa.field("large_seed", pa.string()),  # a seed of more than 64 bits in decimal, else empty
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
            pa.field("allow_failure", pa.bool_()),  # whether the night passes even if this run fails
            pa.field("reasons", pa.list_(pa.string())),  # of fidelity
            pa.field("problems", pa.list_(pa.string())),
            pa.field("started_ns", pa.int64()),  # since 1970
            pa.field("duration_s", pa.float64()),
            pa.field("captures_bytes", pa.int64()),
        ]
    ),
    # One row per run and number of its summary.
    METRICS: pa.schema(
        [
            *_RUN,
            pa.field("metric", pa.string()),  # its path in summary.json, as latency.p95_ms
            pa.field("value", pa.float64()),
            pa.field("unit", pa.string()),
            pa.field("better", pa.string()),  # lower, higher, or empty if neither
        ]
    ),
    # One row per run and expectation.
    EXPECTATIONS: pa.schema(
        [
            *_RUN,
            pa.field("text", pa.string()),
            pa.field("value", pa.float64()),  # null: not measured, or not a number
            pa.field("held", pa.bool_()),
        ]
    ),
}
"""Columns of each table's files, in this order."""


def shown_schema(table: str) -> pa.Schema:
    """Return the schema that readers get: the file's columns, with the night after `schema`."""
    return SCHEMAS[table].insert(1, pa.field(NIGHT, pa.string()))


@dataclass(frozen=True, slots=True)
class HistoryFilter:
    """Conditions that must all hold; None means no condition.

    since, until: nights, both included. verdicts: accepted ones. valid: the result of the run's fidelity
    checks.
    """

    suite: str | None = None
    entry: str | None = None
    since: str | None = None
    until: str | None = None
    run: str | None = None
    experiment: str | None = None
    verdicts: Collection[str] | None = None
    valid: bool | None = None

    def night(self, night: str) -> bool:
        """Return whether runs of this night may match."""
        return (self.since is None or night >= self.since) and (self.until is None or night <= self.until)

    def of_runs(self, runs: pa.Table) -> pa.Table:
        """Return the rows of the table `runs` that match."""
        chosen = runs
        for column in ("suite", "entry", "run", "experiment", "valid"):
            if (value := getattr(self, column)) is not None:
                chosen = chosen.filter(pc.equal(chosen[column], value))
        if self.verdicts is not None:
            chosen = chosen.filter(pc.is_in(chosen["verdict"], pa.array(sorted(self.verdicts), pa.string())))
        return chosen


EVERYTHING = HistoryFilter()


def rows_of_runs(rows: pa.Table, runs: pa.Table) -> pa.Table:
    """Return the rows whose night and run are in the table `runs`."""
    if rows.num_rows == 0:
        return rows
    wanted = pc.binary_join_element_wise(runs[NIGHT], runs["run"], "/").combine_chunks()
    own = pc.binary_join_element_wise(rows[NIGHT], rows["run"], "/")
    return rows.filter(pc.is_in(own, wanted))
