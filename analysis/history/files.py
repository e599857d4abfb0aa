"""The files of a history: where they are, crash-safe writing, and validated reading.

  history/runs/night=2026-03-14/night.parquet
  history/metrics/night=…, history/expectations/night=…           likewise

A file is written under a name that begins with a dot, synchronised and renamed. Spark and DuckDB
(`*.parquet`) ignore such names too. Earlier versions wrote a file for each run of a night, which is read as
well.

The column `schema` holds the version of a file's layout; a file of another version is reported as unreadable.
Unknown columns are dropped, because a newer Cutset may have added them. The rows returned are valid, whatever
program wrote the file: see `analysis.history.row_checks`.
"""

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis.history.history_schemas import EXPECTATIONS, NIGHT, RUNS, SCHEMA, SCHEMAS
from analysis.history.record import known_night
from analysis.history.row_checks import UnusableError, checked
from experiments.files.whole_files import replacing

_FOLDER: Final = f"{NIGHT}="
_COLUMNS: Final = b"columns"
"""Metadata key with the names of a file's columns.

Pages have checksums, but the footer that names the columns has none.
"""
COMPRESSION: Final = "zstd"
ROWS_MAX: Final = 10_000_000
"""Limit of rows in a file; a night of 10,000 runs has a tenth of that."""


def night_file(history: Path, table: str, night: str) -> Path:
    """Return the file to which rows of a night are written, whether or not it exists."""
    return history / table / f"{_FOLDER}{night}" / "night.parquet"


def files_of(history: Path, table: str, night: str) -> list[Path]:
    """Return the files with rows of a night, that of `night_file` first."""
    return sorted(night_file(history, table, night).parent.glob("[!.]*.parquet"))


def nights(history: Path, table: str) -> list[str]:
    """Return the nights that have a folder in this table, oldest first."""
    return sorted(night for night, _ in _folders(history, table) if night is not None)


def foreign(history: Path, table: str) -> list[Path]:
    """Return the entries of a table's folder and of its nights that do not belong to a history."""
    found = []
    for night, path in _folders(history, table):
        if night is None:
            found.append(path)
        else:
            found += [each for each in sorted(path.glob("[!.]*")) if each.suffix != ".parquet"]
    return found


def _folders(history: Path, table: str) -> Iterator[tuple[str | None, Path]]:
    folder = history / table
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        night = path.name.removeprefix(_FOLDER)
        if path.name.startswith(_FOLDER) and known_night(night) and path.is_dir():
            yield night, path
        elif not path.name.startswith((".", "_")):
            yield None, path


def read_rows(path: Path, table: str) -> pa.Table:
    """Return the rows of a file, without the night. Raises UnusableError."""
    try:
        rows = _read(path)
        _check_names(rows)
        return checked(table, in_layout(table, rows))
    except UnusableError:
        raise
    except Exception as error:  # noqa: BLE001 - a damaged file makes the parser raise any exception
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UnusableError(f"is damaged: {reason}") from None


def _read(path: Path) -> pa.Table:
    """Return all rows of a file and validate them, UTF-8 included."""
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        if file.metadata.num_rows > ROWS_MAX:
            raise UnusableError(f"has {file.metadata.num_rows:,} rows, more than any night: {ROWS_MAX:,}")
        rows = file.read(use_threads=False)  # files are small: threads cost more than they save
    rows.validate(full=True)
    return rows


def named_in(path: Path) -> frozenset[str]:
    """Return the runs that a file names; it is read once until it changes. `read_rows` validates the rows."""
    found = path.stat()
    return _named_in(path, (found.st_ino, found.st_size, found.st_mtime_ns))


@lru_cache(maxsize=4096)
def _named_in(path: Path, version: tuple[int, ...]) -> frozenset[str]:
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


MAY_BE_NULL: Final = {(EXPECTATIONS, "value"), (RUNS, "seed")}


def in_layout(table: str, rows: pa.Table) -> pa.Table:
    """Return the columns of `SCHEMAS[table]`. Raises UnusableError if rows have another layout."""
    if "schema" not in rows.column_names:
        raise UnusableError("is not a file of a history: it has no column `schema`")
    version = rows["schema"]
    if version.type == pa.int32():
        others = version.filter(pc.not_equal(version, SCHEMA))
        if len(others):
            raise UnusableError(f"has schema {others[0]}, and this Cutset reads {SCHEMA}")
    for field in SCHEMAS[table]:
        if field.name not in rows.column_names:
            raise UnusableError(f"is not a file of a history's {table}: it has no column `{field.name}`")
        column = rows[field.name]
        if column.type != field.type:
            raise UnusableError(f"has a column `{field.name}` of {column.type}, not {field.type}")
        if column.null_count and (table, field.name) not in MAY_BE_NULL:
            raise UnusableError(f"has rows without a `{field.name}`")
    return rows.select(SCHEMAS[table].names).replace_schema_metadata()
