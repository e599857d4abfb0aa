"""The files of a history: where they are, crash-safe writing, and validated reading.

  history/runs/night=2026-03-14/run-<name of the run>.parquet     while the night is running
  history/runs/night=2026-03-14/night.parquet                     when it is over
  history/metrics/night=…, history/expectations/night=…           likewise

A file is written under a name that begins with a dot, synchronised and renamed. Spark and DuckDB
(`*.parquet`) ignore such names too.

Rows that an older Cutset wrote are migrated to the current layout or reported as unreadable. The column
`schema` holds the version of a file's layout. Each step takes a table from one version to the next. Columns
that were added without a new version are empty in older files. Unknown columns are dropped, because a newer
Cutset may have added them. The rows returned are valid, whatever program wrote the file: see
`analysis.history.row_checks`.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis.history.history_schemas import EXPECTATIONS, METRICS, NIGHT, RUNS, SCHEMA, SCHEMAS
from analysis.history.record import known_night
from analysis.history.row_checks import UnusableError, checked
from experiments.files.whole_files import replacing

WHOLE_NIGHT: Final = "night.parquet"
ENDING: Final = ".parquet"
_FOLDER: Final = f"{NIGHT}="
_RUN: Final = "run-"
_COLUMNS: Final = b"columns"
"""Metadata key with the names of a file's columns.

Pages have checksums, but the footer that names the columns has none.
"""
COMPRESSION: Final = "zstd"
ROWS_MAX: Final = 10_000_000
"""Limit of rows in a file; a night of 10,000 runs has a tenth of that."""
Step = Callable[[str, pa.Table], pa.Table]
"""A function from a table's name and its rows in one version to the rows in the next version."""


@dataclass(frozen=True, slots=True)
class HistoryPartition:
    """The folder of one table's rows of one night."""

    path: Path

    @classmethod
    def for_night(cls, history: Path, table: str, night: str) -> "HistoryPartition":
        """Return the partition of a table and a night, whether or not it exists."""
        return cls(history / table / f"{_FOLDER}{night}")

    @property
    def whole(self) -> Path:
        """The file of all compacted rows."""
        return self.path / WHOLE_NIGHT

    def of_run(self, run: str) -> Path:
        """Return the path of one run's file."""
        return self.path / f"{_RUN}{run}{ENDING}"

    def single(self) -> dict[str, Path]:
        """Return the files of single runs by run name, in the order of the names."""
        found = sorted(self.path.glob(f"{_RUN}*{ENDING}")) if self.path.is_dir() else []
        return {file.name.removeprefix(_RUN).removesuffix(ENDING): file for file in found}

    def foreign(self) -> list[Path]:
        """Return the entries that do not belong to a history.

        Files that are still being written are not among them.
        """
        known = {self.whole, *self.single().values()}
        there = sorted(self.path.iterdir()) if self.path.is_dir() else []
        return [path for path in there if path not in known and not path.name.startswith(".")]


def nights(history: Path, table: str) -> list[str]:
    """Return the nights that have a folder in this table, oldest first."""
    return sorted(night for night, _ in _folders(history, table) if night is not None)


def foreign(history: Path, table: str) -> list[Path]:
    """Return the entries of a table's folder that are no nights."""
    return [path for night, path in _folders(history, table) if night is None]


def _folders(history: Path, table: str) -> Iterator[tuple[str | None, Path]]:
    folder = history / table
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        night = path.name.removeprefix(_FOLDER)
        if path.name.startswith(_FOLDER) and known_night(night) and path.is_dir():
            yield night, path
        elif not path.name.startswith((".", "_")):
            yield None, path


def read_rows(path: Path, table: str, run: str | None = None) -> pa.Table:
    """Return the rows of a file in the current layout, without the night.

    run: name that all rows must have. Raises UnusableError, or FileNotFoundError if the file is gone.
    """
    try:
        rows = _read(path)
        _check_names(rows)
        rows = checked(table, brought_forward(table, rows))
    except (FileNotFoundError, UnusableError):
        raise
    except Exception as error:  # noqa: BLE001 - a damaged file makes the parser raise any exception
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UnusableError(f"is damaged: {said}") from None
    if run is not None and not set(pc.unique(rows["run"]).to_pylist()) <= {run}:
        raise UnusableError("holds rows of a run other than the one in its name")
    return rows


def _read(path: Path) -> pa.Table:
    """Return all rows of a file and validate them, UTF-8 included."""
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        if file.metadata.num_rows > ROWS_MAX:
            raise UnusableError(f"has {file.metadata.num_rows:,} rows, more than any night: {ROWS_MAX:,}")
        rows = file.read(use_threads=False)  # files are small: threads cost more than they save
    rows.validate(full=True)
    return rows


def named_in(path: Path) -> frozenset[str]:
    """Return the runs that a file names. Only that column is read; `read_rows` validates the rows."""
    try:
        with pq.ParquetFile(path) as file:
            return frozenset(pc.unique(file.read(columns=["run"], use_threads=False)["run"]).to_pylist())
    except Exception:  # noqa: BLE001 - as above; `read_rows` reports the reason
        return frozenset()


def _check_names(rows: pa.Table) -> None:
    """Raise UnusableError if the column names differ from those that were written."""
    named = (rows.schema.metadata or {}).get(_COLUMNS)
    if named is not None and named.decode(errors="replace") != _names(rows.column_names):
        raise UnusableError("is damaged: its columns are not those that were written")


def write_rows(path: Path, rows: pa.Table) -> None:
    """Write a file so that a crash at any moment leaves the old file or the new one. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = rows.replace_schema_metadata({_COLUMNS: _names(rows.column_names)})
    with replacing(path) as stream:
        pq.write_table(rows, stream, compression=COMPRESSION, write_page_checksum=True)


def _names(columns: list[str]) -> str:
    return ",".join(columns)


def _with_allowance(table: str, rows: pa.Table) -> pa.Table:
    """Add the column of version 2 that marks allowed failures; older rows have none."""
    if table != RUNS:
        return rows
    return rows.append_column("allow_failure", pa.repeat(pa.scalar(value=False), rows.num_rows))


STEPS: Final[Mapping[int, Step]] = {1: _with_allowance}
"""Steps by the version that each starts from."""

NEEDED: Final = {
    RUNS: ("run", "suite", "entry", "verdict", "valid", "started_ns"),
    METRICS: ("run", "suite", "entry", "metric", "value"),
    EXPECTATIONS: ("run", "suite", "entry", "text", "held"),
}
"""Columns that a file must have, without nulls."""

MAY_BE_NULL: Final = {(EXPECTATIONS, "value"), (RUNS, "seed")}


def brought_forward(
    table: str, rows: pa.Table, steps: Mapping[int, Step] = STEPS, to: int = SCHEMA
) -> pa.Table:
    """Return the rows of this table in the current layout, `SCHEMAS[table]`. Raises UnusableError."""
    twice = [name for name, count in Counter(rows.column_names).items() if count > 1]
    if twice:
        raise UnusableError(f"is no file of a history: it has the column `{twice[0]}` twice")
    if "schema" not in rows.column_names:
        raise UnusableError("is no file of a history: it has no column `schema`")
    version = _version(rows)
    if version > to:
        raise UnusableError(f"was written by a newer Cutset: schema {version}, and this one knows {to}")
    while version < to:
        if version not in steps:
            raise UnusableError(f"has schema {version}, which no Cutset wrote")
        rows = steps[version](table, rows)
        version += 1
    if _is_todays(table, rows, to):
        return rows.replace_schema_metadata()
    missing = [column for column in NEEDED[table] if column not in rows.column_names]
    if missing:
        raise UnusableError(f"is no file of a history's {table}: it has no column `{missing[0]}`")
    for column in NEEDED[table]:
        if rows[column].null_count:
            raise UnusableError(f"has rows without a `{column}`")
    return _fitted(table, rows, to)


def _version(rows: pa.Table) -> int:
    if rows.num_rows == 0:
        return SCHEMA
    column = rows["schema"]
    if not pa.types.is_integer(column.type):
        raise UnusableError(f"has a column `schema` of {column.type}, not int32")
    found = pc.unique(column).to_pylist()
    if len(found) > 1:
        raise UnusableError(f"has rows of several schemas: {', '.join(map(str, found))}")
    if found[0] is None:
        raise UnusableError("has rows without a `schema`")
    return int(found[0])


def _is_todays(table: str, rows: pa.Table, version: int) -> bool:
    """Return whether the rows are in the current layout already, as in nearly all files."""
    if not rows.schema.equals(SCHEMAS[table]) or pc.unique(rows["schema"]).to_pylist() != [version]:
        return False
    return all(not rows[name].null_count or (table, name) in MAY_BE_NULL for name in rows.column_names)


def _fitted(table: str, rows: pa.Table, version: int) -> pa.Table:
    """Return the current columns in their order and types; missing columns are empty."""
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
    """Replace nulls by the value that records use for "unknown": an empty text, an empty list, 0 or false."""
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
        raise UnusableError(f"has a column `{field.name}` of {column.type}, not {field.type}") from None
