"""Brings rows that an older Cutset wrote to today's layout, and says which cannot be.

A file tells the version of its layout in the column `schema`. Each step takes a table from one version to the
next; today's has none behind it. Columns that were added without a new number are empty in older files;
columns that we do not know are left out, as a newer Cutset may have added them. What comes out can be relied
on: each column once, nothing null but an expectation's value, and no verdict that we do not know.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from analysis.history.schemas import EXPECTATIONS, METRICS, RUNS, SCHEMA, SCHEMAS, VERDICTS

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
    RUNS: ("run", "suite", "entry", "verdict", "valid", "started_ns"),
    METRICS: ("run", "suite", "entry", "metric", "value"),
    EXPECTATIONS: ("run", "suite", "entry", "text", "held"),
}
"""Without these, rows say nothing; nor where they are null."""

MAY_BE_NULL: Final = {(EXPECTATIONS, "value")}


class UnknownLayoutError(Exception):
    """These rows are none of a history's, or of a newer one."""


def brought_forward(
    table: str, rows: pa.Table, steps: Mapping[int, Step] = STEPS, to: int = SCHEMA
) -> pa.Table:
    """Rows of this table in today's layout, `SCHEMAS[table]`. Raises UnknownLayoutError that says why not."""
    twice = [name for name, count in Counter(rows.column_names).items() if count > 1]
    if twice:
        raise UnknownLayoutError(f"is no file of a history: it has the column `{twice[0]}` twice")
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
    for column in NEEDED[table]:
        if rows[column].null_count:
            raise UnknownLayoutError(f"has rows without a `{column}`")
    fitted = _fitted(table, rows, to)
    if table == RUNS:
        _check_verdicts(fitted)
    return fitted


def _version(rows: pa.Table) -> int:
    if rows.num_rows == 0:
        return SCHEMA
    column = rows["schema"]
    if not pa.types.is_integer(column.type):
        raise UnknownLayoutError(f"has a column `schema` of {column.type}, not int32")
    found = pc.unique(column).to_pylist()
    if len(found) > 1:
        raise UnknownLayoutError(f"has rows of several schemas: {', '.join(map(str, found))}")
    if found[0] is None:
        raise UnknownLayoutError("has rows without a `schema`")
    return int(found[0])


def _check_verdicts(runs: pa.Table) -> None:
    unknown = set(pc.unique(runs["verdict"]).to_pylist()) - set(VERDICTS)
    if unknown:
        known = ", ".join(VERDICTS)
        raise UnknownLayoutError(f"has a run with the verdict {min(unknown)!r}, which is none of {known}")


def _fitted(table: str, rows: pa.Table, version: int) -> pa.Table:
    """Today's columns in today's order and types; what is not there is empty."""
    columns = []
    for field in SCHEMAS[table]:
        if field.name == "schema":
            columns.append(pa.repeat(pa.scalar(version, field.type), rows.num_rows))
            continue
        there = field.name in rows.column_names
        column = _cast(rows, field) if there else pa.nulls(rows.num_rows, field.type)
        filled = column.null_count and (table, field.name) not in MAY_BE_NULL
        columns.append(_filled(column, field.type) if filled else column)
    return pa.Table.from_arrays(columns, schema=SCHEMAS[table])


def _filled(column: pa.ChunkedArray | pa.Array, kind: pa.DataType) -> pa.ChunkedArray | pa.Array:
    """As records have what is not known: an empty text, no texts, 0, or false."""
    empty: object = "" if pa.types.is_string(kind) else [] if pa.types.is_list(kind) else 0
    value = pa.array([empty]).cast(kind)[0]
    return pc.if_else(pc.is_valid(column), column, value)


def _cast(rows: pa.Table, field: pa.Field) -> pa.ChunkedArray:
    column = rows[field.name]
    if column.type == field.type:
        return column
    try:
        return column.cast(field.type)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        raise UnknownLayoutError(f"has a column `{field.name}` of {column.type}, not {field.type}") from None
