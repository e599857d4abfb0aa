"""The files of a history: where they stand, written so that a crash leaves none torn, read with care.

    history/runs/night=2026-03-14/run-<name of the run>.parquet     as long as the night goes on
    history/runs/night=2026-03-14/night.parquet                     when it is over
    history/metrics/night=…, history/expectations/night=…           likewise

A file is written under a name with a dot before it, synchronised, and renamed. Spark and DuckDB (`*.parquet`)
do not see such names either.

Rows that an older Cutset wrote are brought to today's layout, or said not to be readable.
A file tells the version of its layout in the column `schema`. Each step takes a table from one version to the
next; today's has none behind it. Columns that were added without a new number are empty in older files;
columns that we do not know are left out, as a newer Cutset may have added them. What comes out can be relied
on, whoever wrote it: `analysis.history.row_checks` says how.
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
from analysis.history.row_checks import MalformedError, checked
from experiments.files.whole_files import replacing

WHOLE_NIGHT: Final = "night.parquet"
ENDING: Final = ".parquet"
_FOLDER: Final = f"{NIGHT}="
_RUN: Final = "run-"
_COLUMNS: Final = b"columns"
"""Of a file's metadata: names of its columns. Pages have checksums, and what stands behind them has none."""
COMPRESSION: Final = "zstd"
ROWS_MAX: Final = 10_000_000
"""Of a file; a night of 10,000 runs has a tenth of that."""
Step = Callable[[str, pa.Table], pa.Table]
"""Is given a table's name and its rows in one version, and returns them in the next."""


class UnusableError(Exception):
    """A file that cannot be used, and why."""


@dataclass(frozen=True, slots=True)
class Partition:
    """The folder of one table's rows of one night."""

    path: Path

    @classmethod
    def of(cls, history: Path, table: str, night: str) -> "Partition":
        """Where they stand, or would."""
        return cls(history / table / f"{_FOLDER}{night}")

    @property
    def whole(self) -> Path:
        """The file of all that was compacted."""
        return self.path / WHOLE_NIGHT

    def of_run(self, run: str) -> Path:
        """The file of one run."""
        return self.path / f"{_RUN}{run}{ENDING}"

    def single(self) -> dict[str, Path]:
        """The files of single runs, by their runs' names, in order of those."""
        found = sorted(self.path.glob(f"{_RUN}*{ENDING}")) if self.path.is_dir() else []
        return {file.name.removeprefix(_RUN).removesuffix(ENDING): file for file in found}

    def foreign(self) -> list[Path]:
        """What stands here and is not ours; files being written are nobody's yet."""
        known = {self.whole, *self.single().values()}
        there = sorted(self.path.iterdir()) if self.path.is_dir() else []
        return [path for path in there if path not in known and not path.name.startswith(".")]


def nights(history: Path, table: str) -> list[str]:
    """The nights that have a folder in this table, oldest first."""
    return sorted(night for night, _ in _folders(history, table) if night is not None)


def foreign(history: Path, table: str) -> list[Path]:
    """What stands among a table's nights and is none."""
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
    """The rows of a file, in today's layout without the night.

    run: whose they have to be. Raises UnusableError, and FileNotFoundError if it is gone.
    """
    try:
        rows = _read(path)
        _check_names(rows)
        rows = checked(table, brought_forward(table, rows))
    except FileNotFoundError:
        raise
    except (UnknownLayoutError, MalformedError) as error:
        raise UnusableError(str(error)) from None
    except Exception as error:  # noqa: BLE001 - what a damaged file makes a parser raise is not to be known
        said = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise UnusableError(f"is damaged: {said}") from None
    if run is not None and not set(pc.unique(rows["run"]).to_pylist()) <= {run}:
        raise UnusableError("holds rows of another run than its name says")
    return rows


def _read(path: Path) -> pa.Table:
    """Everything in a file, and texts that are texts."""
    with pq.ParquetFile(path, page_checksum_verification=True) as file:
        if file.metadata.num_rows > ROWS_MAX:
            raise MalformedError(f"has {file.metadata.num_rows:,} rows, more than any night: {ROWS_MAX:,}")
        rows = file.read(use_threads=False)  # files are small: handing them out costs more
    rows.validate(full=True)
    return rows


def named_in(path: Path) -> frozenset[str]:
    """The runs that a file names, by a look at that column alone; `read_rows` says whether it holds them."""
    try:
        with pq.ParquetFile(path) as file:
            return frozenset(pc.unique(file.read(columns=["run"], use_threads=False)["run"]).to_pylist())
    except Exception:  # noqa: BLE001 - as above; whoever reads all of it says what is wrong
        return frozenset()


def _check_names(rows: pa.Table) -> None:
    """Raises UnknownLayoutError if the names of columns are not those that were written."""
    named = (rows.schema.metadata or {}).get(_COLUMNS)
    if named is not None and named.decode(errors="replace") != _names(rows.column_names):
        raise UnknownLayoutError("is damaged: its columns are not those that were written")


def write_rows(path: Path, rows: pa.Table) -> None:
    """Write a file so that a crash at any moment leaves what was there, or the new one. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    rows = rows.replace_schema_metadata({_COLUMNS: _names(rows.column_names)})
    with replacing(path) as stream:
        pq.write_table(rows, stream, compression=COMPRESSION, write_page_checksum=True)


def _names(columns: list[str]) -> str:
    return ",".join(columns)


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

MAY_BE_NULL: Final = {(EXPECTATIONS, "value"), (RUNS, "seed")}


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
    if _is_todays(table, rows, to):
        return rows.replace_schema_metadata()
    missing = [column for column in NEEDED[table] if column not in rows.column_names]
    if missing:
        raise UnknownLayoutError(f"is no file of a history's {table}: it has no column `{missing[0]}`")
    for column in NEEDED[table]:
        if rows[column].null_count:
            raise UnknownLayoutError(f"has rows without a `{column}`")
    return _fitted(table, rows, to)


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


def _is_todays(table: str, rows: pa.Table, version: int) -> bool:
    """Whether there is nothing to bring forward, as in nearly all files."""
    if not rows.schema.equals(SCHEMAS[table]) or pc.unique(rows["schema"]).to_pylist() != [version]:
        return False
    return all(not rows[name].null_count or (table, name) in MAY_BE_NULL for name in rows.column_names)


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
