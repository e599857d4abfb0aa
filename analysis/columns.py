"""Columns of tables: Arrow fields with a description of their content.

The description is metadata of the field. It does not make two schemas differ, is stored in the Parquet files,
and is printed by `cutset schema tables`.
"""

from typing import Final, TypeAlias

import pyarrow as pa

INT, BIGINT, DOUBLE, STRING, BOOLEAN = pa.int32(), pa.int64(), pa.float64(), pa.string(), pa.bool_()

Column: TypeAlias = tuple[str, pa.DataType, bool] | tuple[str, pa.DataType, bool, str]
"""Name, type, nullability, and content with its unit."""

_MEANING: Final = b"meaning"


def table_schema(*columns: Column) -> pa.Schema:
    """Return the schema of a table with these columns."""
    return pa.schema([_field(*column) for column in columns])


def required(**columns: pa.DataType) -> pa.Schema:
    """Return the schema of an intermediate table whose columns always have a value."""
    return table_schema(*((name, kind, False) for name, kind in columns.items()))


def meaning(field: pa.Field) -> str:
    """Return the description of a column; empty for columns of intermediate tables."""
    found: bytes = (field.metadata or {}).get(_MEANING, b"")
    return found.decode()


def _field(name: str, kind: pa.DataType, nullable: bool, meant: str = "") -> pa.Field:
    return pa.field(name, kind, nullable, metadata={_MEANING: meant.encode()} if meant else None)
