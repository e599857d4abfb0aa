"""Which workers a run gets: children of this process where there is little to read, Spark elsewhere.

To start Java, Spark and its Python workers takes some 5 s, in which this machine reads more than a gigabyte;
a run that is small is therefore done before Spark would have started. Whoever names a master gets Spark.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from analysis.jobs.work import ProcessPool, Workers
from experiments.rundir import RunDirectory

BYTES_HERE = 256 << 20
"""Of captures and records: no more than these are analysed without Spark."""


@contextmanager
def workers_for(
    run: RunDirectory, master: str | None, captures: str | None, progress: Callable[[str], None]
) -> Iterator[Workers]:
    """Workers for a run, for as long as it takes. See `analysis.pipeline.analyze` for the parameters."""
    if master is None and _bytes_of(run) <= BYTES_HERE:
        yield ProcessPool.of_this_machine()
    elif master is None or master.startswith("local"):
        progress("starting Spark")
        yield _executors(run, master)
    else:
        from analysis.jobs.cluster import cluster  # noqa: PLC0415  (few have one)

        with cluster(run, master, captures, progress) as workers:
            yield workers


def start_ahead(run: RunDirectory) -> None:
    """Start Spark on this machine if this run is so large already that its analysis will ask for it.

    Raises AnalysisError if Spark does not start.
    """
    if _bytes_of(run) > BYTES_HERE:
        from analysis.session import spark_context  # noqa: PLC0415  (what is small needs no Spark)

        spark_context()


def _executors(run: RunDirectory, master: str | None) -> Workers:
    from analysis.jobs.extraction import load_indices  # noqa: PLC0415  (what is small needs no Spark)
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
