"""Reads tables in Parquet that anybody may have written: of another version, torn, or somebody else's."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import dataset

ROWS_MAX = 20_000_000
"""Of a table that is read whole: no timeline has as many."""


def read_any(path: Path, schema: pa.Schema, wanted: pc.Expression | None = None) -> pa.Table | None:
    """A table's rows, or those that are wanted, in the columns of its schema; those that it lacks are null.

    None: there is no such table, or what stands there is none, as the torn start of one after a crash;
    `cutset analyze` writes it anew.
    """
    if not path.exists():
        return None
    try:
        written = dataset.dataset(path, format="parquet")
        if written.count_rows() > ROWS_MAX:
            return None
        table = written.replace_schema(schema).to_table(filter=wanted)
    except (pa.ArrowException, OSError, ValueError):
        return None
    there = set(written.schema.names)
    needed = (field.name for field in schema if not field.nullable and field.name in there)
    return None if any(table.column(name).null_count for name in needed) else table
