"""The processes of a hunt on a Spark cluster: one for each core, each with one case at a time.

A case is a Spark task. The task passes it to a process like those of `pool` on the executor's machine
(`spark_task`), which runs our unpacked code and stays for later cases. If an executor is lost, its tasks are
repeated on another.
"""

import json
import queue
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any, Self

from analysis.errors import AnalysisError
from analysis.jobs.cluster import PACKAGES, Cluster, write_modules
from analysis.jobs.spark import collected
from testbed.campaign.hunting.pool import CASE_S_MAX, DEATHS_MAX, JobResult
from testbed.campaign.hunting.spark_task import FAILED, answer_request
from testbed.errors import TestbedError

CODE = (*PACKAGES, "testbed")
ENDINGS = (".py", ".yaml")
ALL_S = 3600.0


class SparkPool:
    """The same as `Pool`, on a cluster. master: its URL. say: shows what it waits for.

    Entering it raises InputError if the URL is invalid, AnalysisError if there is no such cluster.
    """

    def __init__(self, setup: dict[str, Any], master: str, say: Callable[[str], None]) -> None:
        self._setup = json.dumps(setup)
        self._cluster, self._say = Cluster(master, None), say
        self._done: queue.Queue[tuple[Any, dict[str, Any] | str]] = queue.Queue()
        self._deaths = 0  # since the last answer
        self.busy = 0

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

    @property
    def idle(self) -> int:
        """The number of cores without a case."""
        return self.size - self.busy

    def give(self, job: Any, request: dict[str, Any]) -> None:
        """Send a request to an idle core."""
        self.busy += 1
        self._threads.submit(self._run, job, json.dumps(request))

    def wait(self, within_s: float) -> list[JobResult]:
        """Return the first job that is done within this time. Raises TestbedError if no process answers."""
        try:
            job, answer = self._done.get(timeout=within_s)
        except queue.Empty:
            return []
        self.busy -= 1
        if isinstance(answer, str):
            self._deaths += 1
            if self._deaths > DEATHS_MAX:
                raise TestbedError(f"{self._deaths} cases got no answer from the cluster: {answer}")
            return [JobResult(job, None)]
        self._deaths = 0
        return [JobResult(job, answer)]

    def all_of(self, requests: Sequence[dict[str, Any]]) -> list[dict[str, Any] | None]:
        """Return the answers to all of these, in their order. All cores must be idle."""
        assert not self.busy
        found: list[dict[str, Any] | None] = [None] * len(requests)
        for place, request in enumerate(requests):
            self.give(place, request)
        while self.busy:
            for done in self.wait(ALL_S):
                found[done.job] = done.answer
        return found

    def _run(self, job: Any, request: str) -> None:
        """Run one case as a job of one task, in a thread."""
        try:
            work = self._context.parallelize([request], 1).map(
                partial(answer_request, setup=self._setup, within_s=CASE_S_MAX)
            )
            [text] = collected(work, "a case")
            answer = json.loads(text)
        except AnalysisError as error:
            self._done.put((job, str(error)))
        else:
            self._done.put((job, answer.get(FAILED, answer)))


def _modules(path: Path) -> Path:
    return write_modules(path, CODE, ENDINGS)
