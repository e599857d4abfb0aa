"""The files of a history: where they stand, written so that a crash leaves none torn, read with care.

    history/runs/night=2026-03-14/run-<name of the run>.parquet     as long as the night goes on
    history/runs/night=2026-03-14/night.parquet                     when it is over
    history/metrics/night=…, history/expectations/night=…           likewise

A file is written under a name with a dot before it, synchronised, and renamed. Spark and DuckDB (`*.parquet`)
do not see such names either.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from analysis.history.migration import UnknownLayoutError, brought_forward
from analysis.history.record import known_night
from analysis.history.schemas import NIGHT
from experiments.whole_files import replacing

WHOLE_NIGHT: Final = "night.parquet"
ENDING: Final = ".parquet"
_FOLDER: Final = f"{NIGHT}="
_RUN: Final = "run-"
_COLUMNS: Final = b"columns"
"""Of a file's metadata: names of its columns. Pages have checksums, and what stands behind them has none."""
COMPRESSION: Final = "zstd"


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
        rows = brought_forward(table, rows)
    except FileNotFoundError:
        raise
    except UnknownLayoutError as error:
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
        rows = file.read(use_threads=False)  # files are small: handing them out costs more
    rows.validate(full=True)
    return rows


def may_hold(path: Path, run: str) -> bool:
    """Whether a file names this run, by a look at that column alone; `read_rows` says whether it holds it."""
    try:
        with pq.ParquetFile(path) as file:
            return run in file.read(columns=["run"], use_threads=False)["run"].to_pylist()
    except Exception:  # noqa: BLE001 - as above; whoever reads all of it says what is wrong
        return False


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
