"""What an analysis left, in a form in which two of them can be compared: rows and summary, whatever made
them.
"""

from typing import Any

import pyarrow.parquet as pq

from experiments.rundir import RunDirectory


def content_of(run: RunDirectory) -> tuple[dict[str, list[str]], dict[str, Any]]:
    """The rows of every table in an order of their own, by table; and the summary."""
    tables = sorted(path.name for path in run.analysis.glob("*.parquet"))
    rows = {
        name: sorted(repr(row) for row in pq.read_table(run.analysis / name).to_pylist()) for name in tables
    }
    return rows, run.read_summary()
