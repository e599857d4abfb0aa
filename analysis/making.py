"""Tables in the making: written by many tasks beside their place, and moved there when all are whole.

So an analysis that is interrupted, or whose tasks fail, leaves the old tables as they were.
"""

import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from experiments.rundir import RunDirectory


@contextmanager
def in_the_making(run: RunDirectory, schemas: Mapping[str, pa.Schema]) -> Iterator[dict[str, Path]]:
    """Folders for the files of some tables, by name, until the end of the block."""
    folders = {name: run.table_in_the_making(name) for name in schemas}
    try:
        for name, folder in folders.items():
            shutil.rmtree(folder, ignore_errors=True)  # of an analysis that was killed
            folder.mkdir(parents=True)
            # the schema, even where there are no rows
            pq.write_table(schemas[name].empty_table(), folder / "part-empty.parquet")
        yield folders
        for name, folder in folders.items():
            _clear(folder)
            shutil.rmtree(run.table(name), ignore_errors=True)
            folder.rename(run.table(name))
    finally:
        for folder in folders.values():
            shutil.rmtree(folder, ignore_errors=True)  # nothing, if all went well


def _clear(folder: Path) -> None:
    """Remove what tasks left that were killed in the middle: others did them again."""
    for torn in folder.glob(".*"):
        torn.unlink()
