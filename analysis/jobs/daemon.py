"""Spark's daemon of Python workers on this machine: it forks them with everything imported that they need.

`spark.python.daemon.module` names it. Without, each worker imports NumPy, Arrow and the analysis by itself,
which takes each a second of processor time: at the first task, and whenever a query of the format `pcap` is
planned. Workers of a cluster do without: they get our modules only with their first task. Spark has a daemon
for each kind of worker, and those that plan need less.
"""

import gc
import importlib
import sys
from collections.abc import Mapping
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
"""By the kind of worker, what it needs beside itself."""


def serve(preloaded: Mapping[str, tuple[str, ...]]) -> None:
    """Import what workers of the kind on the command line need, then fork them until Spark ends."""
    [kind] = sys.argv[1:]
    for name in (kind, *preloaded[kind]) if kind in preloaded else ():
        with suppress(ImportError):  # the task that needs it says so better
            importlib.import_module(name)
    gc.freeze()  # what stands now is shared with all workers, as long as no collector touches it
    manager()


if __name__ == "__main__":
    serve(PRELOADED)
