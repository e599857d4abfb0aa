"""Parallel arrays, conversions between Arrow columns and NumPy arrays, selection of rows, and grouping."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Ints = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]
Bytes = npt.NDArray[np.uint8]
RowSelection = Ints | slice
Values = TypeVar("Values", Ints, Floats)
NS_PER_S = 1_000_000_000
NEVER = np.iinfo(np.int64).max
"""Time of an event that did not happen."""


@dataclass(frozen=True, slots=True)
class ParallelArrays:
    """Rows as arrays of the same length; other fields apply to all rows."""

    def take(self, rows: RowSelection | Bools) -> Self:
        """Return some of the rows, by index, mask or slice."""
        values = (getattr(self, each.name) for each in fields(self))
        return type(self)(*(each[rows] if isinstance(each, np.ndarray) else each for each in values))

    @classmethod
    def joined(cls, parts: Iterable[Self]) -> Self:
        """Concatenate the rows of one or more parts; other fields are the first part's."""
        columns = zip(*([getattr(part, each.name) for each in fields(cls)] for part in parts), strict=True)
        return cls(
            *(np.concatenate(each) if isinstance(each[0], np.ndarray) else each[0] for each in columns)
        )


def ints(table: pa.Table, name: str) -> Ints:
    """Return a column without nulls as 64-bit integers."""
    column: Ints = table.column(name).to_numpy().astype(np.int64, copy=False)
    return column


def rows(table: pa.Table, **wanted: str | int | Sequence[str] | Sequence[int]) -> pa.Table:
    """Return the rows whose columns have these values, or one of several."""
    for name, value in wanted.items():
        column = table.column(name)
        if isinstance(value, str | int):
            table = table.filter(pc.equal(column, value))
        else:
            kind = pa.string() if pa.types.is_dictionary(column.type) else column.type
            table = table.filter(pc.is_in(column, value_set=pa.array(value, kind)))
    return table


def codes(column: pa.ChunkedArray, values: list[str]) -> Ints:
    """Return each row's index of its value among `values`, or -1."""
    found: Ints = pc.fill_null(pc.index_in(column, value_set=pa.array(values, pa.string())), -1).to_numpy()
    return found.astype(np.int64)


def pair_keys(table: pa.Table, clients: list[str]) -> Ints:
    """Return one number for the client and the stream of each row."""
    return codes(table.column("client"), clients) << 32 | ints(table, "stream")


def decoded_values(places: Ints, values: list[str]) -> pa.Array:
    """Invert `codes`: return the values, null for -1."""
    return pa.array(values, pa.string()).take(pa.array(places, mask=places < 0))


def concatenated(tables: list[pa.Table], schema: pa.Schema) -> pa.Table:
    """Concatenate tables of one schema; without tables the result is empty."""
    return pa.concat_tables([schema.empty_table(), *tables])


def looked_up(keys: npt.NDArray[np.integer], values: Mapping[int, int], missing: int = -1) -> Ints:
    """Return the value of each key. missing: the value of a key that is not in `values`."""
    distinct, places = np.unique(keys, return_inverse=True)
    return np.array([values.get(key, missing) for key in distinct.tolist()], np.int64)[places]


def group_numbers(columns: Sequence[pa.Array]) -> Ints:
    """Return the number of each row's group, in no order; rows with equal values in all columns are one."""
    groups = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        codes = column.dictionary_encode(null_encoding="encode")
        joined = groups * max(len(codes.dictionary), 1) + codes.indices.to_numpy()
        groups = pa.array(joined).dictionary_encode().indices.to_numpy().astype(np.int64)
    return groups


def places(values: Ints, among: list[int]) -> Ints:
    """Return the index of each value in a list, or -1."""
    return looked_up(values, {value: place for place, value in enumerate(among)})


def begins(*columns: npt.NDArray[Any]) -> Bools:
    """Return which rows begin a group of equal rows; columns are parallel, and grouped already."""
    found = np.zeros(len(columns[0]), bool)
    found[:1] = True
    for column in columns:
        found[1:] |= column[1:] != column[:-1]
    return found


def offsets(counts: Ints) -> Ints:
    """Return the position of each row within its group, for groups of these sizes one after the other."""
    return np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
