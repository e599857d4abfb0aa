"""Execution of studies: one seed after another or in parallel, each into a folder of tables.

    <study>/
      study.json       system, study, parameters, seeds
      report.html, figures/
      seeds/<seed>/
        numbers.json   single numbers; written last, so that a seed with this file is complete
        <table>.parquet

Tables are written as rows are produced. See `node.core.study` for the interface of a study.
"""

import random
import resource
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pyarrow as pa
import pyarrow.parquet as pq

from experiments.campaigns.studydir import StudyDirectory
from experiments.files.whole_files import remove
from experiments.records.json_files import write_json
from experiments.workloads.event_rows import columns_of, read_rows
from node.core.content.content import ContentAttribute
from node.core.content.value_distributions import Floats
from node.core.study import Ints
from node.systems import resolve, studies_of
from topologies.generated.router_arrays import RouterArrays
from topologies.generated.transit_stub import TransitStub

TOLD_EVERY_S = 0.2
ProgressCallback = Callable[[int, str, float], None]
"""Seed, current step, and completed part of the step, from 0 to 1."""


@dataclass(slots=True)
class StudyTables:
    """The environment of a study (`node.core.study.StudyContext`), and its results. Must be closed."""

    seed: int
    folder: Path
    on_progress: ProgressCallback
    rng: random.Random = field(init=False)
    generator: np.random.Generator = field(init=False)
    numbers: dict[str, float] = field(default_factory=dict)
    _writers: dict[str, pq.ParquetWriter] = field(default_factory=dict)
    _told_s: float = 0.0

    def __post_init__(self) -> None:
        """Seed the random sources."""
        self.rng = random.Random(f"study {self.seed}")  # noqa: S311 - not for secrets
        self.generator = np.random.default_rng(self.seed)

    def routers(self, **shape: Any) -> RouterArrays:
        """Return the routers of a topology; see `node.core.study.StudyContext`."""
        asked = {"name": "routers", "kind": "transit-stub", "seed": self.seed, **shape}
        return RouterArrays(TransitStub.model_validate(asked).network())

    def rows(self, path: str, attributes: Sequence[ContentAttribute]) -> Floats:
        """Return the rows of a file; see `node.core.study.StudyContext`. Raises InputError."""
        return read_rows(Path(path), columns_of(attributes, {}))

    def write(self, table: str, columns: Mapping[str, Sequence[Any] | Ints]) -> None:
        """Append rows to a table; see `node.core.study.StudyContext`."""
        rows = pa.table(dict(columns))
        writer = self._writers.get(table)
        if writer is None:
            path = self.folder / f"{table}.parquet"
            remove(path)  # left by a killed attempt, or a link that leads elsewhere
            writer = self._writers[table] = pq.ParquetWriter(path, rows.schema, compression="zstd")
        writer.write_table(rows)

    def put(self, **numbers: float) -> None:
        """Set single numbers; see `node.core.study.StudyContext`."""
        self.numbers |= numbers

    def processor_s(self) -> float:
        """Return the processor time of this process; see `node.core.study.StudyContext`."""
        return time.process_time()

    def report(self, doing: str, done: float) -> None:
        """Report progress; see `node.core.study.StudyContext`."""
        if time.monotonic() - self._told_s >= TOLD_EVERY_S:
            self._told_s = time.monotonic()
            self.on_progress(self.seed, doing, done)

    def close(self) -> None:
        """Close all files."""
        while self._writers:
            self._writers.popitem()[1].close()


def execute(directory: StudyDirectory, seed: int, on_progress: ProgressCallback) -> None:
    """Run one seed of a study in this process."""
    record = directory.read()
    study = studies_of(record.system)[record.study]
    parameters = replace(study.parameters, **record.parameters)
    folder = directory.seed(seed)
    folder.mkdir(parents=True, exist_ok=True)
    _forget_peak()
    began_s, given = time.process_time(), StudyTables(seed, folder, on_progress)
    try:
        resolve(study.execute)(parameters, given)
    finally:
        given.close()
    given.put(processor_s=round(time.process_time() - began_s, 1), memory_bytes=_peak_bytes())
    write_json(directory.numbers(seed), given.numbers)


def _quiet(seed: int, doing: str, done: float) -> None:
    """Show no progress: an executor's output is not seen."""


def execute_seed(job: tuple[Path, int], on_progress: ProgressCallback = _quiet) -> str | None:
    """Run one seed of the study in a directory, in a worker; return the problem, or None."""
    path, seed = job
    try:
        execute(StudyDirectory(path), seed, on_progress)
    except Exception as error:  # noqa: BLE001  the command reports it, and the other seeds continue
        return f"{type(error).__name__}: {error}"
    return None


def _forget_peak() -> None:
    """Let the peak memory be that from now on: a worker runs several studies. See proc(5), clear_refs."""
    with suppress(OSError):  # the peak then includes earlier studies
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def _peak_bytes() -> int:
    """Return the peak memory of this process since `_forget_peak`."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


BYTES_PER_NODE = 60_000
"""Measured with 100,000 nodes of Scribe and all groups: 3.5 GB, plus a margin."""
BYTES_PER_PEER, BYTES_PER_SUBSCRIPTION = 120_000, 60_000
"""Measured with Meghdoot: 3 to 5 GB with 10,000 peers and 50,000 subscriptions; 0.8 GB with 1,000 peers and
25,000 subscriptions, 3.2 GB with 100,000.
"""
BYTES_LEAST = 1 << 30


def side_by_side(nodes: int, peers: int, subscriptions: int) -> int:
    """Return how many seeds of a study of this size this machine can run at once."""
    room = psutil.virtual_memory().available * 3 // 4
    needed = nodes * BYTES_PER_NODE + peers * BYTES_PER_PEER + subscriptions * BYTES_PER_SUBSCRIPTION
    processors = len(psutil.Process().cpu_affinity() or [0])
    return max(1, min(processors, room // max(BYTES_LEAST, needed)))
