"""Spark's executors as workers that see the run at its own path: on this machine, or on a cluster with a
shared folder.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pyspark import SparkContext

from analysis.errors import AnalysisError
from analysis.jobs.work import R, Task, results_in_task_order, run_task_batch, task_batches

RAISED = re.compile(r"(?!pyspark\.|org\.|java\.|SQLSTATE)([a-zA-Z_]\w*\.)*[A-Z]\w*: ")
"""Matches the last line of a traceback in Python."""
OF_PYSPARK = re.compile(r"pyspark\.errors\.[\w.]+: ")
FAILURE = re.compile(r"(?:most recent failure: |Caused by: org\.apache\.spark\.\w+: (?=\[))(.*)")


@dataclass(frozen=True, slots=True)
class Executors:
    """Executors that read and write the run's files themselves."""

    context: SparkContext

    def execute(self, tasks: Sequence[Task[R]], doing: str) -> list[R]:
        """Run one Spark task per batch, the longest first: Spark starts them in this order."""
        if not tasks:
            return []
        gathered = task_batches(tasks, self.context.defaultParallelism)
        work = self.context.parallelize(gathered, len(gathered)).flatMap(run_task_batch)
        return results_in_task_order(tasks, gathered, collected(work, doing))


def number_of_executors(context: SparkContext) -> int:
    """Return how many executors a cluster provides now."""
    return len(context._jsc.sc().statusTracker().getExecutorInfos()) - 1  # excludes the driver


def collected(work: Any, doing: str) -> list[Any]:
    """Return everything that an RDD yields. Raises AnalysisError with a worker's error, in one line."""
    try:
        return list(work.collect())
    except Exception as error:
        raise AnalysisError(f"{doing} failed: {cause(error)}") from error


def cause(error: Exception) -> str:
    """Return the cause in one line. Spark puts a worker's traceback, or its own error, into a long text."""
    text = str(error)
    lines = [line.strip() for line in text.splitlines()]
    raised = [line for line in lines if RAISED.match(line)] or [
        line for line in lines if OF_PYSPARK.match(line)
    ]
    if raised:
        return raised[-1]
    failure = FAILURE.search(text)
    return failure.group(1) if failure else text.strip().partition("\n")[0]
