"""The results of an analysis in a comparable form: rows and summary, independent of the process that wrote
them.
"""

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from experiments.records.rundir import RunDirectory


def content_of(run: RunDirectory) -> tuple[dict[str, pa.Table], dict[str, Any]]:
    """Return the sorted rows of every table, by table, and the summary."""
    tables = sorted(path.name for path in run.analysis.glob("*.parquet"))
    return {name: _in_order(pq.read_table(run.analysis / name)) for name in tables}, run.read_summary()


def _in_order(table: pa.Table) -> pa.Table:
    """Return the rows sorted by all sortable columns; no two rows differ only in lists."""
    keys = [each.name for each in table.schema if not pa.types.is_nested(each.type)]
    return table.sort_by([(name, "ascending") for name in keys]) if keys else table
