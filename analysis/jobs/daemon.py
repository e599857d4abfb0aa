"""Spark's daemon of Python workers on this machine: it forks them with everything imported that tasks need.

`spark.python.daemon.module` names it. Without, each worker imports NumPy, Arrow and the analysis by itself,
which takes each a second of processor time at the first task. Workers of a cluster do without: they get our
modules only with their first task.
"""

import gc
import importlib
from contextlib import suppress

from pyspark.daemon import manager

PRELOADED = (
    "analysis.tables",
    "analysis.jobs.transfers",
    "analysis.timelines.tasks",
    "analysis.capture.pcap.source",
)

if __name__ == "__main__":
    for name in ("pyspark.worker", *PRELOADED):
        with suppress(ImportError):  # the task that needs it says so better
            importlib.import_module(name)
    gc.freeze()  # what stands now is shared with all workers, as long as no collector touches it
    manager()
