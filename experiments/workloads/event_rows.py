"""Events from rows of a user's CSV or Parquet file, read within limits; each cell is a value of its
attribute.

A column has its attribute's name unless the workload maps it; other columns are not read. An empty cell or a
null is an unspecified value. An error is one line that names the row (of data, from 1) and the column.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from node.core.content.content import UNSPECIFIED, ContentAttribute
from node.core.content.value_distributions import Floats
from topologies.document import shown_path
from topologies.errors import InputError
from topologies.strict import suggestion

FILE_BYTES_MAX = 1 << 30
ROWS_MAX = 5_000_000
BLOCK_BYTES = 1 << 22
PARQUET = ".parquet"
SUFFIXES = (".csv", ".csv.gz", PARQUET)
SEPARATORS = (";", "\t", "|")
"""Column separators that programs write instead of a comma."""
NO_UTF_8 = "invalid utf8"
"""Part of Arrow's error message for a cell in another encoding."""

Columns = tuple[tuple[ContentAttribute, str], ...]
"""Attributes and the names of their columns."""


def read_rows(path: Path, columns: Columns) -> Floats:
    """Read the file's rows, one column per attribute. Raises InputError."""
    file = shown_path(path)
    if not path.name.endswith(SUFFIXES):
        raise InputError(file, None, "", f"should end in {', '.join(SUFFIXES)}")
    try:
        status = path.stat()
    except OSError as error:
        raise InputError(file, None, "", f"cannot be read: {error.strerror}") from None
    if status.st_size > FILE_BYTES_MAX:
        raise InputError(file, None, "", f"is larger than {FILE_BYTES_MAX >> 20} MiB")
    return _read(path, file, columns, (status.st_size, status.st_mtime_ns))


class _CellError(Exception):
    """A cell with an invalid value; `row` counts from 0 within the batch."""

    def __init__(self, row: int, problem: str) -> None:
        super().__init__(problem)
        self.row, self.problem = row, problem


@lru_cache(maxsize=4)
def _read(path: Path, file: str, columns: Columns, _state: tuple[int, int]) -> Floats:
    """Read the rows, cached while the file is unchanged: every point of a sweep needs them."""
    read = _parquet if path.name.endswith(PARQUET) else _csv
    parts: list[Floats] = []
    before = 0
    try:
        for batch in read(path, file, [name for _, name in columns]):
            if before + batch.num_rows > ROWS_MAX:
                raise InputError(file, None, "", f"has more than {ROWS_MAX:,} rows")
            parts.append(_rows(batch, columns, before, file))
            before += batch.num_rows
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        where = f"after row {before}: " if before else ""
        raise InputError(file, None, "", f"cannot be read: {where}{_text_of(error)}") from None
    if not before:
        raise InputError(file, None, "", "has no rows")
    return np.concatenate(parts)


def _text_of(error: Exception) -> str:
    """Return Arrow's message; for text in another encoding, the remedy."""
    message = str(error).partition("\n")[0]
    if isinstance(error, UnicodeDecodeError) or NO_UTF_8 in message.lower():
        return "is not UTF-8 text: save it as UTF-8"
    return message


def _rows(batch: pa.RecordBatch, columns: Columns, before: int, file: str) -> Floats:
    found = np.empty((batch.num_rows, len(columns)))
    for place, (attribute, name) in enumerate(columns):
        try:
            found[:, place] = _values(batch.column(place), attribute)
        except _CellError as error:
            where = f"row {before + error.row + 1}, column {name}"
            raise InputError(file, None, where, error.problem) from None
    return found


def _csv(path: Path, file: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    """Yield all columns as text: the attribute parses the cells."""
    options = pa.csv.ConvertOptions(
        column_types=dict.fromkeys(names, pa.string()), strings_can_be_null=True, null_values=[""]
    )
    blocks = pa.csv.ReadOptions(block_size=BLOCK_BYTES)
    with pa.csv.open_csv(path, read_options=blocks, convert_options=options) as reader:
        _refuse_missing(reader.schema.names, names, file)
        for batch in reader:
            yield batch.select(names)


def _parquet(path: Path, file: str, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
    with pa.parquet.ParquetFile(path) as source:
        _refuse_missing(source.schema_arrow.names, names, file)
        for batch in source.iter_batches(columns=list(names)):
            yield batch.select(names)


def _refuse_missing(there: Sequence[str], names: Sequence[str], file: str) -> None:
    for name in names:
        if name not in there:
            if len(there) == 1 and (other := next((each for each in SEPARATORS if each in there[0]), None)):
                raise InputError(file, None, "", f"separates columns by {other!r}: use ','")
            raise InputError(file, None, "", f"has no column {name}{suggestion(name, there)}")
        if list(there).count(name) > 1:
            raise InputError(file, None, "", f"has several columns {name}")


def _values(cells: pa.Array, attribute: ContentAttribute) -> Floats:
    """Parse the values of one column. Raises _CellError."""
    numeric = pa.types.is_integer(cells.type) or pa.types.is_floating(cells.type)
    if numeric and attribute.kind in {"real", "integer"}:
        return _numbers(cells, attribute)
    if pa.types.is_timestamp(cells.type) and attribute.kind == "date":
        cells = cells.cast(pa.date32(), safe=False)
    texts = cells.cast(pa.string()).dictionary_encode()  # each distinct text is parsed once
    known = np.full(len(texts.dictionary) + 1, UNSPECIFIED)
    for place, text in enumerate(texts.dictionary.to_pylist()):
        try:
            known[place] = attribute.number(text.strip())
        except ValueError as error:
            row = pc.index(texts.indices, pa.scalar(place, texts.indices.type)).as_py()
            raise _CellError(row, str(error)) from None
    found: Floats = known[texts.indices.fill_null(len(known) - 1).to_numpy(zero_copy_only=False)]
    return found


def _numbers(cells: pa.Array, attribute: ContentAttribute) -> Floats:
    found: Floats = cells.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    wrong = ~np.isnan(found) & ~((attribute.low <= found) & (found <= attribute.high))
    if attribute.is_whole:
        wrong |= ~np.isnan(found) & (found != np.floor(found))
    for row in np.flatnonzero(wrong)[:1].tolist():
        try:
            attribute.number(repr(float(found[row])))
        except ValueError as error:
            raise _CellError(row, str(error)) from None
    return found


def columns_of(attributes: Sequence[ContentAttribute], named: Mapping[str, str]) -> Columns:
    """Pair the attributes with their columns."""
    return tuple((each, named.get(each.name, each.name)) for each in attributes)
