"""What is handed out, and to whom: independent tasks, and workers that carry them out.

A task is plain data that can be sent elsewhere. It reads files of the run and writes files of tables in the
making, each under a temporary name that is renamed at the end, so that doing it twice does no harm; what it
returns is small. Small tasks go several to a handful, since to start one elsewhere costs more than they do.

Workers of this machine are this process, or children that are forked when there is work and are gone when it
is done; what was imported is there at once. `choice` says who does a run's work.
"""

import gc
import os
import signal
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, Protocol, TypeVar

from analysis.errors import AnalysisError
from experiments.child_processes import end_with_parent

R_co = TypeVar("R_co", covariant=True)
R = TypeVar("R")

HANDFULS = 2
"""Per core, at least: so that one that takes long does not keep the others waiting."""
HANDFUL_BYTES = 32 << 20
"""What is worth a handful of its own."""
CHILDREN_MAX = 16


class Task(Protocol[R_co]):
    """A piece of work that can be done anywhere where its files can be seen."""

    def run(self) -> R_co:
        """Do it."""


class Workers(Protocol):
    """Whoever carries out tasks."""

    def carry_out(self, tasks: Sequence[Task[R]], doing: str) -> list[R]:
        """Do all tasks; their results, in the order of the tasks, so that nothing depends on who works.

        doing: what this is, for the error. Raises AnalysisError if a task fails.
        """


def weight_of(task: Any) -> int:
    """How long a task takes, roughly, in bytes that it reads; 1 for one that does not say."""
    return int(getattr(task, "weight", 1))


def handfuls(tasks: Sequence[Task[R]], cores: int) -> list[tuple[Task[R], ...]]:
    """Put tasks together so that all handfuls take about as long, the longest tasks first.

    Longest processing time first: each task goes to the handful that has least so far (Graham 1969).
    """
    total = sum(weight_of(task) for task in tasks)
    number = min(len(tasks), max(cores * HANDFULS, total // HANDFUL_BYTES))
    gathered: list[list[Task[R]]] = [[] for _ in range(number)]
    weights = [0] * number
    for task in sorted(tasks, key=lambda one: -weight_of(one)):
        least = weights.index(min(weights))
        gathered[least].append(task)
        weights[least] += weight_of(task)
    return [tuple(handful) for handful in gathered]


class InlineWorkers:
    """One task after the other: for within other workers' tasks, and for next to nothing."""

    def carry_out(self, tasks: Sequence[Task[R]], doing: str) -> list[R]:
        """Do them, in their order."""
        with _told(doing):
            return [task.run() for task in tasks]


@dataclass(frozen=True, slots=True)
class ProcessPool:
    """As many children as there are cores."""

    cores: int

    @classmethod
    def of_this_machine(cls) -> "ProcessPool":
        """One for each processor that this process may use."""
        return cls(min(CHILDREN_MAX, len(os.sched_getaffinity(0))))

    def carry_out(self, tasks: Sequence[Task[R]], doing: str) -> list[R]:
        """Do them. Ctrl-C waits for what has begun, which is short."""
        if self.cores == 1 or len(tasks) <= 1:
            return InlineWorkers().carry_out(tasks, doing)
        gathered = handfuls(tasks, self.cores)
        with _children(self.cores, gathered) as pool, _told(doing):
            done = list(pool.map(_do, range(len(gathered))))
        return in_order(tasks, gathered, [result for results in done for result in results])


@contextmanager
def meanwhile(work: Callable[..., object], *given: object, doing: str) -> Iterator[None]:
    """Do some work in a child while the block runs, and wait for it at the block's end.

    given: its arguments, which are pickled. doing: what this is, for the error. Raises what the work raises;
    AnalysisError if the child is killed.
    """
    with _children(1, ()) as pool:
        try:
            done = pool.submit(work, *given)
            yield
            done.result()
        except BrokenProcessPool as error:
            raise AnalysisError(f"{doing} failed: {_KILLED}") from error


@contextmanager
def _children(count: int, gathered: Sequence[tuple[Task[Any], ...]]) -> Iterator[ProcessPoolExecutor]:
    """A pool of so many forked children, for the length of the block.

    Children leave garbage of ours alone: to look for it they would copy all that is here, and what is freed
    may wait for threads that a fork does not copy (a compressor of python-zstandard, for its own).
    """
    pool = ProcessPoolExecutor(count, get_context("fork"), _begin, (os.getpid(), gathered))
    gc.freeze()
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
        gc.unfreeze()


_KILLED = "a process was killed, perhaps for want of memory"


@contextmanager
def _told(doing: str) -> Iterator[None]:
    try:
        yield
    except AnalysisError as error:
        raise AnalysisError(f"{doing} failed: {error}") from error
    except BrokenProcessPool as error:
        raise AnalysisError(f"{doing} failed: {_KILLED}") from error
    except Exception as error:
        raise AnalysisError(f"{doing} failed: {type(error).__name__}: {error}") from error


_inherited: list[tuple[Task[Any], ...]] = []
"""In a child, all handfuls: what is forked need not be sent, and a run's hosts stand in memory once."""


def _begin(parent: int, gathered: Sequence[tuple[Task[Any], ...]]) -> None:
    """Begin a child, which ends with its parent, and leaves interrupts to it."""
    end_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _inherited.extend(gathered)


def _do(number: int) -> list[Any]:
    return do_all(_inherited[number])


def in_order(
    tasks: Sequence[Task[R]], gathered: Iterable[Sequence[Task[R]]], results: Sequence[R]
) -> list[R]:
    """Results in the order of their tasks. results: those of all handfuls, one after the other."""
    places = {id(task): place for place, task in enumerate(task for handful in gathered for task in handful)}
    return [results[places[id(task)]] for task in tasks]


def do_all(handful: Sequence[Task[R]]) -> list[R]:
    """Do the tasks of a handful; their results."""
    return [task.run() for task in handful]
