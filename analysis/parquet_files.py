"""Reads Parquet tables that cannot be trusted: of another version, truncated, or from another user."""

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import dataset

ROWS_MAX = 20_000_000
"""Larger tables are not read: no timeline has as many rows."""


def read_any(path: Path, schema: pa.Schema, wanted: pc.Expression | None = None) -> pa.Table | None:
    """Return a table's rows, or those that match `wanted`, in the columns of a schema. Columns that may
    be null may be missing.

    Return None if the table does not exist or cannot be read, e.g. if a crash truncated it; `cutset analyze`
    writes it again.
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
    needed = (field.name for field in schema if not field.nullable)
    return None if any(table.column(name).null_count for name in needed) else table
