"""Independent tasks, and workers that run them.

A task is plain data that can be sent elsewhere. It reads files of the run and writes files of tables in the
making, each under a temporary name that is renamed at the end, so repeating it is harmless. Its result is
small. Small tasks are combined into batches, since starting one elsewhere costs more than running it.

Workers on this machine are this process, or children that are forked when there is work and end when it is
done; they inherit imported modules. `choice` selects the workers for a run.
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

R = TypeVar("R")

BATCHES_PER_CORE = 2
"""At least, so that one long batch does not leave the other cores idle."""
BATCH_BYTES = 32 << 20
"""Input size that justifies a batch of its own."""
CHILDREN_MAX = 16


Task = Callable[[], R]
"""Work that can run anywhere its files are visible: a function with its arguments, or an object."""


class Workers(Protocol):
    """Runs tasks."""

    def execute(self, tasks: Sequence[Task[R]], doing: str) -> list[R]:
        """Run all tasks and return their results in the order of the tasks, independent of the workers.

        doing: the activity, for errors. Raises AnalysisError if a task fails.
        """


def weight_of(task: Any) -> int:
    """Return the approximate cost of a task, in bytes that it reads; 1 if the task has no weight."""
    return int(getattr(task, "weight", 1))


def task_batches(tasks: Sequence[Task[R]], cores: int) -> list[tuple[Task[R], ...]]:
    """Combine tasks into batches of about equal cost, the longest tasks first.

    Longest processing time first: each task joins the batch with the least cost so far (Graham 1969).
    """
    total = sum(weight_of(task) for task in tasks)
    number = min(len(tasks), max(cores * BATCHES_PER_CORE, total // BATCH_BYTES))
    gathered: list[list[Task[R]]] = [[] for _ in range(number)]
    weights = [0] * number
    for task in sorted(tasks, key=lambda one: -weight_of(one)):
        least = weights.index(min(weights))
        gathered[least].append(task)
        weights[least] += weight_of(task)
    return [tuple(batch) for batch in gathered]


class InlineWorkers:
    """Runs one task after the other: for use within other workers' tasks, and for very little work."""

    def execute(self, tasks: Sequence[Task[R]], doing: str) -> list[R]:
        """Run the tasks in their order."""
        with _errors_named(doing):
            return [task() for task in tasks]


@dataclass(frozen=True, slots=True)
class ProcessPool:
    """One child process per core."""

    cores: int

    @classmethod
    def of_this_machine(cls) -> "ProcessPool":
        """Return a pool with one child for each processor that this process may use."""
        return cls(min(CHILDREN_MAX, len(os.sched_getaffinity(0))))

    def execute(self, tasks: Sequence[Task[R]], doing: str) -> list[R]:
        """Run the tasks. Ctrl-C waits for running ones, which are short."""
        if self.cores == 1 or len(tasks) <= 1:
            return InlineWorkers().execute(tasks, doing)
        gathered = task_batches(tasks, self.cores)
        with _children(self.cores, gathered) as pool, _errors_named(doing):
            done = list(pool.map(_run_batch, range(len(gathered))))
        return results_in_task_order(tasks, gathered, [result for results in done for result in results])


@contextmanager
def run_alongside(work: Callable[..., object], *given: object, doing: str) -> Iterator[None]:
    """Run a function in a child while the block runs, and wait for it at the block's end.

    given: its arguments, which are pickled. doing: the activity, for errors. Raises the function's own
    errors; AnalysisError if the child is killed.
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
    """Provide a pool of forked children for the duration of the block.

    gc.freeze keeps children from collecting our garbage: a collection would copy all inherited memory, and
    freeing an object may wait for a thread that a fork does not copy (a compressor of python-zstandard waits
    for its own).
    """
    pool = ProcessPoolExecutor(count, get_context("fork"), _start_child, (os.getpid(), gathered))
    gc.freeze()
    try:
        yield pool
    finally:
        pool.shutdown(cancel_futures=True)
        gc.unfreeze()


_KILLED = "a process was killed, perhaps for lack of memory"


@contextmanager
def _errors_named(doing: str) -> Iterator[None]:
    try:
        yield
    except AnalysisError as error:
        raise AnalysisError(f"{doing} failed: {error}") from error
    except BrokenProcessPool as error:
        raise AnalysisError(f"{doing} failed: {_KILLED}") from error
    except Exception as error:
        raise AnalysisError(f"{doing} failed: {type(error).__name__}: {error}") from error


_inherited: list[tuple[Task[Any], ...]] = []
"""In a child, all batches: a fork need not send them, and a run's hosts are in memory once."""


def _start_child(parent: int, gathered: Sequence[tuple[Task[Any], ...]]) -> None:
    """Set up a child: it ends with its parent and ignores SIGINT, which the parent handles."""
    end_with_parent(parent)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    _inherited.extend(gathered)


def _run_batch(number: int) -> list[Any]:
    return run_task_batch(_inherited[number])


def results_in_task_order(
    tasks: Sequence[Task[R]], gathered: Iterable[Sequence[Task[R]]], results: Sequence[R]
) -> list[R]:
    """Return results in the order of their tasks. results: those of all batches, one after the other."""
    places = {id(task): place for place, task in enumerate(task for batch in gathered for task in batch)}
    return [results[places[id(task)]] for task in tasks]


def run_task_batch(batch: Sequence[Task[R]]) -> list[R]:
    """Run the tasks of a batch and return their results."""
    return [task() for task in batch]
