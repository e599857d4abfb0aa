"""Columns of tables, as Arrow fields that say what is in them.

The meaning is metadata of the field: it does not make two schemas differ, stands in the Parquet files, and
`cutset schema tables` prints it.
"""

from typing import Final, TypeAlias

import pyarrow as pa

INT, BIGINT, DOUBLE, STRING, BOOLEAN = pa.int32(), pa.int64(), pa.float64(), pa.string(), pa.bool_()

Column: TypeAlias = tuple[str, pa.DataType, bool] | tuple[str, pa.DataType, bool, str]
"""Name, type, whether it can be null, and what is in it, with its unit."""

_MEANING: Final = b"meaning"


def table_schema(*columns: Column) -> pa.Schema:
    """The schema of a table with these columns."""
    return pa.schema([_field(*column) for column in columns])


def meaning(field: pa.Field) -> str:
    """What is in a column; nothing of a column of a table that is only a step towards others."""
    found: bytes = (field.metadata or {}).get(_MEANING, b"")
    return found.decode()


def _field(name: str, kind: pa.DataType, nullable: bool, meant: str = "") -> pa.Field:
    return pa.field(name, kind, nullable, metadata={_MEANING: meant.encode()} if meant else None)
