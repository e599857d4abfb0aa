"""A run's tables of packets, messages, gaps, decoding, memberships and captures, extracted from its captures.

Workers extract them (`analysis.jobs`), and their tasks write Parquet with Arrow themselves: rows never pass
through Java. (On 2 cores, 4.1 million packets: 24 s if Spark writes the rows of the data source `pcap`, 2 s
this way.)

Tasks write new tables next to the final place; the tables are renamed when all are complete. If an analysis
is interrupted or its tasks fail, the old tables stay as they were.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from analysis.errors import AnalysisError
from analysis.jobs.extraction import SCHEMAS, Task, describe_captures, load_indices, open_table, plan_tasks
from analysis.jobs.work import Workers
from experiments.files.whole_files import remove
from experiments.records.rundir import RunDirectory


def extract(workers: Workers, run: RunDirectory) -> None:
    """Write all six tables. Raises AnalysisError if a task fails."""
    indices, unusable = load_indices(run)
    with staged_tables(run, SCHEMAS) as folders:
        with open_table(folders["captures"] / "part-00000.parquet", "captures") as writer:
            writer.write_table(describe_captures(indices, unusable))
        problems = workers.execute([_Fill(task, folders) for task in plan_tasks(run, indices)], _DOING)
        if any(problems):
            raise AnalysisError(f"{_DOING} failed: {next(filter(None, problems))}")


_DOING = "extracting packets and messages"


@dataclass(frozen=True, slots=True)
class _Fill:
    """A task of extraction with the folders for its files."""

    task: Task
    folders: Mapping[str, Path]

    @property
    def weight(self) -> int:
        return self.task.weight

    def __call__(self) -> str | None:
        """Run the task. Returns what is wrong with the capture, which a retry would not fix."""
        try:
            self.task.run(self.folders)
        except AnalysisError as error:
            return str(error)
        return None


@contextmanager
def staged_tables(run: RunDirectory, schemas: Mapping[str, pa.Schema]) -> Iterator[dict[str, Path]]:
    """Create folders for the files of some tables, by name, until the end of the block."""
    with run.unfinished(*schemas) as folders:
        for name, folder in folders.items():
            # the schema, even if there are no rows
            pq.write_table(schemas[name].empty_table(), folder / "part-empty.parquet")
        yield folders
        for name, folder in folders.items():
            _clear(folder)
            remove(run.table(name))
            folder.rename(run.table(name))


def _clear(folder: Path) -> None:
    """Remove temporary files of tasks that were killed; other tasks repeated their work."""
    for torn in folder.glob(".*"):
        torn.unlink()
