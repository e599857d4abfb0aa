"""Spark's daemon of Python workers on this machine: forks workers with all required modules imported.

`spark.python.daemon.module` names it. Without it, each worker imports NumPy, Arrow and the analysis itself,
which takes a second of processor time per worker: at the first task, and whenever a query of the format
`pcap` is planned. Workers of a cluster do not use it: they receive our modules only with their first task.
Spark has one daemon per kind of worker; planning workers need fewer modules.
"""

import gc
import importlib
import sys
from contextlib import suppress

from pyspark.daemon import manager

TASKS = "pyspark.worker"
SOURCE = "analysis.capture.pcap.files.source"
PLANNING = ("pyspark.sql.worker.plan_data_source_read", "pyspark.sql.worker.data_source_pushdown_filters")
PRELOADED = {
    TASKS: (
        "analysis.tables",
        "analysis.jobs.transfers",
        "analysis.timelines.tasks.packets",
        "analysis.timelines.tasks.records",
        "analysis.timelines.tasks.following",
        SOURCE,
    ),
    **dict.fromkeys(PLANNING, (SOURCE,)),
}
"""By kind of worker, the modules that it needs besides its own."""


def serve() -> None:
    """Import the modules for the kind of worker on the command line, then fork workers until Spark ends."""
    [kind] = sys.argv[1:]
    for name in (kind, *PRELOADED[kind]) if kind in PRELOADED else ():
        with suppress(ImportError):  # the task that needs the module reports a better error
            importlib.import_module(name)
    gc.freeze()  # keeps this memory shared with all workers: the garbage collector does not touch it
    manager()


if __name__ == "__main__":
    serve()
