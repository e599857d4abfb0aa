"""The three tables of a history, as Arrow schemas: runs, their metrics, their expectations.

A row says in `schema` which version of this layout its writer knew; readers bring older rows forward
(`analysis.history.files`). The column `night` stands in the name of a file's folder and not in the file,
as Hive has it, so that Spark, DuckDB and pandas all find it there.

`HistoryFilter` says which of a history's runs are meant.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

SCHEMA: Final = 2
"""Raised whenever a column is renamed, changes its meaning, or comes with a value that older rows must get; a
new column that is empty in older rows needs no new number."""

VERDICTS: Final = ("crashed", "failed", "invalid", "passed")
"""Of a run, the worst first."""

BETTER: Final = ("", "lower", "higher")
"""Of a metric, which way is better, if either is."""

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
            pa.field("seed", pa.int64()),  # null where it takes more than 64 bits
            pa.field("large_seed", pa.string()),  # such a one in decimal, or nothing
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


@dataclass(frozen=True, slots=True)
class HistoryFilter:
    """Conditions that must all hold; None asks nothing.

    since, until: nights, both included. verdicts: one of them. valid: what its fidelity says.
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
        """Whether runs of this night may be meant."""
        return (self.since is None or night >= self.since) and (self.until is None or night <= self.until)

    def of_runs(self, runs: pa.Table) -> pa.Table:
        """The rows of the table `runs` that are meant."""
        chosen = runs
        equal = {"suite": self.suite, "entry": self.entry, "run": self.run, "experiment": self.experiment}
        for column, value in (*equal.items(), ("valid", self.valid)):
            if value is not None:
                chosen = chosen.filter(pc.equal(chosen[column], value))
        if self.verdicts is not None:
            chosen = chosen.filter(pc.is_in(chosen["verdict"], pa.array(sorted(self.verdicts), pa.string())))
        return chosen


EVERYTHING = HistoryFilter()


def of_these(rows: pa.Table, runs: pa.Table) -> pa.Table:
    """The rows whose night and run stand in the table `runs`."""
    if rows.num_rows == 0:
        return rows
    wanted = pc.binary_join_element_wise(runs[NIGHT], runs["run"], "/").combine_chunks()
    mine = pc.binary_join_element_wise(rows[NIGHT], rows["run"], "/")
    return rows.filter(pc.is_in(mine, wanted))
