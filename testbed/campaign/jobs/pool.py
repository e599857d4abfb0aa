"""Pools of workers: processes that each do one job at a time.

A job is a request to a module that serves (`serving`). Workers run the same code as this process. A
worker that takes too long for a job, or dies during it, is replaced, and the job has no answer.
"""

import json
import math
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Self

import testbed
from experiments import child_processes
from experiments.child_python import absolute_entries, python_command
from testbed.errors import TestbedError

END_S = 20.0
"""Seconds that a process has to clean up before it ends."""
POLL_S = 0.2
CODE = Path(testbed.__file__).parents[1]
CHUNK_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Job:
    """A job. subject: of the caller. within_s: None: the time limit of the pool."""

    subject: Any
    request: dict[str, Any]
    within_s: float | None = None


@dataclass(frozen=True, slots=True)
class JobResult:
    """The result of a job. answer: None if its process died or took too long; problem: why, in one line."""

    subject: Any
    answer: dict[str, Any] | None
    took_s: float = 0.0
    problem: str = ""
    is_late: bool = False


@dataclass(slots=True)
class _Worker:
    process: subprocess.Popen[bytes]
    job: Job | None = None
    since_s: float = 0.0
    received: bytearray = field(default_factory=bytearray)


class JobPool:
    """Processes of this machine, which start when they are first needed and end with this process.

    size: the number of processes.
    """

    def __init__(
        self,
        module: str,
        setup: dict[str, Any],
        size: int | None = None,
        *,
        within_s: float = math.inf,
        gently: bool = False,
        one_job_each: bool = False,
        deaths_max: float = math.inf,
    ) -> None:
        """Prepare a pool without any process yet.

        module: the one that serves. setup: the first message to each process. size: None: one for each
        processor. within_s: the time limit of a job. gently: whether processes are asked to end and get time
        for it. one_job_each: whether a process ends after its job, which frees its memory. deaths_max: if
        more jobs in a row end without an answer, all are given up.
        """
        self.size = size or len(os.sched_getaffinity(0))
        self.busy = 0
        self._command, self._setup = python_command(module), setup
        self._within_s, self._gently, self._deaths_max = within_s, gently, deaths_max
        self._one_job_each = one_job_each
        self._deaths = 0  # since the last answer
        self._workers: list[_Worker] = []
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for worker in list(self._workers):
            self._end(worker)
        self._selector.close()

    @property
    def idle(self) -> int:
        """The number of processes without a job."""
        return self.size - self.busy

    def give(self, job: Job) -> None:
        """Send a job to an idle process, or start one for it."""
        self.busy += 1
        worker = next((each for each in self._workers if each.job is None), None) or self._started()
        worker.job, worker.since_s = job, time.monotonic()
        _write(worker, job.request)

    def wait(self, within_s: float) -> list[JobResult]:
        """Return the results there are by now, or wait for the first.

        Raises TestbedError if too many jobs in a row end without an answer.
        """
        results = self._received(within_s)
        self.busy -= len(results)
        for result in results:
            self._deaths = 0 if result.answer is not None else self._deaths + 1
            if self._deaths > self._deaths_max:
                raise TestbedError(
                    f"{self._deaths} processes in a row ended without an answer: {result.problem}"
                )
        return results

    def results(
        self, jobs: Iterable[Job], while_waiting: Callable[[], None] = lambda: None, look_s: float = POLL_S
    ) -> Iterator[JobResult]:
        """Do jobs, each as soon as a process is idle, and yield each result when it is there.

        All processes must be idle. while_waiting: called about every `look_s`.
        """
        assert not self.busy
        waiting = iter(jobs)
        while True:
            for job in islice(waiting, self.idle):
                self.give(job)
            if not self.busy:
                return
            results = self.wait(look_s)
            yield from results
            if not results:
                while_waiting()

    def all_of(self, requests: Sequence[dict[str, Any]]) -> list[dict[str, Any] | None]:
        """Return the answers to all of these, in their order. All processes must be idle."""
        jobs = (Job(place, request) for place, request in enumerate(requests))
        found = {result.subject: result.answer for result in self.results(jobs)}
        return [found[place] for place in range(len(requests))]

    def _received(self, within_s: float) -> list[JobResult]:
        ends_s = time.monotonic() + within_s
        while True:
            found = self._look(max(0.0, min(POLL_S, ends_s - time.monotonic())))
            if found or not self.busy or time.monotonic() >= ends_s:
                return found

    def _look(self, timeout_s: float) -> list[JobResult]:
        found = []
        for key, _ in self._selector.select(timeout_s):
            worker: _Worker = key.data
            data = os.read(key.fd, CHUNK_BYTES)
            worker.received += data
            if not data:
                found += self._lost(worker)
            elif worker.received.endswith(b"\n") and worker.job is not None:
                took_s = time.monotonic() - worker.since_s
                found.append(JobResult(worker.job.subject, json.loads(worker.received), took_s))
                worker.received.clear()
                worker.job = None
                if self._one_job_each:
                    self._end(worker)
        now_s = time.monotonic()
        for worker in list(self._workers):
            if worker.job is not None and now_s - worker.since_s > self._limit_s(worker.job):
                found += self._lost(worker, is_late=True)
        return found

    def _limit_s(self, job: Job) -> float:
        return self._within_s if job.within_s is None else job.within_s

    def _lost(self, worker: _Worker, *, is_late: bool = False) -> list[JobResult]:
        """End a process that gives no answer; return the result of its job, if it has one."""
        self._end(worker)
        if worker.job is None:
            return []
        limit_s = self._limit_s(worker.job)
        problem = f"no answer within {limit_s:g} s" if is_late else "its process ended without an answer"
        took_s = time.monotonic() - worker.since_s
        return [JobResult(worker.job.subject, None, took_s, problem, is_late)]

    def _started(self) -> _Worker:
        paths = os.pathsep.join([str(CODE), os.environ.get("PYTHONPATH", "")])
        process = child_processes.start(
            self._command,
            at_our_end=signal.SIGTERM if self._gently else signal.SIGKILL,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": absolute_entries(paths)},
            start_new_session=True,
        )
        worker = _Worker(process)
        self._workers.append(worker)
        _write(worker, self._setup)
        assert process.stdout is not None
        self._selector.register(process.stdout, selectors.EVENT_READ, worker)
        return worker

    def _end(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        process = worker.process
        assert process.stdout is not None
        self._selector.unregister(process.stdout)
        if self._gently:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(END_S)
        with suppress(BrokenPipeError), process:  # closes the pipes and waits
            process.kill()


def _write(worker: _Worker, message: dict[str, Any]) -> None:
    assert worker.process.stdin is not None
    with suppress(BrokenPipeError):  # it died: reading from it shows that
        worker.process.stdin.write(json.dumps(message).encode() + b"\n")
        worker.process.stdin.flush()
