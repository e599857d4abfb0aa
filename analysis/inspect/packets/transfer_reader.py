"""Reads the table of transfers in order of time, from the files of all senders at once, in pieces.

Each file ascends by time. A small batch of each is read at a time, and rows are returned once no file can
have an earlier one. So the first rows come after one batch of every file, and memory is bounded by those
batches. Row groups of other times or senders are not read.
"""

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from analysis.errors import AnalysisError, check_transfers
from analysis.inspect.packets.filters import Filter
from analysis.schemas import TRANSFERS
from experiments.records.rundir import RunDirectory

BATCH_ROWS = 2_048
_TIME, _SENDER = "t_ns", "sender"
_REMEDY = "`cutset analyze` writes it again"


@dataclass(frozen=True, slots=True)
class Step:
    """The next rows of one source, ascending by time, and the time up to which no others follow."""

    rows: pa.RecordBatch
    reached_ns: int


def transfers(
    run: RunDirectory, wanted: Filter, columns: Collection[str] = tuple(TRANSFERS.names)
) -> Iterator[pa.Table]:
    """Yield matching transfers with these columns, by time. Raises InputError if the table does not exist."""
    check_transfers(run)
    needed = tuple(dict.fromkeys((*columns, *wanted.columns)))
    files = sorted(path for path in run.table("transfers").glob("*.parquet") if not path.name.startswith("."))
    for merged in merge([_steps(path, wanted, needed) for path in files]):
        yield merged.select(list(columns))


def merge(sources: Sequence[Iterator[Step]]) -> Iterator[pa.Table]:
    """Yield the rows of all sources in order of time. Rows of equal time are in the order of the sources."""
    waiting: list[Step | None] = [next(source, None) for source in sources]
    while any(waiting):
        horizon = min(step.reached_ns for step in waiting if step)
        ready = []
        for number, step in enumerate(waiting):
            if step is None:
                continue
            bound = int(np.searchsorted(step.rows.column(_TIME).to_numpy(), horizon, side="right"))
            ready.append(step.rows.slice(0, bound))
            if step.reached_ns == horizon:
                waiting[number] = next(sources[number], None)
            else:
                waiting[number] = Step(step.rows.slice(bound), step.reached_ns)
        found = pa.Table.from_batches([rows for rows in ready if rows.num_rows], ready[0].schema)
        if found.num_rows:
            yield found.take(pa.array(np.argsort(found.column(_TIME).to_numpy(), kind="stable")))


def _steps(path: Path, wanted: Filter, columns: Collection[str]) -> Iterator[Step]:
    """Yield the matching rows of one file. Raises AnalysisError if it cannot be read."""
    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            if missing := {_SENDER, *columns}.difference(names):
                raise AnalysisError(f"{path}: has no column {min(missing)}; {_REMEDY}")
            for group in _groups(file.metadata, names, wanted):
                yield from _filtered(batches(file, group, columns), wanted)
    except (OSError, pa.ArrowException) as error:
        raise AnalysisError(f"{path}: cannot be read ({error}); {_REMEDY}") from error


def batches(file: pq.ParquetFile, group: int, columns: Collection[str]) -> Iterator[pa.RecordBatch]:
    """Yield a row group in small pieces. Given several groups, the reader would read all of them at once."""
    yield from file.iter_batches(BATCH_ROWS, [group], columns=list(columns), use_threads=False)


def _filtered(pieces: Iterable[pa.RecordBatch], wanted: Filter) -> Iterator[Step]:
    for rows in pieces:
        if not rows.num_rows:
            continue
        reached_ns = int(rows.column(_TIME)[-1].as_py())
        mask = wanted.mask(rows)
        yield Step(rows if mask.all() else rows.filter(pa.array(mask)), reached_ns)
        if wanted.times.end_ns is not None and reached_ns >= wanted.times.end_ns:
            return


def _groups(metadata: pq.FileMetaData, names: Sequence[str], wanted: Filter) -> Iterator[int]:
    """Yield row groups that may have rows of these times, sent by one of these hosts."""
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        times, senders = (_bounds(group.column(names.index(name)), name) for name in (_TIME, _SENDER))
        if not group.num_rows or (times and not wanted.times.meets(*times)):
            continue
        if not senders or wanted.may_be_from(*senders):
            yield number


def _bounds(chunk: pq.ColumnChunkMetaData, name: str) -> tuple[Any, Any] | None:
    """Return the minimum and maximum of a column in a row group, if recorded."""
    known = chunk.statistics
    return (known.min, known.max) if chunk.path_in_schema == name and known and known.has_min_max else None
