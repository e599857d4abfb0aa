"""Conversions between Arrow columns and NumPy arrays, and selection of rows by value."""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]


def ints(table: pa.Table, name: str) -> Ints:
    """Return a column without nulls as 64-bit integers."""
    column: Ints = table.column(name).to_numpy().astype(np.int64, copy=False)
    return column


def rows(table: pa.Table, **wanted: str | int) -> pa.Table:
    """Return the rows whose columns have these values."""
    for column, value in wanted.items():
        table = table.filter(pc.equal(table.column(column), value))
    return table


def rows_of_roles(table: pa.Table, roles: Sequence[str]) -> pa.Table:
    """Return the rows whose hosts have any of these roles."""
    return table.filter(pc.is_in(table.column("role"), value_set=pa.array(roles, pa.string())))


def codes(column: pa.ChunkedArray, values: list[str]) -> Ints:
    """Return each row's index of its value among `values`, or -1."""
    found: Ints = pc.fill_null(pc.index_in(column, value_set=pa.array(values, pa.string())), -1).to_numpy()
    return found.astype(np.int64)


def decoded_values(places: Ints, values: list[str]) -> pa.Array:
    """Invert `codes`: return the values, null for -1."""
    return pa.array(values, pa.string()).take(pa.array(places, mask=places < 0))


def concatenated(tables: list[pa.Table], schema: pa.Schema) -> pa.Table:
    """Concatenate tables of one schema; without tables the result is empty."""
    return pa.concat_tables([schema.empty_table(), *tables])
