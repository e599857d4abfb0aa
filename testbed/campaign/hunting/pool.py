"""A hunt's processes: as many as there are processors, each with one case at a time.

They are started as all of our Pythons are, with the code that this process runs. One that takes too long over
a case, or dies over it, is replaced, and the case counts as not finished.
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
"""Of this machine's time, for one case in virtual time."""
END_S = 20.0
"""For what a process may have to put away before it ends."""
DEATHS_MAX = 6
"""Processes that end one after the other before any answers: something is wrong with all of them."""
POLL_S = 0.2
CODE = Path(testbed.__file__).parents[1]
CHUNK_BYTES = 1 << 20


@dataclass(slots=True)
class _Worker:
    process: subprocess.Popen[bytes]
    job: Any = None
    since_s: float = 0.0
    said: bytearray = field(default_factory=bytearray)


@dataclass(frozen=True, slots=True)
class Done:
    """What came of a job. answer: None if its process died or took too long."""

    job: Any
    answer: dict[str, Any] | None


class AnyPool(Protocol):
    """Processes that run cases, here or elsewhere: see `Pool`."""

    @property
    def size(self) -> int:
        """How many."""

    @property
    def idle(self) -> int:
        """How many have nothing to do."""

    @property
    def busy(self) -> int:
        """How many have a case."""

    def give(self, job: Any, request: dict[str, Any]) -> None:
        """Give a request to a process that is idle."""

    def wait(self, within_s: float) -> list[Done]:
        """What was done until now, or is first within this time. Raises TestbedError if all processes end."""

    def all_of(self, requests: Sequence[dict[str, Any]]) -> list[dict[str, Any] | None]:
        """The answers to all of these, in their order. Every process has to be idle."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class Pool:
    """The processes. setup: what each is told first. size: how many; all processors unless given. case_s: for
    how long a case may take. gently: whether they are told to end, and have time for it.
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
        """How many have nothing to do."""
        return sum(worker.job is None for worker in self._workers)

    @property
    def busy(self) -> int:
        """How many have a case."""
        return self.size - self.idle

    def give(self, job: Any, request: dict[str, Any]) -> None:
        """Give a request to a process that is idle."""
        worker = next(each for each in self._workers if each.job is None)
        worker.job, worker.since_s = job, time.monotonic()
        assert worker.process.stdin is not None
        with suppress(BrokenPipeError):  # it died: its end is seen when it is read from
            worker.process.stdin.write(json.dumps(request).encode() + b"\n")
            worker.process.stdin.flush()

    def wait(self, within_s: float) -> list[Done]:
        """What was done until now, or is first within this time. Raises TestbedError if all processes end."""
        ends_s = time.monotonic() + within_s
        while True:
            done = self._look(max(0.0, min(POLL_S, ends_s - time.monotonic())))
            if done or not self.busy or time.monotonic() >= ends_s:
                return done

    def all_of(self, requests: Sequence[dict[str, Any]]) -> list[dict[str, Any] | None]:
        """The answers to all of these, in their order. Every process has to be idle."""
        assert not self.busy
        found: list[dict[str, Any] | None] = [None] * len(requests)
        waiting = list(enumerate(requests))[::-1]
        while waiting or self.busy:
            while waiting and self.idle:
                self.give(*waiting.pop())
            for done in self.wait(self._case_s):
                found[done.job] = done.answer
        return found

    def _look(self, timeout_s: float) -> list[Done]:
        found = []
        for key, _ in self._selector.select(timeout_s):
            worker: _Worker = key.data
            data = os.read(key.fd, CHUNK_BYTES)
            worker.said += data
            if not data:
                found += self._replaced(worker)
            elif worker.said.endswith(b"\n"):
                answer = json.loads(worker.said)
                worker.said.clear()
                self._deaths = 0
                found.append(Done(worker.job, answer))
                worker.job = None
        late_s = time.monotonic() - self._case_s
        for worker in [each for each in self._workers if each.job is not None and each.since_s < late_s]:
            found += self._replaced(worker)
        return found

    def _replaced(self, worker: _Worker) -> list[Done]:
        self._deaths += 1
        if self._deaths > DEATHS_MAX:
            raise TestbedError(f"{self._deaths} processes of the hunt ended before they gave an answer")
        lost = [Done(worker.job, None)] if worker.job is not None else []
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
