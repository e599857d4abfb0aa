"""Writes the rows of a result: as a text table, CSV, JSON, or Parquet."""

import io
import json
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from enum import StrEnum
from math import isfinite
from typing import Any, BinaryIO, Final

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from analysis.errors import AnalysisError
from analysis.pages.report.formatting import aligned
from analysis.sql.questions import QueryResult
from experiments.files.sanitize import sanitize

ROWS_SHOWN: Final = 200
"""Rows of a text table; more are only counted."""
WIDTH_MAX: Final = 80
"""Characters of a value in a text table; longer ones are shortened."""


class OutputFormat(StrEnum):
    """The output format of rows."""

    TABLE = "table"
    CSV = "csv"
    JSON = "json"  # one object per line
    PARQUET = "parquet"


def lines(answer: QueryResult, *, rows_max: int = ROWS_SHOWN) -> Iterator[str]:
    """Yield the lines of a text table: aligned columns, numbers to the right, and the number of rows."""
    shown: list[list[str]] = []
    count = 0
    for batch in answer.batches:
        for row in _rows(batch.slice(0, max(0, rows_max - count))):
            shown.append([_shown(value) for value in row.values()])
        count += batch.num_rows
    heads = [sanitize(name) for name in answer.columns.names]
    right = [place for place, field in enumerate(answer.columns) if _is_number(field.type)]
    head, *rest = aligned([heads, *shown], right)
    yield head
    yield "  ".join("-" * max(map(len, column)) for column in zip(heads, *shown, strict=True))
    yield from rest
    more = f", first {len(shown)} shown; --format csv writes all" if count > len(shown) else ""
    yield f"({count} row{'' if count == 1 else 's'}{more})"


def write(answer: QueryResult, form: OutputFormat, stream: BinaryIO) -> None:
    """Write all rows, batch by batch. Raises OSError."""
    _WRITERS[form](answer, stream)


def _write_table(answer: QueryResult, stream: BinaryIO) -> None:
    for line in lines(answer):
        stream.write(f"{line}\n".encode())


def _write_csv(answer: QueryResult, stream: BinaryIO) -> None:
    plain = pa.schema([pa.field(each.name, _plain_type(each.type)) for each in answer.columns])
    with pacsv.CSVWriter(stream, plain) as writer:
        for batch in answer.batches:
            columns = [_plain(column, field.type) for column, field in zip(batch.columns, plain, strict=True)]
            writer.write_batch(pa.RecordBatch.from_arrays(columns, schema=plain))


def _write_json(answer: QueryResult, stream: BinaryIO) -> None:
    text = io.TextIOWrapper(stream, encoding="utf-8", write_through=True)
    try:
        for batch in answer.batches:
            for row in _rows(batch):
                text.write(json.dumps(_finite(row), default=_as_json, allow_nan=False) + "\n")
    finally:
        text.detach()


def _write_parquet(answer: QueryResult, stream: BinaryIO) -> None:
    try:
        with pq.ParquetWriter(stream, answer.columns, compression="zstd") as writer:
            for batch in answer.batches:
                writer.write_batch(batch)
    except pa.ArrowNotImplementedError as error:
        raise AnalysisError(f"Parquet has no such type ({error}): CAST it to VARCHAR") from None


_WRITERS: Final[Mapping[OutputFormat, Callable[[QueryResult, BinaryIO], None]]] = {
    OutputFormat.TABLE: _write_table,
    OutputFormat.CSV: _write_csv,
    OutputFormat.JSON: _write_json,
    OutputFormat.PARQUET: _write_parquet,
}


def _rows(batch: pa.RecordBatch) -> list[dict[str, Any]]:
    """Return rows as plain values. Raises AnalysisError for a value without one, as an infinite date."""
    try:
        found: list[dict[str, Any]] = batch.to_pylist()
    except (OverflowError, ValueError) as error:
        raise AnalysisError(f"a value cannot be shown ({error}): CAST it to VARCHAR") from None
    return found


def _finite(value: Any) -> Any:
    """Replace infinite numbers and NaN by None, since JSON cannot represent them, and decimals by floats."""
    if isinstance(value, float | Decimal):
        value = float(value)
        return value if isfinite(value) else None
    if isinstance(value, dict):
        return {name: _finite(each) for name, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list) else value


def _shown(value: Any) -> str:
    """Return a value as text for a table, sanitized, since names in runs may be untrusted."""
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    text = sanitize(value if isinstance(value, str) else _text(value))
    return text if len(text) <= WIDTH_MAX else text[: WIDTH_MAX - 3] + "..."


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind))


def _plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the type of a column in CSV: lists and structures become JSON, bytes hexadecimal digits."""
    is_plain = pa.types.is_primitive(kind) and not pa.types.is_interval(kind)
    return kind if is_plain or pa.types.is_null(kind) else pa.string()


def _plain(column: pa.Array, kind: pa.DataType) -> pa.Array:
    if column.type == kind:
        return column
    return pa.array([None if value is None else _text(value) for value in column.to_pylist()], pa.string())


def _text(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else json.dumps(_finite(value), default=_as_json)


def _as_json(value: Any) -> str:
    return value.hex() if isinstance(value, bytes) else str(value)
