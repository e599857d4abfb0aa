"""Brings rows that an older Cutset wrote to today's layout, and says which cannot be.

A file tells the version of its layout in the column `schema`. Each step takes a table from one version to the
next; today's has none behind it. Columns that were added without a new number are empty in older files;
columns that we do not know are left out, as a newer Cutset may have added them.
"""

from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from analysis.history.schemas import EXPECTATIONS, METRICS, RUNS, SCHEMA, SCHEMAS

Step = Callable[[str, pa.Table], pa.Table]
"""Is given a table's name and its rows in one version, and returns them in the next."""


def _with_allowance(table: str, rows: pa.Table) -> pa.Table:
    """Version 2 says which failures are allowed; before, none were noted as such."""
    if table != RUNS:
        return rows
    return rows.append_column("allow_failure", pa.repeat(pa.scalar(value=False), rows.num_rows))


STEPS: Final[Mapping[int, Step]] = {1: _with_allowance}
"""By the version that each starts from."""

NEEDED: Final = {
    RUNS: ("run", "suite", "entry", "verdict", "valid"),
    METRICS: ("run", "suite", "entry", "metric", "value"),
    EXPECTATIONS: ("run", "suite", "entry", "text", "held"),
}
"""Without these, rows say nothing."""


class UnknownLayoutError(Exception):
    """These rows are none of a history's, or of a newer one."""


def brought_forward(
    table: str, rows: pa.Table, steps: Mapping[int, Step] = STEPS, to: int = SCHEMA
) -> pa.Table:
    """Rows of this table in today's layout, `SCHEMAS[table]`. Raises UnknownLayoutError that says why not."""
    if "schema" not in rows.column_names:
        raise UnknownLayoutError("is no file of a history: it has no column `schema`")
    version = _version(rows)
    if version > to:
        raise UnknownLayoutError(f"was written by a newer Cutset: schema {version}, and this one knows {to}")
    while version < to:
        if version not in steps:
            raise UnknownLayoutError(f"has schema {version}, which no Cutset wrote")
        rows = steps[version](table, rows)
        version += 1
    missing = [column for column in NEEDED[table] if column not in rows.column_names]
    if missing:
        raise UnknownLayoutError(f"is no file of a history's {table}: it has no column `{missing[0]}`")
    return _fitted(rows, SCHEMAS[table], to)


def _version(rows: pa.Table) -> int:
    found = pc.unique(rows["schema"]).to_pylist()
    if not found:
        return SCHEMA
    if len(found) > 1 or not isinstance(found[0], int):
        raise UnknownLayoutError(f"has rows of several schemas: {', '.join(map(str, found))}")
    return found[0]


def _fitted(rows: pa.Table, schema: pa.Schema, version: int) -> pa.Table:
    """Today's columns in today's order and types; what is not there is null."""
    columns = []
    for field in schema:
        if field.name == "schema":
            columns.append(pa.repeat(pa.scalar(version, field.type), rows.num_rows))
        elif field.name in rows.column_names:
            columns.append(_cast(rows, field))
        else:
            columns.append(pa.nulls(rows.num_rows, field.type))
    return pa.Table.from_arrays(columns, schema=schema)


def _cast(rows: pa.Table, field: pa.Field) -> pa.ChunkedArray:
    column = rows[field.name]
    if column.type == field.type:
        return column
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise UnknownLayoutError(f"has a column `{field.name}` of {column.type}, not {field.type}") from None
