"""Tables with dictionary-encoded texts: each text is stored once, and a row has a four-byte code. There are
few hosts, roles and types, but there may be many millions of rows.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

CODED = pa.dictionary(pa.int32(), pa.string())


def coded_schema(schema: pa.Schema) -> pa.Schema:
    """Return the same columns, with texts as codes."""
    return pa.schema([field.with_type(CODED) if field.type == pa.string() else field for field in schema])


def one_text(text: str, length: int) -> pa.Array:
    """Return a column with the same text in every row."""
    return pa.DictionaryArray.from_arrays(pa.array(np.zeros(length, np.int32)), pa.array([text]))


def read_coded(
    path: Path, columns: Sequence[str], schema: pa.Schema, filters: pc.Expression | None = None
) -> pa.Table:
    """Read columns of a Parquet table. schema: that of the whole table."""
    return pq.read_table(
        path, columns=list(columns), filters=filters, read_dictionary=_texts(columns, schema)
    )


def read_coded_groups(
    path: Path, groups: Sequence[int], columns: Sequence[str], schema: pa.Schema
) -> pa.Table:
    """Read some row groups of a file, by number."""
    with pq.ParquetFile(path, read_dictionary=_texts(columns, schema)) as file:
        return file.read_row_groups(groups, columns=list(columns))


def _texts(columns: Sequence[str], schema: pa.Schema) -> list[str]:
    return [name for name in columns if schema.field(name).type == pa.string()]
