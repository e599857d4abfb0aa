"""Rows that come in no order, written as one Parquet file in order, in memory that does not grow with them.

Rows are dealt out by bounds that the caller expects to cut them about evenly; each share waits in a file
beside the place of the result, and is sorted alone.
"""

import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.ipc
import pyarrow.parquet as pq

from analysis.extraction import COMPRESSION

ROW_GROUP_ROWS = 32_768  # a second or so of a busy host: what a look at one moment has to read
SHARES_MAX = 256  # open files


class InOrder:
    """Takes tables, and writes them at the end of its `with` block if that went well."""

    def __init__(self, path: Path, schema: pa.Schema, by: str, bounds: Sequence[int]) -> None:
        """by: the column, of integers, that is to ascend."""
        self._path = path
        self._schema = schema
        self._by = by
        step = -(-len(bounds) // SHARES_MAX) or 1
        self._bounds = np.array(bounds[step - 1 :: step], np.int64)
        self._open = ExitStack()
        self._shares: dict[int, pa.ipc.RecordBatchFileWriter] = {}
        self._waiting: list[pa.Table] = []  # where there is only one share

    def __enter__(self) -> "InOrder":
        self._folder = Path(
            self._open.enter_context(tempfile.TemporaryDirectory(prefix=".", dir=self._path.parent))
        )
        return self

    def take(self, table: pa.Table) -> None:
        """Add rows."""
        if not self._bounds.size:
            self._waiting.append(table)
            return
        shares = np.searchsorted(self._bounds, table.column(self._by).to_numpy(), side="right")
        for share in np.unique(shares).tolist():
            self._file(share).write_table(table.filter(pa.array(shares == share)))

    def _file(self, share: int) -> pa.ipc.RecordBatchFileWriter:
        if share not in self._shares:
            self._shares[share] = pa.ipc.new_file(str(self._folder / str(share)), self._schema)
        return self._shares[share]

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        with self._open:
            for file in self._shares.values():
                file.close()
            if kind is None:
                self._write()

    def _write(self) -> None:
        whole_path = self._folder / self._path.name
        with pq.ParquetWriter(whole_path, self._schema, compression=COMPRESSION) as writer:
            if not self._bounds.size:
                whole = pa.concat_tables([self._schema.empty_table(), *self._waiting])
                writer.write_table(whole.sort_by(self._by), row_group_size=ROW_GROUP_ROWS)
            for share in sorted(self._shares):
                writer.write_table(self._read(share).sort_by(self._by), row_group_size=ROW_GROUP_ROWS)
        whole_path.replace(self._path)

    def _read(self, share: int) -> pa.Table:
        return pa.ipc.open_file(str(self._folder / str(share))).read_all()
