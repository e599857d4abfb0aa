"""Spark's daemon of Python workers on this machine: it forks them with everything imported that tasks need.

`spark.python.daemon.module` names it. Without, each worker imports NumPy, Arrow and the analysis by itself,
which takes each a second of processor time at the first task. Workers of a cluster do without: they get our
modules only with their first task. Spark has a daemon for each kind of worker, and those that plan need less.
"""

import gc
import importlib
import sys
from contextlib import suppress

from pyspark.daemon import manager

TASKS = "pyspark.worker"
PRELOADED = (
    TASKS,
    "analysis.tables",
    "analysis.jobs.transfers",
    "analysis.timelines.tasks",
    "analysis.capture.pcap.source",
)

if __name__ == "__main__":
    for name in PRELOADED if sys.argv[1:] == [TASKS] else ():
        with suppress(ImportError):  # the task that needs it says so better
            importlib.import_module(name)
    gc.freeze()  # what stands now is shared with all workers, as long as no collector touches it
    manager()
