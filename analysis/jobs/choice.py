"""Chooses the workers for a run: child processes, or Spark if a master is given or the run is large.

Both run the same tasks on the same cores. Starting Java, Spark and its Python workers takes about 5 s, so
only runs larger than any that both were measured with use Spark.
"""

import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, suppress

from analysis.errors import AnalysisError
from analysis.jobs.work import ProcessPool, Workers
from experiments.records.rundir import RunDirectory

BYTES_HERE = 4 << 30
"""Size of captures and records above which a run uses Spark by default. The main run has 1.9 GB."""

Progress = Callable[[str], None]
WorkersFor = Callable[[RunDirectory, Progress], AbstractContextManager[Workers]]
"""Provides workers for a run, until the end of the block, and reports what it waits for."""


@contextmanager
def workers_at(master: str | None = None) -> Iterator[WorkersFor]:
    """Provide workers for successive runs. Spark starts for the first run that needs it, and stays.

    master: a Spark master URL; None is this machine. The returned function raises AnalysisError or InputError
    if there are no workers.
    """
    if master is None or master.startswith("local"):
        yield lambda run, progress: _of_this_machine(run, master, progress)
    else:
        from analysis.jobs.cluster import Cluster  # noqa: PLC0415  (few have one)

        with Cluster(master) as cluster:
            yield cluster.workers_for


@contextmanager
def _of_this_machine(run: RunDirectory, master: str | None, progress: Progress) -> Iterator[Workers]:
    if master is None and _bytes_of(run) <= BYTES_HERE:
        yield ProcessPool.of_this_machine()
    else:
        progress("starting Spark")
        yield _executors(run, master)


def start_spark_early(runs: Iterable[RunDirectory]) -> None:
    """Start Spark on this machine in a thread if any of these runs is large enough to need it.

    Java needs seconds to start, in which the caller can do other work. Errors are reported by the analysis.
    """
    if any(_bytes_of(run) > BYTES_HERE for run in runs):
        threading.Thread(target=_start, name="spark", daemon=True).start()


def _start() -> None:
    from analysis.session import spark_context  # noqa: PLC0415  (small runs need no Spark)

    with suppress(AnalysisError):
        spark_context()


def _executors(run: RunDirectory, master: str | None) -> Workers:
    from analysis.jobs.extraction import load_indices  # noqa: PLC0415  (small runs need no Spark)
    from analysis.jobs.spark import Executors  # noqa: PLC0415
    from analysis.session import spark_context  # noqa: PLC0415

    with ThreadPoolExecutor(1) as pool:
        # Indexing takes about as long as Java needs to start; the indices stay beside the captures.
        indexing = pool.submit(load_indices, run)
        context = spark_context(master)
        indexing.result()
    return Executors(context)


def _bytes_of(run: RunDirectory) -> int:
    folders = (run.captures, run.deliveries)
    return sum(path.stat().st_size for folder in folders for path in folder.glob("*") if path.is_file())
