"""Workers for what is small: this process, or children that it forks, which takes no start of Java.

Children are forked when there is work and are gone when it is done; what was imported is there at once.
"""

import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context

import psutil

from analysis.errors import AnalysisError
from analysis.jobs.work import R, Task, handfuls

CHILDREN_MAX = 16


class InThisProcess:
    """One task after the other: for within other workers' tasks, and for next to nothing."""

    def carry_out(self, tasks: Sequence[Task[R]], doing: str) -> list[R]:
        """Do them, in their order."""
        with _told(doing):
            return [task.run() for task in tasks]


@dataclass(frozen=True, slots=True)
class Children:
    """As many children as there are cores."""

    cores: int

    @classmethod
    def of_this_machine(cls) -> "Children":
        """One for each processor that this process may use."""
        return cls(min(CHILDREN_MAX, len(psutil.Process().cpu_affinity())))

    def carry_out(self, tasks: Sequence[Task[R]], doing: str) -> list[R]:
        """Do them. Ctrl-C waits for what has begun, which is short."""
        if self.cores == 1 or len(tasks) <= 1:
            return InThisProcess().carry_out(tasks, doing)
        gathered = handfuls(tasks, self.cores)
        pool = ProcessPoolExecutor(self.cores, get_context("fork"), _leave_interrupts_to_the_parent)
        try:
            with _told(doing):
                done = list(pool.map(_do, gathered))
        finally:
            pool.shutdown(cancel_futures=True)
        return [result for results in done for result in results]


@contextmanager
def _told(doing: str) -> Iterator[None]:
    try:
        yield
    except AnalysisError as error:
        raise AnalysisError(f"{doing} failed: {error}") from error
    except BrokenProcessPool as error:
        raise AnalysisError(f"{doing} failed: a process was killed, perhaps for want of memory") from error
    except Exception as error:
        raise AnalysisError(f"{doing} failed: {type(error).__name__}: {error}") from error


def _leave_interrupts_to_the_parent() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _do(handful: Sequence[Task[R]]) -> list[R]:
    return [task.run() for task in handful]
