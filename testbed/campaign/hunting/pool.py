"""The processes of a hunt: one for each processor, each with one case at a time.

They run the same code as this process. A process that takes too long for a case, or dies during it, is
replaced, and the case counts as not finished.
"""

import json
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, Self

import testbed
from experiments import child_processes
from experiments.child_python import python_command
from testbed.errors import TestbedError

CASE_S_MAX = 300.0
"""Seconds of this machine's time for one case in virtual time."""
END_S = 20.0
"""Seconds that a process has to clean up before it ends."""
DEATHS_MAX = 6
"""If more processes end in a row without any answer, the hunt is ended as defective."""
POLL_S = 0.2
CODE = Path(testbed.__file__).parents[1]
CHUNK_BYTES = 1 << 20


@dataclass(slots=True)
class _Worker:
    process: subprocess.Popen[bytes]
    job: Any = None
    since_s: float = 0.0
    received: bytearray = field(default_factory=bytearray)


@dataclass(frozen=True, slots=True)
class JobResult:
    """The result of a job. answer: None if its process died or took too long."""

    job: Any
    answer: dict[str, Any] | None


class HuntPool(Protocol):
    """Processes that run cases, here or elsewhere: see `LocalPool`."""

    @property
    def size(self) -> int:
        """The number of processes."""

    @property
    def idle(self) -> int:
        """The number of processes without a case."""

    @property
    def busy(self) -> int:
        """The number of processes with a case."""

    def give(self, job: Any, request: dict[str, Any]) -> None:
        """Send a request to an idle process."""

    def wait(self, within_s: float) -> list[JobResult]:
        """Return the jobs done by now, or wait for the first. Raises TestbedError if all processes end."""

    def all_of(self, requests: Sequence[dict[str, Any]]) -> list[dict[str, Any] | None]:
        """Return the answers to all of these, in their order. All processes must be idle."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class LocalPool:
    """The processes.

    setup: the first message to each. size: their number; by default the number of processors. case_s: the
    time limit of a case. gently: whether they are asked to end and get time for it.
    """

    def __init__(
        self,
        setup: dict[str, Any],
        size: int | None = None,
        *,
        case_s: float = CASE_S_MAX,
        gently: bool = False,
    ) -> None:
        self._setup, self._case_s, self._gently = setup, case_s, gently
        self.size = size or len(os.sched_getaffinity(0))
        self._workers: list[_Worker] = []
        self._deaths = 0  # since the last answer
        self._selector = selectors.DefaultSelector()

    def __enter__(self) -> Self:
        for _ in range(self.size):
            self._start()
        return self

    def __exit__(self, *_: object) -> None:
        for worker in list(self._workers):
            self._end(worker)
        self._selector.close()

    @property
    def idle(self) -> int:
        """The number of processes without a case."""
        return sum(worker.job is None for worker in self._workers)

    @property
    def busy(self) -> int:
        """The number of processes with a case."""
        return self.size - self.idle

    def give(self, job: Any, request: dict[str, Any]) -> None:
        """Send a request to an idle process."""
        worker = next(each for each in self._workers if each.job is None)
        worker.job, worker.since_s = job, time.monotonic()
        assert worker.process.stdin is not None
        with suppress(BrokenPipeError):  # it died: reading from it shows that
            worker.process.stdin.write(json.dumps(request).encode() + b"\n")
            worker.process.stdin.flush()

    def wait(self, within_s: float) -> list[JobResult]:
        """Return the jobs done by now, or wait for the first. Raises TestbedError if all processes end."""
        ends_s = time.monotonic() + within_s
        while True:
            done = self._look(max(0.0, min(POLL_S, ends_s - time.monotonic())))
            if done or not self.busy or time.monotonic() >= ends_s:
                return done

    def all_of(self, requests: Sequence[dict[str, Any]]) -> list[dict[str, Any] | None]:
        """Return the answers to all of these, in their order. All processes must be idle."""
        assert not self.busy
        found: list[dict[str, Any] | None] = [None] * len(requests)
        waiting = list(enumerate(requests))[::-1]
        while waiting or self.busy:
            while waiting and self.idle:
                self.give(*waiting.pop())
            for done in self.wait(self._case_s):
                found[done.job] = done.answer
        return found

    def _look(self, timeout_s: float) -> list[JobResult]:
        found = []
        for key, _ in self._selector.select(timeout_s):
            worker: _Worker = key.data
            data = os.read(key.fd, CHUNK_BYTES)
            worker.received += data
            if not data:
                found += self._replaced(worker)
            elif worker.received.endswith(b"\n"):
                answer = json.loads(worker.received)
                worker.received.clear()
                self._deaths = 0
                found.append(JobResult(worker.job, answer))
                worker.job = None
        late_s = time.monotonic() - self._case_s
        for worker in [each for each in self._workers if each.job is not None and each.since_s < late_s]:
            found += self._replaced(worker)
        return found

    def _replaced(self, worker: _Worker) -> list[JobResult]:
        self._deaths += 1
        if self._deaths > DEATHS_MAX:
            raise TestbedError(f"{self._deaths} processes of the hunt ended before they gave an answer")
        lost = [JobResult(worker.job, None)] if worker.job is not None else []
        self._end(worker)
        self._start()
        return lost

    def _start(self) -> None:
        environment = {**os.environ}
        paths = [str(CODE), *filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))]
        environment["PYTHONPATH"] = os.pathsep.join(paths)
        process = child_processes.start(
            python_command("testbed.campaign.hunting.worker"),
            at_our_end=signal.SIGTERM if self._gently else signal.SIGKILL,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
        worker = _Worker(process)
        self._workers.append(worker)
        assert process.stdin is not None
        assert process.stdout is not None
        with suppress(BrokenPipeError):
            process.stdin.write(json.dumps(self._setup).encode() + b"\n")
            process.stdin.flush()
        self._selector.register(process.stdout, selectors.EVENT_READ, worker)

    def _end(self, worker: _Worker) -> None:
        self._workers.remove(worker)
        assert worker.process.stdout is not None
        assert worker.process.stdin is not None
        self._selector.unregister(worker.process.stdout)
        if self._gently:
            worker.process.terminate()
            with suppress(subprocess.TimeoutExpired):
                worker.process.wait(END_S)
        worker.process.kill()
        worker.process.wait()
        worker.process.stdout.close()
        with suppress(BrokenPipeError):
            worker.process.stdin.close()
