"""The processes of a hunt on a Spark cluster: one for each core, each with one case at a time.

A case is a Spark task. The task passes it to a process like those of `pool` on the executor's machine
(`spark_task`), which runs our unpacked code and stays for later cases. If an executor is lost, its tasks are
repeated on another.
"""

import json
import queue
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Self

from analysis.errors import AnalysisError
from analysis.jobs.cluster import PACKAGES, Cluster, write_modules
from analysis.jobs.spark import collected
from testbed.campaign.jobs.pool import Job, JobPool, JobResult
from testbed.campaign.jobs.spark_task import answer_request

CODE = (*PACKAGES, "testbed")
ENDINGS = (".py", ".yaml")


class SparkPool(JobPool):
    """Processes of a cluster; its size is known when it is entered.

    Entering it raises InputError if the URL is invalid, AnalysisError if there is no such cluster.
    """

    def __init__(
        self,
        module: str,
        setup: dict[str, Any],
        master: str,
        say: Callable[[str], None],
        *,
        within_s: float,
        deaths_max: int,
    ) -> None:
        """Prepare a pool; see `LocalPool`. master: the cluster's URL. say: shows what it waits for."""
        super().__init__(0, deaths_max)
        self._answer = partial(answer_request, module=module, setup=json.dumps(setup), within_s=within_s)
        self._cluster, self._say = Cluster(master, None), say
        self._done: queue.Queue[JobResult] = queue.Queue()

    def __enter__(self) -> Self:
        self._cluster.__enter__()
        try:
            self._context = self._cluster.context(self._say, _modules)
        except BaseException:
            self._cluster.__exit__()
            raise
        self.size = self._context.defaultParallelism
        self._threads = ThreadPoolExecutor(self.size)
        self._say(f"{self.size} cores of the cluster run cases")
        return self

    def __exit__(self, *_: object) -> None:
        self._context.cancelAllJobs()
        self._threads.shutdown(cancel_futures=True)
        self._cluster.__exit__()

    def _send(self, job: Job) -> None:
        self._threads.submit(self._run, job)

    def _received(self, within_s: float) -> list[JobResult]:
        try:
            return [self._done.get(timeout=within_s)]
        except queue.Empty:
            return []

    def _run(self, job: Job) -> None:
        """Run a job as a Spark job of one task, in a thread."""
        try:
            work = self._context.parallelize([json.dumps(job.request)], 1).map(self._answer)
            [text] = collected(work, "a case")
            result = JobResult(**json.loads(text))
        except AnalysisError as error:
            result = JobResult(None, None, problem=str(error))
        self._done.put(replace(result, subject=job.subject))


def _modules(path: Path) -> Path:
    return write_modules(path, CODE, ENDINGS)
